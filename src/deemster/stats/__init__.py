"""Arithmetic on arrays and labels. Knows no sample and no judge."""

from deemster.stats.alternative_annotator_test import AlternativeAnnotator, AnnotatorTrial, alternative_annotator_test
from deemster.stats.bootstrap import Bootstrap, bootstrap
from deemster.stats.bootstrap_intervals import (
    Ends,
    acceleration,
    bca_interval,
    corrected_interval,
    expanded_percentile_interval,
    percentile_interval,
)
from deemster.stats.bootstrap_resampling import (
    bayesian_weight_blocks,
    drawn_seed,
    resample_blocks,
)
from deemster.stats.bounded_mean import bounded_mean
from deemster.stats.cohen_kappa import Agreement, Confusion, Kappa, cohen_kappa, confusion, pabak, scott_pi
from deemster.stats.concordance import Concordance, LimitsOfAgreement, concordance, limits_of_agreement
from deemster.stats.confidence_interval import ConfidenceInterval, Interval
from deemster.stats.confirm_failures import ConfirmedFailures, confirm_failures, reruns_to_confirm
from deemster.stats.corrected_difference import CorrectedDifference, LabelledSide, corrected_difference
from deemster.stats.corrected_rate import CorrectedRate, corrected_rate, rogan_gladen, weighted_share
from deemster.stats.correlation import Correlation, fisher_interval, kendall, pearson, spearman
from deemster.stats.dawid_skene import DawidSkene, dawid_skene
from deemster.stats.debiased_estimates import PpiMean, ppi_mean
from deemster.stats.drift_test import Drift, rate_drift
from deemster.stats.fisher_exact import fisher_exact
from deemster.stats.fleiss_gwet import Fleiss, fleiss_kappa, gwet_ac
from deemster.stats.interpretation import interpret_correlation, interpret_effect_size, interpret_emd, interpret_kappa
from deemster.stats.intraclass_correlation import ICC, ICCForm, icc
from deemster.stats.krippendorff_alpha import Alpha, krippendorff_alpha
from deemster.stats.means import Mean, exact_mean, exact_stdev, quantile, student
from deemster.stats.multiple_testing import Adjusted, benjamini_hochberg, benjamini_yekutieli, holm
from deemster.stats.noise_split import NoiseSplit, noise_split
from deemster.stats.paired_difference import PairedDifference, certifiable_margin, paired_difference
from deemster.stats.paired_tests import McNemar, SignFlip, mcnemar, sign_flip
from deemster.stats.pass_at_k import PassAtK, pass_at_k
from deemster.stats.power_analysis import (
    DetectableDifference,
    LabelSize,
    PairedNoise,
    RepetitionSplit,
    SampleSize,
    certain_margin,
    detectable_difference,
    detectable_drop,
    gate_power,
    label_size,
    repetition_splits,
    sample_size,
    samples_to_certify,
    samples_to_detect,
)
from deemster.stats.precision_recall import (
    PrecisionRecallF1,
    TableStatistic,
    balanced_accuracy,
    phi,
    precision_recall_f1,
)
from deemster.stats.probability_calibration import Brier, CalibrationBin, CalibrationError, brier, calibration_error
from deemster.stats.proportion_intervals import (
    Proportion,
    ProportionDifference,
    clopper_pearson,
    clustered_wilson,
    count_prediction_limit,
    newcombe,
    tango,
    weighted_wilson,
    wilson,
)
from deemster.stats.score_distribution import (
    Distribution,
    EarthMovers,
    KolmogorovSmirnov,
    earth_movers_distance,
    ks_test,
    score_distribution,
)
from deemster.stats.systematic_bias import BiasResult, systematic_bias

__all__ = [
    "ICC",
    "Adjusted",
    "Agreement",
    "Alpha",
    "AlternativeAnnotator",
    "AnnotatorTrial",
    "BiasResult",
    "Bootstrap",
    "Brier",
    "CalibrationBin",
    "CalibrationError",
    "Concordance",
    "ConfidenceInterval",
    "ConfirmedFailures",
    "Confusion",
    "CorrectedDifference",
    "CorrectedRate",
    "Correlation",
    "DawidSkene",
    "DetectableDifference",
    "Distribution",
    "Drift",
    "EarthMovers",
    "Ends",
    "Fleiss",
    "ICCForm",
    "Interval",
    "Kappa",
    "KolmogorovSmirnov",
    "LabelSize",
    "LabelledSide",
    "LimitsOfAgreement",
    "McNemar",
    "Mean",
    "NoiseSplit",
    "PairedDifference",
    "PairedNoise",
    "PassAtK",
    "PpiMean",
    "PrecisionRecallF1",
    "Proportion",
    "ProportionDifference",
    "RepetitionSplit",
    "SampleSize",
    "SignFlip",
    "TableStatistic",
    "acceleration",
    "alternative_annotator_test",
    "balanced_accuracy",
    "bayesian_weight_blocks",
    "bca_interval",
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "bootstrap",
    "bounded_mean",
    "brier",
    "calibration_error",
    "certain_margin",
    "certifiable_margin",
    "clopper_pearson",
    "clustered_wilson",
    "cohen_kappa",
    "concordance",
    "confirm_failures",
    "confusion",
    "corrected_difference",
    "corrected_interval",
    "corrected_rate",
    "count_prediction_limit",
    "dawid_skene",
    "detectable_difference",
    "detectable_drop",
    "drawn_seed",
    "earth_movers_distance",
    "exact_mean",
    "exact_stdev",
    "expanded_percentile_interval",
    "fisher_exact",
    "fisher_interval",
    "fleiss_kappa",
    "gate_power",
    "gwet_ac",
    "holm",
    "icc",
    "interpret_correlation",
    "interpret_effect_size",
    "interpret_emd",
    "interpret_kappa",
    "kendall",
    "krippendorff_alpha",
    "ks_test",
    "label_size",
    "limits_of_agreement",
    "mcnemar",
    "newcombe",
    "noise_split",
    "pabak",
    "paired_difference",
    "pass_at_k",
    "pearson",
    "percentile_interval",
    "phi",
    "ppi_mean",
    "precision_recall_f1",
    "quantile",
    "rate_drift",
    "repetition_splits",
    "reruns_to_confirm",
    "resample_blocks",
    "rogan_gladen",
    "sample_size",
    "samples_to_certify",
    "samples_to_detect",
    "score_distribution",
    "scott_pi",
    "sign_flip",
    "spearman",
    "student",
    "systematic_bias",
    "tango",
    "weighted_share",
    "weighted_wilson",
    "wilson",
]
