"""`MetricsResult`, the result of agreement: all metrics; as summary text, data frame and JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from deemster.agreement._result_dataframe import build_dataframe
from deemster.agreement.agreement_page import agreement_notebook, agreement_page
from deemster.agreement.agreement_report import agreement_sections
from deemster.agreement.panel_worth import PanelWorth
from deemster.agreement.result_models import (
    AbstentionMode,
    AbstentionStats,
    AnyCriterion,
    BootstrapResults,
    CalibrationMetrics,
    CorrectedMeans,
    CorrelationResult,
    CoverageStats,
    HumanAgreement,
    Intervals,
    ItemMetrics,
    JudgeConsistency,
    JudgeMetrics,
    PooledScaleMetrics,
    PositionBias,
    ResultModel,
    ScoreICC,
    ScoreLimits,
    SliceMetrics,
)
from deemster.agreement.trust_verdict import TrustVerdict, judge_trust
from deemster.datasets.votes_format import Sampling
from deemster.errors import Issue, ReportError, list_names, plural
from deemster.formats import Reading
from deemster.formats.json_values import name_kind
from deemster.formats.read_file import parse_document, quick_json
from deemster.formats.schema_validation import decode_shape
from deemster.stats.systematic_bias import BiasResult
from deemster.text.rendered import Rendered
from deemster.text.text_sections import TextSection

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "deemster.alignment.v1"
_FEW_MISSING = 5


class MetricsResult(Rendered, ResultModel, frozen=True, kw_only=True, tag_field="schema_version", tag=SCHEMA):
    """A result of agreement: how judges agree with people and with each other.

    Micro numbers pool pairs, macro numbers average criteria. Undefined is None.
    One mark as aggregators see it has a similar name: ``dm.results.MetricResult``.

    Attributes:
        verdict: Whether the judge can be trusted; always computed from the numbers.
        criterion_accuracy: The share of equal pairs over all criteria (micro). None without a pair.
        binary_accuracy: The same over binary criteria. None without a binary pair.
        criterion_precision: The share of MET verdicts that are MET in truth (micro). None without a MET verdict.
        criterion_recall: The share of true MET that are found (micro). None without a true MET.
        criterion_f1: 2tp/(2tp + fp + fn) of MET (micro). None where MET is neither true nor predicted.
        passed_of_passed: Of what people pass on binary criteria, the share that the judge passes; MET on a criterion
            with a negative weight is a fail. None where people pass nothing.
        passed_of_failed: Of what people fail, the share that the judge passes. None where people fail nothing.
        n_people_passed: How many binary pairs people pass.
        n_people_failed: How many they fail.
        one_way_p: The p-value of the exact test that the judge's errors go either way equally often, over units. None
            without an error.
        macro_accuracy: The mean accuracy of the criteria. None where no criterion has a pair.
        mean_kappa: The mean kappa of the criteria: Cohen's, quadratic on ordinal ones (macro). None where no criterion
            has one.
        mean_kappa_by_kind: The same for each kind of criterion that occurs. A value is None where no criterion of the
            kind has one.
        micro_kappa: Cohen's kappa of all binary pairs. None without a binary pair, and where both sides are one same
            class.
        criterion_phi: The correlation of MET against the rest over all binary pairs (Matthews). None where one side is
            constant.
        mean_krippendorff_alpha: The mean alpha of the judges over criteria (macro). None where no criterion has one.
        mean_concordance: The mean concordance of the numeric criteria. None where no criterion has one.
        score_rmse: The root mean squared difference of predicted and true item scores. None without a pair of scores.
        score_mae: The mean absolute difference of item scores. None without a pair of scores.
        score_spearman: Spearman's correlation of item scores.
        score_kendall: Kendall's tau-b of item scores.
        score_pearson: Pearson's correlation of item scores.
        bias: How far predicted scores lie above true ones.
        score_concordance: Lin's concordance of item scores. None below two pairs of scores, and where both sides are
            one same constant.
        score_limits: The limits of agreement of item scores. None without a pair of scores.
        score_icc: The intraclass correlations of the judges' scores. None below two judges.
        score_alpha: Krippendorff's alpha of the judges' scores, by distance. None below two judges or two items with
            two scores, and where all scores are equal.
        per_criterion: Every criterion, in the rubric's order.
        per_judge: Every judge against the truth. None where it was not asked for.
        bootstrap: How intervals were drawn. None without a bootstrap.
        n_items: Items that are labelled and not errored.
        n_units: What they are repetitions or clusters of; as many as items where each stands alone. 0 in results
            of earlier versions.
        sampling: How the labelled items were drawn. None where the votes do not say.
        n_judges: Judges with votes.
        n_criteria: Criteria of all kinds.
        n_binary_criteria: Binary criteria.
        n_ordinal_criteria: Ordinal criteria.
        n_nominal_criteria: Nominal criteria.
        n_numeric_criteria: Numeric criteria.
        n_samples: Pairs that count, over all criteria.
        cannot_assess_mode: What an abstention counts as on binary criteria.
        na_mode: What an abstention counts as on multi-choice criteria.
        na_stats: Agreement about when multi-choice criteria do not apply. None without such a criterion.
        cannot_assess_stats: Agreement about when binary criteria cannot be assessed. None without a binary criterion.
        coverage_stats: Which share of the labelled pairs counts. None unless both modes are `exclude`.
        pooled_by_scale: The pairs of each kind of criterion together. None where all items have one rubric.
        slices: The items of each tag. None where it was not asked for.
        human: What people reach among themselves. None below two annotators.
        consistency: How judges repeat themselves. None where no judge was asked twice.
        position_bias: Verdicts on pairs shown in both orders. None where no key of pairs was named.
        calibration: Whether stated probabilities come true. None where no judge states one on a labelled cell.
        corrected: Means over all items, corrected for the judge's errors. None where every graded item is labelled.
        items: The twenty most disputed items. None where no judge cast a usable vote.
        panel: What the panel is worth against the labels: independent votes, best member, what each judge adds. None
            below two judges, and where no labelled cell has a verdict of each.
        warnings: What a reader has to know, each led by its code.
        intervals: The intervals of the numbers above, by field name. None without a bootstrap.
    """

    verdict: TrustVerdict = TrustVerdict(answer=None, floor=None, reasons=())
    criterion_accuracy: float | None
    binary_accuracy: float | None
    criterion_precision: float | None
    criterion_recall: float | None
    criterion_f1: float | None
    passed_of_passed: float | None = None
    passed_of_failed: float | None = None
    n_people_passed: int = 0
    n_people_failed: int = 0
    one_way_p: float | None = None
    macro_accuracy: float | None
    mean_kappa: float | None
    mean_kappa_by_kind: dict[str, float | None]
    micro_kappa: float | None
    criterion_phi: float | None
    mean_krippendorff_alpha: float | None
    mean_concordance: float | None = None
    score_rmse: float | None
    score_mae: float | None
    score_spearman: CorrelationResult
    score_kendall: CorrelationResult
    score_pearson: CorrelationResult
    bias: BiasResult
    score_concordance: float | None
    score_limits: ScoreLimits | None
    score_icc: ScoreICC | None
    score_alpha: float | None
    per_criterion: tuple[AnyCriterion, ...]
    per_judge: dict[str, JudgeMetrics] | None
    bootstrap: BootstrapResults | None
    n_items: int
    n_units: int = 0
    sampling: Sampling | None = None
    n_judges: int
    n_criteria: int
    n_binary_criteria: int
    n_ordinal_criteria: int
    n_nominal_criteria: int
    n_numeric_criteria: int = 0
    n_samples: int
    cannot_assess_mode: AbstentionMode
    na_mode: AbstentionMode
    na_stats: AbstentionStats | None
    cannot_assess_stats: AbstentionStats | None
    coverage_stats: CoverageStats | None
    pooled_by_scale: tuple[PooledScaleMetrics, ...] | None
    slices: tuple[SliceMetrics, ...] | None = None
    human: HumanAgreement | None = None
    consistency: tuple[JudgeConsistency, ...] | None = None
    position_bias: tuple[PositionBias, ...] | None = None
    calibration: tuple[CalibrationMetrics, ...] | None = None
    corrected: CorrectedMeans | None = None
    items: tuple[ItemMetrics, ...] | None = None
    panel: PanelWorth | None = None
    warnings: tuple[str, ...] = ()
    intervals: Intervals = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "verdict", judge_trust(self))

    def sections(self) -> list[TextSection]:
        """All that it says to people, in order."""
        return agreement_sections(self)

    def summary(self) -> str:
        """The result as plain text for people: its sections, on a hundred columns."""
        from deemster.text.terminal_layout import plain_text  # noqa: PLC0415 - rich is heavy

        return plain_text(self.sections())

    def to_dataframe(self) -> pd.DataFrame:
        """The result as a pandas table: a row for all, for each criterion, each judge and each slice.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return build_dataframe(self)

    def _repr_html_(self) -> str:
        return agreement_notebook(self)

    def to_html(self) -> str:
        """The result as one HTML page that loads nothing."""
        return agreement_page(self)

    @classmethod
    def from_file(cls, path: str | Path) -> MetricsResult:
        """Read a result that `save` wrote as JSON; it is equal to the one that was written.

        Raises:
            ReportError: The file cannot be read, or is no such result.
        """
        reading = Reading(str(path), error=ReportError)
        data = reading.content(path)
        try:
            return msgspec.convert(_with_present_names(quick_json(data)), cls)
        except ValueError:
            document = parse_document(data, "json", reading)
        _refuse_other_files(document.value, str(path))
        value = _with_present_names(document.value)
        found: MetricsResult = decode_shape(value, cls, error=ReportError, document=document)
        return found

    def __repr__(self) -> str:
        accuracy = "n/a" if self.criterion_accuracy is None else f"{self.criterion_accuracy:.4f}"
        kappa = "n/a" if self.mean_kappa is None else f"{self.mean_kappa:.4f}"
        criteria = plural(self.n_criteria, "criterion") if self.n_criteria == 1 else f"{self.n_criteria:,} criteria"
        return f"<MetricsResult: {plural(self.n_items, 'item')}, {criteria}, accuracy {accuracy}, mean kappa {kappa}>"


def _with_present_names(value: Any) -> Any:
    """A result whose abstentions are named as now; earlier versions wrote `na_kappa` and `ca_kappa`."""
    if not isinstance(value, dict):
        return value
    return value | {name: _unprefixed(value[name]) for name in ("na_stats", "cannot_assess_stats") if name in value}


def _unprefixed(stats: Any) -> Any:
    if not isinstance(stats, dict):
        return stats
    return {
        key.removeprefix("na_").removeprefix("ca_"): _unprefixed(part) if key == "intervals" else part
        for key, part in stats.items()
    }


def _refuse_other_files(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise ReportError(Issue(f"A result of agreement is a map, not {name_kind(value)}.", where))
    version = value.get("schema_version")
    if version != SCHEMA:
        found = f"not {version!r:.80}" if "schema_version" in value else "and this file has none"
        raise ReportError(Issue(f"A result of agreement has the schema_version `{SCHEMA}`, {found}.", where))
    required = [field.name for field in msgspec.structs.fields(MetricsResult) if field.required]
    missing = [name for name in required if name not in value]
    # More than a slip of the pen: the file was cut short, and one message says it.
    if len(missing) > _FEW_MISSING:
        raise ReportError(Issue(f"The result is not whole; missing: {list_names(missing)}.", where))
