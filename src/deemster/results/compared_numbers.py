"""The numbers of a comparison: differences with intervals, pass and fail before and now, by metric and cohort."""

from __future__ import annotations

from typing import Literal

import msgspec

from deemster.results.difference_origin import DifferenceOrigin, JudgeDrift
from deemster.stats import Interval
from deemster.stats.noise_split import NoiseSplit


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


class RepeatedComparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often k repetitions of a sample pass in both runs.

    Attributes:
        k: How many repetitions count together: as many as both runs have.
        pass_at_k: The difference of the chance that at least one of them passes.
        pass_hat_k: The difference of the chance that all of them pass, pass^k.
    """

    k: int
    pass_at_k: Difference
    pass_hat_k: Difference


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
