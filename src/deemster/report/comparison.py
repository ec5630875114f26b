"""The comparison of two runs: differences with intervals, per metric and cohort, and where they come from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from deemster.report._comparison_dataframe import comparison_dataframe
from deemster.report._comparison_page import comparison_notebook, comparison_page
from deemster.report.comparison_sections import comparison_sections, comparison_summary, comparison_verdict
from deemster.report.pull_request_comment import comparison_comment
from deemster.report.report_entries import ExecutionEntry, PrivacyEntry
from deemster.results import GateDecision
from deemster.results.difference_origin import DifferenceOrigin, JudgeDrift
from deemster.results.run_columns import ComparedRun
from deemster.results.sample_changes import SampleChange, SampleSide
from deemster.stats import Interval
from deemster.stats.noise_split import NoiseSplit
from deemster.text.indented_json import json_pieces
from deemster.text.rendered import Forms, Rendered
from deemster.text.text_sections import TextSection

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "deemster.comparison.v1"
# What a file has only where labels of people, or anchors, brought it.
OPTIONAL = frozenset({"corrected", "anchors"})


class Difference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number of the candidate minus the same number of the baseline, over the samples that both have.

    Attributes:
        n: The samples that it rests on.
        units: The independent units: samples, or clusters of them.
        baseline: The number of the baseline, over these samples.
        candidate: The number of the candidate.
        difference: Candidate minus baseline.
        interval: Its two-sided interval.
        method: How the interval is made.
        lower_bound: The one-sided lower bound of the same confidence.
        upper_bound: The one-sided upper bound of the same confidence.
        p_value: Against no difference, of the interval itself: the smallest level at which it leaves out 0.
        sign_flip_p: Of the sign-flip test, which asks another question: whether changes are as likely up as down.
        effect: The mean difference divided by the standard deviation of the differences.
        better: Samples that improved.
        equal: Samples that stayed as they were.
        worse: Samples that got worse.
        certifiable: The smallest margin that these data certify.
        certifiable_unchanged: The smallest margin that they would certify if nothing had changed.
        detectable: The smallest drop that such a comparison finds with power 0.8.
        p_beyond: Against a drop of at most the margin that was asked for; None where none was.
        tango: Tango's score interval, for pass or fail in one repetition without clusters.
    """

    n: int
    units: int
    baseline: float | None = None
    candidate: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    method: str | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None
    p_value: float | None = None
    sign_flip_p: float | None = None
    effect: float | None = None
    better: int = 0
    equal: int = 0
    worse: int = 0
    certifiable: float | None = None
    certifiable_unchanged: float | None = None
    detectable: float | None = None
    p_beyond: float | None = None
    tango: Interval | None = None


class SampleDrop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sample that lost most of its score.

    Attributes:
        id: Its id in the candidate.
        drop: How much it lost, over the repetitions that were scored.
    """

    id: str
    drop: float


class PassTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Samples by whether they passed before and pass now; with repetitions, in at least half of them.

    Attributes:
        passed_both: Passed before, pass now.
        newly_failing: Passed before, fail now.
        newly_passing: Failed before, pass now.
        failed_both: Failed before, fail now.
        p_value: McNemar's exact test that samples change as often in one way as in the other.
        mid_p: The same with half the weight of the observed table.
    """

    passed_both: int
    newly_failing: int
    newly_passing: int
    failed_both: int
    p_value: float | None
    mid_p: float | None


class MetricComparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric in both runs.

    Attributes:
        pass_rate: The difference of its pass-rates; an unscored mark does not pass.
        mean: The difference of its mean scores over the samples that both runs scored.
        mean_bounds: What the mean difference could be at worst and at best, whatever the unscored marks are.
        left_out: Samples without a score on a side, which the mean leaves out.
        table: Pass and fail before and now.
        noise: How much of the noise of its pass-rate is the system's own; None without repetitions.
        higher_is_better: Whether a higher score is a better one.
        largest_drop: The sample that lost most; None where none lost anything.
        origin: Where the change of its pass-rate comes from.
        drift: Whether the marks of equal outputs moved.
    """

    pass_rate: Difference
    mean: Difference
    mean_bounds: Interval | None
    left_out: int
    table: PassTable
    noise: NoiseSplit | None
    higher_is_better: bool
    largest_drop: SampleDrop | None
    origin: DifferenceOrigin
    drift: JudgeDrift | None


class CohortComparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The samples of one tag in both runs; tags are those of the candidate."""

    label: str
    samples: int
    macro_f1: Difference
    pass_rate: Difference
    metrics: dict[str, Difference]


class UsageComparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the target used for a sample, on average: cost, tokens or time.

    Attributes:
        n: Samples for which both runs know it.
        baseline: The mean of the baseline.
        candidate: The mean of the candidate.
        difference: Candidate minus baseline.
        interval: Its interval, Student's; None below two samples or without spread.
        baseline_per_pass: What the baseline used for each execution that passed.
        candidate_per_pass: What the candidate used for each execution that passed.
    """

    n: int
    baseline: float | None
    candidate: float | None
    difference: float | None
    interval: Interval | None
    baseline_per_pass: float | None
    candidate_per_pass: float | None


class CorrectedComparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The difference of two runs in one metric, each corrected by labels on its own outputs.

    Attributes:
        number: What is compared: the pass-rate, or the mean score where people gave scores.
        n: The samples that both runs scored.
        labels: How many labels the baseline and the candidate have among them.
        naive: The difference by the judge.
        difference: The corrected difference; None below two labels on a side.
        interval: Its interval.
        error_difference: How much more the judge underrates the candidate than the baseline.
        error_interval: Its interval.
        is_error_different: Whether the judge errs otherwise on one run than on the other, beyond chance. Then the naive
            difference says as much about the judge as about the systems.
    """

    number: Literal["pass-rate", "mean"]
    n: int
    labels: tuple[int, int]
    naive: float | None
    difference: float | None
    interval: Interval | None
    error_difference: float | None
    error_interval: Interval | None
    is_error_different: bool


class SampleCounts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many samples the runs share, and how many only one of them has."""

    paired: int
    added: int
    removed: int


class ComparedSample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sample that changed, with what was asked and what both runs answered.

    Attributes:
        id: Its id in the candidate, or in the baseline where it was removed.
        status: How it changed.
        tags: Its tags.
        input: What the target received.
        expected_output: What should come out.
        baseline: Its first repetition in the baseline that shows the change.
        candidate: The same in the candidate.
    """

    id: str
    status: str
    tags: tuple[str, ...] = ()
    input: Any = None
    expected_output: Any = None
    baseline: ExecutionEntry | None = None
    candidate: ExecutionEntry | None = None


class Comparison(Rendered, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
        anchors: By metric, whether the marks of anchors moved; None where the runs have none in common.
        examples: Some of the changed samples, each with what was asked and both answers.
        gate: What a gate decided; None where none was asked.
        privacy: What was left out on purpose.
        corrected: By metric, the difference corrected by people's labels; None unless outputs of both runs have some.
    """

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
    anchors: dict[str, JudgeDrift] | None = None

    examples: tuple[ComparedSample, ...] = ()
    gate: GateDecision | None = None
    privacy: PrivacyEntry = PrivacyEntry()
    corrected: dict[str, CorrectedComparison] | None = None

    @property
    def verdict(self) -> str:
        """Whether the candidate is worse, in one sentence."""
        return comparison_verdict(self)

    def sections(self, *, full: bool = True) -> list[TextSection]:
        """What it says to people, in order.

        Args:
            full: All of it; otherwise what a reader looks for first.
        """
        return comparison_sections(self, full=full)

    def pieces(self) -> Iterator[bytes]:
        """The canonical JSON of the comparison, in pieces."""
        return json_pieces(
            (name, iter(self.changes) if name == "changes" else getattr(self, name)) for name in self._written()
        )

    def head(self) -> bytes:
        """The canonical JSON of the comparison without the list of its changed samples."""
        names = (name for name in self._written() if name != "changes")
        return b"".join(json_pieces((name, getattr(self, name)) for name in names))

    def _written(self) -> Iterator[str]:
        """The fields that a file has: all, but what only labels of people bring."""
        return (name for name in self.__struct_fields__ if name not in OPTIONAL or getattr(self, name) is not None)

    def to_json(self) -> str:
        """The comparison as canonical JSON: the same runs are the same bytes."""
        return b"".join(self.pieces()).decode()

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
            "json": self.pieces,
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
    from deemster.report._junit_xml import comparison_junit  # noqa: PLC0415 - its XML library loads an HTTP client

    return comparison_junit(comparison, samples_fail=samples_fail)
