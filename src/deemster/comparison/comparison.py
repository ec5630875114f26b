"""The comparison of two runs: `Comparison`, with its numbers, the samples that changed, and what a gate decided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from deemster.comparison._comparison_dataframe import comparison_dataframe
from deemster.comparison._comparison_page import comparison_notebook, comparison_page
from deemster.comparison.compared_sample import ComparedSample
from deemster.comparison.comparison_comment import comparison_comment
from deemster.comparison.comparison_sections import comparison_sections, comparison_summary
from deemster.comparison.comparison_verdict import comparison_verdict
from deemster.comparison.judge_change import JudgeChange
from deemster.gate import GateDecision
from deemster.report.report_entries import PrivacyEntry
from deemster.results.compared_numbers import (
    CohortComparison,
    CorrectedComparison,
    Difference,
    MetricComparison,
    PassTable,
    RepeatedComparison,
    SampleCounts,
    UsageComparison,
)
from deemster.results.difference_origin import DifferenceOrigin
from deemster.results.run_columns import ComparedRun
from deemster.results.sample_changes import SampleChange, SampleSide
from deemster.stats.noise_split import NoiseSplit
from deemster.text.rendered import Forms, RenderedRecord
from deemster.text.text_sections import TextSection

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "deemster.comparison.v1"


class Comparison(RenderedRecord, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two runs compared sample by sample.

    Attributes:
        schema_version: `deemster.comparison.v1`.
        tool_version: The version of this package.
        baseline: The run before.
        candidate: The run now.
        confidence: The level of the intervals.
        cluster: The metadata key whose equal values make one unit; None where each sample is one.
        seed: The seed of what is drawn.
        margin: The drop that would still be acceptable, where one was given.
        samples: How many samples were joined.
        macro_f1: The difference of the mean pass-rate of the metrics that can be compared.
        pass_rate: The difference of the share of executions in which all these metrics passed.
        table: Samples by whether all these metrics passed before and now.
        noise: How much of the noise of the pass-rate is the system's own; None without repetitions.
        metrics: Each metric that can be compared.
        warnings: What a reader must know before believing the numbers.
        not_comparable: Metrics that cannot be compared, and why.
        cohorts: Each cohort of the candidate.
        macro_f1_origin: Where the change of macro-F1 comes from.
        pass_rate_origin: Where the change of the pass-rate comes from.
        usage: What the target used: cost in USD, tokens, latency in milliseconds.
        statuses: How many samples have each status.
        changes: Every sample whose status is not `stable`; it may be read any number of times.
        examples: Some of the changed samples, each with what was asked and both answers.
        gate: What a gate decided; None where none was asked.
        privacy: What was left out on purpose.
        corrected: By metric, the difference corrected by people's labels; None unless outputs of both runs have some.
        judge_change: What the change of judge is worth, where the outputs are the same and the judge is not; else None.
        repeated: How often one of several repetitions passes, and how often all do; None without repetitions.
    """

    long_fields: ClassVar[frozenset[str]] = frozenset({"changes"})
    # What only labels of people, another judge, or repetitions bring.
    optional_fields: ClassVar[frozenset[str]] = frozenset({"corrected", "judge_change", "repeated"})

    schema_version: str = SCHEMA
    tool_version: str
    baseline: ComparedRun
    candidate: ComparedRun
    confidence: float
    cluster: str | None
    seed: int
    margin: float | None
    samples: SampleCounts
    macro_f1: Difference
    pass_rate: Difference
    table: PassTable
    noise: NoiseSplit | None
    metrics: dict[str, MetricComparison]
    warnings: tuple[str, ...]
    not_comparable: dict[str, str]
    cohorts: tuple[CohortComparison, ...]
    macro_f1_origin: DifferenceOrigin
    pass_rate_origin: DifferenceOrigin
    usage: dict[str, UsageComparison]
    statuses: dict[str, int]
    changes: Sequence[SampleChange]

    examples: tuple[ComparedSample, ...] = ()
    gate: GateDecision | None = None
    privacy: PrivacyEntry = PrivacyEntry()
    corrected: dict[str, CorrectedComparison] | None = None
    judge_change: JudgeChange | None = None
    repeated: RepeatedComparison | None = None

    @property
    def verdict(self) -> str:
        """What became of samples, and what that means: two sentences."""
        return comparison_verdict(self)

    def sections(self, *, full: bool = True) -> list[TextSection]:
        """What it says to people, in order.

        Args:
            full: All of it; otherwise what a reader looks for first.
        """
        return comparison_sections(self, full=full)

    def to_html(self) -> str:
        """The comparison as one HTML page that loads nothing."""
        return comparison_page(self)

    def to_dataframe(self, form: Literal["metrics", "samples"] = "metrics") -> pd.DataFrame:
        """The comparison as a pandas table.

        Args:
            form: `metrics` for a row for each number that was compared, overall and by cohort; `samples` for a row for
                each sample that did not stay as it was.

        Raises:
            ReportError: There is no such form.
            MissingExtraError: pandas is not installed.
        """
        return comparison_dataframe(self, form)

    def _repr_html_(self) -> str:
        return comparison_notebook(self)

    def forms(self) -> Forms:
        """By the name of a format, what makes the bytes of a file."""
        return {
            **super().forms(),
            "junit": lambda: _junit(self),
            "junit-samples": lambda: _junit(self, samples_fail=True),
            "github": lambda: (comparison_summary(self).encode(),),
            "pr-comment": lambda: (comparison_comment(self).encode(),),
        }

    def mean_quality(self, side: SampleSide) -> float | None:
        """The mean score of a sample over the metrics that are compared, where 1 is best. None without a score."""
        scores = [
            score if self.metrics[name].higher_is_better else 1 - score
            for name, score in side.scores.items()
            if score is not None and name in self.metrics
        ]
        return min(1.0, max(0.0, math.fsum(scores) / len(scores))) if scores else None

    def __repr__(self) -> str:
        return f"<Comparison {self.baseline.id} to {self.candidate.id}: {self.verdict}>"


def _junit(comparison: Comparison, *, samples_fail: bool = False) -> Iterable[bytes]:
    from deemster.comparison._comparison_junit import comparison_junit  # noqa: PLC0415 - its XML library loads an HTTP client

    return comparison_junit(comparison, samples_fail=samples_fail)
