"""The result of a calibration: how far a judge agrees with people on outputs of a run, and where it is biased."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from deemster.agreement.calibration_page import calibration_page
from deemster.agreement.calibration_report import calibration_sections
from deemster.agreement.estimate import Estimate
from deemster.agreement.option_order_bias import OptionOrderBias
from deemster.agreement.result_models import JudgeConsistency, PositionBias
from deemster.datasets.human_labels import LabelKind, LabelledMetric
from deemster.errors import Issue, ReportError
from deemster.text.rendered import Rendered
from deemster.text.text_sections import TextSection

CALIBRATION_SCHEMA: Final = "deemster.calibration_report.v1"


class ConfusionCounts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many labelled samples people and the judge pass and fail; counted, not weighted."""

    both_pass: int
    only_people_pass: int
    only_judge_passes: int
    both_fail: int


class CorrectedEstimate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number of the run, corrected for the judge's errors.

    Attributes:
        naive: The number as the judge has it.
        value: The corrected number; None where the labels do not allow one.
        low: The lower end of its interval.
        high: The upper end.
        n: The samples of the run that it rests on.
        people: The same number by the labels alone, with its interval.
        note: Why the corrected number is missing or doubtful.
        equal_labels: How many labels drawn with equal probabilities would give the same precision; None where the
            labels were drawn so.
    """

    naive: float | None
    value: float | None
    low: float | None
    high: float | None
    n: int
    people: Estimate
    note: str | None = None
    equal_labels: float | None = None


class ThresholdChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pass mark at which the judge agrees most with people.

    Attributes:
        current: The pass mark of the metric.
        best: The one that agrees most on these labels.
        agreement: The agreement at the current one.
        best_agreement: The agreement at the best one, on the labels that it was chosen by.
        cross_validated: The agreement where each label is judged by the pass mark that the other labels choose.
        gain: Cross-validated minus current agreement.
        is_noise: Whether the gain may be chance: its interval reaches down to 0.
    """

    current: float
    best: float
    agreement: float
    best_agreement: float
    cross_validated: float
    gain: Estimate
    is_noise: bool


class LengthBias(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether the judge prefers long outputs.

    Attributes:
        spearman: The rank correlation of the length of the output with the score.
        partial: The same among outputs that people judge alike.
        is_biased: Whether the interval of the partial correlation leaves out 0.
    """

    spearman: Estimate
    partial: Estimate
    is_biased: bool


class AnnotatorAgreement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far people agree with each other: no judge can be asked to agree with them more.

    Attributes:
        annotators: How many people there are.
        n: Samples with two labels or more.
        agreement: The mean share of equal pairs of labels.
        krippendorff_alpha: Krippendorff's alpha, nominal, and of scores interval.
        disputed: Samples on which they are tied; nothing is compared with them.
    """

    annotators: int
    n: int
    agreement: float | None
    krippendorff_alpha: float | None
    disputed: int


class TagAgreement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The agreement on the samples of one tag."""

    tag: str
    agreement: Estimate


class MetricCalibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric, or one criterion of a rubric, against people.

    Where samples were drawn with unequal probabilities, all numbers but counts are weighted by 1/probability.

    Attributes:
        kind: Whether people gave verdicts, scores or options.
        n: Outputs that people labelled and the judge decided.
        samples: How many units they are: repetitions of a sample are one. 0 in calibrations of earlier versions.
        sampling: Whether the outputs were drawn at random; chosen ones have no interval and correct nothing.
        unscored: Samples that people labelled, and the judge has no score for.
        is_weighted: Whether samples count by their inclusion probabilities.
        agreement: The share on which people and judge agree.
        kappa: Cohen's kappa.
        confusion: The counts behind them; None for options.
        sensitivity: Of what people pass, the share that the judge passes.
        specificity: Of what people fail, the share that the judge fails.
        youden: Sensitivity + specificity - 1: 0 for a judge at chance.
        is_informative: Whether the labels tell the judge from chance: the interval of `youden` lies above 0.
        pass_rate: The pass-rate of the run, corrected; None for options, and for cases.
        mean: The mean score of the run, corrected; only where people gave scores.
        score_spearman: The rank correlation of the judge's scores with those of people; only where people gave scores.
        score_bias: The mean of the judge's score minus that of people; likewise.
        threshold: The pass mark at which the judge agrees most; None where it cannot be asked.
        length_bias: Whether the judge prefers long outputs; None for options.
        position_bias: Whether a pairwise judge prefers a place to an answer.
        option_order_bias: Whether a judge that chooses among shuffled options prefers a place to an option.
        consistency: Whether the judge repeats its verdict on the same output; None without repetitions.
        people: How far people agree with each other; None for one annotator.
        tags: The agreement on each tag.
        warnings: What a reader must know before believing the numbers.
        labels: The labelled outputs, by which later runs are corrected; None for options.
    """

    kind: LabelKind
    n: int
    samples: int = 0
    sampling: Literal["random", "chosen"] = "random"
    unscored: int
    is_weighted: bool
    agreement: Estimate
    kappa: Estimate
    confusion: ConfusionCounts | None = None
    sensitivity: Estimate | None = None
    specificity: Estimate | None = None
    youden: Estimate | None = None
    is_informative: bool | None = None
    pass_rate: CorrectedEstimate | None = None
    mean: CorrectedEstimate | None = None
    score_spearman: Estimate | None = None
    score_bias: Estimate | None = None
    threshold: ThresholdChoice | None = None
    length_bias: LengthBias | None = None
    position_bias: PositionBias | None = None
    option_order_bias: OptionOrderBias | None = None
    consistency: JudgeConsistency | None = None
    people: AnnotatorAgreement | None = None
    tags: tuple[TagAgreement, ...] = ()
    warnings: tuple[str, ...] = ()
    labels: LabelledMetric | None = None


class CalibrationCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The check of one bound on a calibration; a bias that cannot be measured is skipped."""

    name: str
    observed: float | None
    required: float
    status: Literal["pass", "fail", "skipped"]
    because: str


class Calibration(Rendered, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far the judges of a run agree with people.

    Attributes:
        schema_version: `deemster.calibration_report.v1`.
        tool_version: The version of this package.
        source: What was labelled: the id of a run, or the name of a file of cases.
        dataset: The dataset's name.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.
        metrics: Each metric or criterion that has labels.
        checks: The bounds that the calibration is held to.
    """

    schema_version: Literal["deemster.calibration_report.v1"] = CALIBRATION_SCHEMA
    tool_version: str
    source: str
    dataset: str
    confidence: float
    seed: int
    metrics: dict[str, MetricCalibration]
    checks: tuple[CalibrationCheck, ...] = ()

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return calibration_sections(self)

    def to_html(self) -> str:
        """What it says, as one HTML page that loads nothing."""
        return calibration_page(self)


def load_calibration(path: str | Path) -> Calibration:
    """Read a calibration back from its JSON file.

    Args:
        path: The file that `deemster agreement --to FILE.json` wrote.

    Raises:
        ReportError: It cannot be read, or is no calibration.
    """
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=Calibration)
    except OSError as error:
        raise ReportError(Issue(f"The file cannot be read: {error.strerror}.", str(path))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "`deemster agreement RUN --labels FILE --to FILE.json` writes one"
        raise ReportError(Issue(f"This is no calibration ({error}); {hint}.", str(path))) from None
