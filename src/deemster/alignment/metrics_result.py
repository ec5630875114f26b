"""`MetricsResult`, the result of alignment: all metrics; as summary text, data frame and JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from deemster.alignment._result_dataframe import build_dataframe
from deemster.alignment.result_models import (
    AbstentionMode,
    AnyCriterion,
    BootstrapResults,
    CalibrationMetrics,
    CannotAssessStats,
    CorrectedMeans,
    CorrelationResult,
    CoverageStats,
    HumanAgreement,
    Intervals,
    ItemMetrics,
    JudgeConsistency,
    JudgeMetrics,
    NAStats,
    PooledScaleMetrics,
    ScoreICC,
    ScoreLimits,
    SliceMetrics,
)
from deemster.alignment.result_summary import summary_text
from deemster.alignment.trust_verdict import TrustVerdict, judge_trust
from deemster.errors import Issue, ReportError, list_names, plural
from deemster.formats import Reading
from deemster.formats.atomic_write import write_aside
from deemster.formats.json_values import name_kind
from deemster.formats.read_file import parse_document, quick_value
from deemster.formats.schema_validation import decode_shape
from deemster.stats.systematic_bias import BiasResult

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "deemster.alignment.v1"
_FEW_MISSING = 5
_ENCODER = msgspec.json.Encoder(order="deterministic")


class MetricsResult(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="schema_version", tag=SCHEMA
):
    """A result of alignment: how judges agree with people and with each other.

    Micro numbers pool pairs, macro numbers average criteria. Undefined is None. `intervals` holds the interval of each
    number by its field name, where a bootstrap was asked for. `verdict` is always computed from the numbers.
    One mark as aggregators see it has a similar name: ``dm.results.MetricResult``.
    """

    verdict: TrustVerdict = TrustVerdict(answer=None, floor=None, reasons=())
    criterion_accuracy: float | None
    binary_accuracy: float | None
    criterion_precision: float | None
    criterion_recall: float | None
    criterion_f1: float | None
    macro_accuracy: float | None
    mean_kappa: float | None
    mean_kappa_by_kind: dict[str, float | None]
    micro_kappa: float | None
    criterion_phi: float | None
    mean_krippendorff_alpha: float | None
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
    n_judges: int
    n_criteria: int
    n_binary_criteria: int
    n_ordinal_criteria: int
    n_nominal_criteria: int
    n_samples: int
    cannot_assess_mode: AbstentionMode
    na_mode: AbstentionMode
    na_stats: NAStats | None
    cannot_assess_stats: CannotAssessStats | None
    coverage_stats: CoverageStats | None
    pooled_by_scale: tuple[PooledScaleMetrics, ...] | None
    slices: tuple[SliceMetrics, ...] | None = None
    human: HumanAgreement | None = None
    consistency: tuple[JudgeConsistency, ...] | None = None
    calibration: tuple[CalibrationMetrics, ...] | None = None
    corrected: CorrectedMeans | None = None
    items: tuple[ItemMetrics, ...] | None = None
    warnings: tuple[str, ...] = ()
    intervals: Intervals = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "verdict", judge_trust(self))

    def summary(self, *, verbose: bool = False) -> str:
        """The result as plain text for people.

        Args:
            verbose: Show errors, correlations and the confusion matrix of each judge too.
        """
        return summary_text(self, verbose=verbose)

    def to_dataframe(self) -> pd.DataFrame:
        """The result as a pandas table: a row for all, for each criterion, each judge and each slice.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return build_dataframe(self)

    def to_json(self) -> str:
        """The result as indented JSON, fields in their order, maps by key; equal results are equal text."""
        return msgspec.json.format(_ENCODER.encode(self).decode(), indent=2) + "\n"

    def to_file(self, path: str | Path) -> None:
        """Write the result as JSON; folders are created, and a reader never sees half a file.

        Raises:
            ReportError: The file cannot be written.
        """
        place = Path(path)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_aside(place, [self.to_json().encode()])
        except OSError as error:
            raise ReportError(Issue(f"The result cannot be written: {error.strerror or error}.", str(path))) from None
        except UnicodeEncodeError:
            message = "The result cannot be written: a name holds a lone surrogate, which is no character."
            raise ReportError(Issue(message, str(path))) from None

    @classmethod
    def from_file(cls, path: str | Path) -> MetricsResult:
        """Read a result that `to_file` wrote; it is equal to the one that was written.

        Raises:
            ReportError: The file cannot be read, or is no such result.
        """
        reading = Reading(str(path), error=ReportError)
        data = reading.content(path)
        try:
            return msgspec.convert(quick_value(data, "json"), cls)
        except ValueError:
            document = parse_document(data, "json", reading)
        _refuse_other_files(document.value, str(path))
        found: MetricsResult = decode_shape(document.value, cls, error=ReportError, document=document)
        return found

    def __repr__(self) -> str:
        accuracy = "n/a" if self.criterion_accuracy is None else f"{self.criterion_accuracy:.4f}"
        kappa = "n/a" if self.mean_kappa is None else f"{self.mean_kappa:.4f}"
        criteria = plural(self.n_criteria, "criterion") if self.n_criteria == 1 else f"{self.n_criteria:,} criteria"
        return f"<MetricsResult: {plural(self.n_items, 'item')}, {criteria}, accuracy {accuracy}, mean kappa {kappa}>"


def _refuse_other_files(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise ReportError(Issue(f"A result of alignment is a map, not {name_kind(value)}.", where))
    version = value.get("schema_version")
    if version != SCHEMA:
        found = f"not {version!r:.80}" if "schema_version" in value else "and this file has none"
        raise ReportError(Issue(f"A result of alignment has the schema_version `{SCHEMA}`, {found}.", where))
    required = [field.name for field in msgspec.structs.fields(MetricsResult) if field.required]
    missing = [name for name in required if name not in value]
    # More than a slip of the pen: the file was cut short, and one message says it.
    if len(missing) > _FEW_MISSING:
        raise ReportError(Issue(f"The result is not whole; missing: {list_names(missing)}.", where))
