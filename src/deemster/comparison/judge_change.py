"""What a change of judge is worth: two judges of the same outputs, and what old numbers mean under the new one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.comparison.compared_sample import ComparedSample
from deemster.results.compared_numbers import Difference
from deemster.stats import Interval, exact_mean, paired_difference
from deemster.stats.confidence_interval import interval_ends, shared_confidence
from deemster.stats.means import unit_sums
from deemster.stats.multiple_testing import holm
from deemster.stats.power_analysis import PairedNoise, samples_to_certify
from deemster.stats.score_link import (
    FEWEST_OF_A_KIND,
    ScoreLink,
    link_pass_mark,
    permuted_group_tests,
    spearman_interval,
)

JudgeAnswer: TypeAlias = Literal["interchangeable", "linked", "not-comparable", "not-enough-data"]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.intp]

# How far the numbers of two judges may lie apart where one stands for the other: overall, and in a cohort.
MARGIN = 0.02
COHORT_MARGIN = 0.05
# Scores whose rank correlation may lie below have no exchange rate.
_RELATED = 0.5
_PERMUTATION_LEVEL = 0.05
# Which answer of a metric decides for all of them.
_WORST_FIRST: tuple[JudgeAnswer, ...] = ("not-comparable", "not-enough-data", "linked", "interchangeable")
# Each of two bounds holds with this power, so that both do with 0.8.
_POWER = 0.9
# Where so many outputs should have been enough, it takes a little more.
_MORE = 1.1


class JudgeAgreement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the old judge's verdicts agree with the new judge's, and with its own where it judged an output again.

    Attributes:
        kappa: Cohen's kappa of old against new; None where one of them gives one verdict throughout.
        interval: Its interval.
        retests: How many outputs the old judge judged more than once.
        retest_kappa: The kappa of its first verdict against its second.
        retest_interval: The interval of that.
    """

    kappa: float | None
    interval: Interval | None
    retests: int = 0
    retest_kappa: float | None = None
    retest_interval: Interval | None = None


class JudgesByPeople(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Both judges against the same labels of people.

    Attributes:
        labels: The labelled outputs.
        before: How far the old judge is from people on average: the share of wrong verdicts, or the absolute error.
        now: The same of the new judge.
        difference: New minus old: below 0 the new judge is better.
        interval: Its interval.
        passes_failed: Of what people failed, the share that each judge passes; None for scores, or without any.
        fails_passed: Of what people passed, the share that each judge fails.
        closer: Which judge is closer to people, beyond chance; None where that is open.
    """

    labels: int
    before: float
    now: float
    difference: float
    interval: Interval | None
    passes_failed: tuple[float, float] | None = None
    fails_passed: tuple[float, float] | None = None
    closer: Literal["before", "now"] | None = None


class UnevenCohort(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one exchange rate leaves of the difference in a cohort; p by permutation, after Holm's correction."""

    label: str
    left: float
    p_value: float
    is_uneven: bool


class ExchangeRate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pass mark of the new judge that gives the pass-rate of the old one.

    Attributes:
        old_mark: The pass mark of the old judge; None where it has none for all outputs.
        mark: What stands for it; None where there is no such mark.
        interval: The marks under which the pass-rates may be the same.
        left: What is left of the difference of the pass-rates under this mark.
        left_bounds: Its one-sided bounds.
        spearman: The rank correlation of the scores; None where all scores of a judge are equal.
        spearman_interval: Its interval.
        cohorts: What is left in each cohort.
        refused: Why there is no exchange rate, as half a sentence; None where there is one.
    """

    old_mark: float | None = None
    mark: float | None = None
    interval: Interval | None = None
    left: float | None = None
    left_bounds: Interval | None = None
    spearman: float | None = None
    spearman_interval: Interval | None = None
    cohorts: tuple[UnevenCohort, ...] = ()
    refused: str | None = None


class MetricJudgeChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric whose outputs two judges have scored.

    Attributes:
        answer: What the numbers of the old judge are worth.
        because: Why, as half a sentence.
        needed: How many outputs would decide it; None where it is decided, or nothing says how many.
        changed: What is different about the judge, as half a sentence.
        outputs: The outputs that both judges scored.
        left_out: The outputs that only one of them scored.
        pass_rate: The difference of the pass-rates, new minus old.
        mean: The difference of the mean scores.
        cohorts: The difference of the pass-rates by cohort; their intervals hold together.
        criteria: The difference of the mean values of each criterion, where it is judged by several.
        only_before: Outputs that pass under the old judge only.
        only_now: Outputs that pass under the new judge only.
        flips: Some of them, those first whose scores lie furthest apart, with both reasons.
        agreement: How the verdicts agree.
        exchange: The exchange rate of the pass mark.
        people: Both judges against labels of people; None without labels.
    """

    answer: JudgeAnswer
    because: str
    needed: int | None = None
    changed: str = ""
    outputs: int
    left_out: int = 0
    pass_rate: Difference
    mean: Difference
    cohorts: dict[str, Difference]
    criteria: dict[str, Difference] = {}
    only_before: int
    only_now: int
    flips: tuple[ComparedSample, ...] = ()
    agreement: JudgeAgreement
    exchange: ExchangeRate
    people: JudgesByPeople | None = None


class PastDecision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a gate decided of a run under the old judge, and of the same outputs under the new one."""

    run: str
    judged_again: str
    before: str
    now: str

    @property
    def outcome(self) -> Literal["same", "changed", "inconclusive"]:
        """What became of the decision."""
        if "inconclusive" in (self.before, self.now):
            return "inconclusive"
        return "same" if self.before == self.now else "changed"


class JudgeChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two judges of the same outputs.

    Attributes:
        answer: What the numbers of the old judge are worth: the worst answer of a metric.
        margin: How far numbers may lie apart where one judge stands for the other.
        cohort_margin: The same in a cohort.
        metrics: Each metric whose judge changed.
        past_decisions: What became of the decisions of the suite's gate, where both judges judged the outputs.
    """

    answer: JudgeAnswer
    margin: float = MARGIN
    cohort_margin: float = COHORT_MARGIN
    metrics: dict[str, MetricJudgeChange]
    past_decisions: tuple[PastDecision, ...] = ()

    @property
    def deciding(self) -> str:
        """The first metric whose answer is that of all."""
        return next(name for name, metric in self.metrics.items() if metric.answer == self.answer)


class JudgedOutputs(NamedTuple):
    """The scores that two judges gave the same outputs, one row for each output.

    Attributes:
        old: The old scores.
        new: The new scores.
        old_passed: Whether each output passes under the old judge.
        new_passed: Whether it passes under the new one.
        units: The unit of each output: its sample, or its cluster.
        cohorts: The rows of each cohort.
        old_mark: The pass mark of the old judge; None where it has none for all outputs.
        new_is_loss: Whether a lower new score is better.
        old_is_loss: Whether a lower old score is better.
        criteria: What both judges said of each criterion of a rubric; NaN where one said nothing.
    """

    old: Floats
    new: Floats
    old_passed: Bools
    new_passed: Bools
    units: Rows
    cohorts: Mapping[str, Rows]
    old_mark: float | None = None
    new_is_loss: bool = False
    old_is_loss: bool = False
    criteria: Mapping[str, tuple[Floats, Floats]] = {}


def worst_answer(answers: Sequence[JudgeAnswer]) -> JudgeAnswer:
    """The answer of several metrics together.

    >>> worst_answer(["interchangeable", "linked"])
    'linked'
    """
    return next(answer for answer in _WORST_FIRST if answer in answers)


def compare_judges(outputs: JudgedOutputs, *, confidence: float, seed: int) -> MetricJudgeChange:
    """Say what the numbers of the old judge are worth beside those of the new one.

    Args:
        outputs: What both judges scored; at least one output.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.
    """
    shift = _Shift(outputs, confidence)
    pass_rate = shift.of(outputs.old_passed, outputs.new_passed)
    mean = shift.of(outputs.old, outputs.new)
    together = shared_confidence(len(outputs.cohorts), confidence)
    cohorts = {
        label: shift.of(outputs.old_passed, outputs.new_passed, rows=rows, wide=together)
        for label, rows in outputs.cohorts.items()
    }
    criteria = {
        name: shift.of(old, new, rows=np.flatnonzero(~np.isnan(old) & ~np.isnan(new)))
        for name, (old, new) in outputs.criteria.items()
    }
    exchange = _exchange(outputs, confidence=confidence, seed=seed)

    checks = [
        _Check("the pass-rate", pass_rate, MARGIN),
        _Check("the mean score", mean, MARGIN),
        *(_Check(f"the criterion `{name}`", number, MARGIN) for name, number in criteria.items() if number.n),
        *(_Check(f"the pass-rate of `{label}`", number, COHORT_MARGIN) for label, number in cohorts.items()),
    ]
    verdict = _decide(checks, exchange, outputs=len(outputs.old))
    from deemster.agreement.smoothed_kappa import smoothed_kappa  # noqa: PLC0415 - every run would load 32 files for it

    kappa, interval = smoothed_kappa(
        outputs.old_passed, outputs.new_passed, outputs.units, confidence=confidence, seed=seed
    )
    return MetricJudgeChange(
        answer=verdict.answer,
        because=verdict.because,
        needed=verdict.needed,
        outputs=len(outputs.old),
        pass_rate=pass_rate,
        mean=mean,
        cohorts=cohorts,
        criteria=criteria,
        only_before=int(np.count_nonzero(outputs.old_passed & ~outputs.new_passed)),
        only_now=int(np.count_nonzero(~outputs.old_passed & outputs.new_passed)),
        agreement=JudgeAgreement(kappa=kappa, interval=interval),
        exchange=exchange,
    )


class _Shift:
    """Differences of two judges over the same outputs."""

    def __init__(self, outputs: JudgedOutputs, confidence: float) -> None:
        self._units = outputs.units
        self._confidence = confidence

    def of(
        self, old: NDArray[np.generic], new: NDArray[np.generic], *, rows: Rows | None = None, wide: float | None = None
    ) -> Difference:
        """The difference of a number, new minus old, in some rows; its bounds are those of one number.

        Args:
            old: The number of each output under the old judge.
            new: The same under the new one.
            rows: The rows; all unless given.
            wide: The level of its interval where several hold together.
        """
        chosen = slice(None) if rows is None else rows
        before = old[chosen].astype(np.float64)
        now = new[chosen].astype(np.float64)
        totals, sizes = unit_sums(now - before, self._units[chosen])
        paired = paired_difference(totals, sizes, confidence=self._confidence)
        shown = paired if wide is None else paired_difference(totals, sizes, confidence=wide)
        n_up = int(np.count_nonzero(now > before))
        n_down = int(np.count_nonzero(now < before))
        return Difference(
            n=len(before),
            units=paired.n,
            baseline=exact_mean(before),
            candidate=exact_mean(now),
            difference=paired.value,
            interval=interval_ends(shown.interval),
            method=None if shown.interval is None else shown.interval.method,
            lower_bound=paired.lower_bound,
            upper_bound=paired.upper_bound,
            p_value=paired.p_value,
            effect=paired.effect,
            better=n_up,
            equal=len(before) - n_up - n_down,
            worse=n_down,
        )


class _Check(NamedTuple):
    """A difference that is held to a margin."""

    name: str
    number: Difference
    margin: float

    @property
    def is_within(self) -> bool:
        """Whether both one-sided bounds lie within the margin: all must, so that none needs a correction."""
        low, high = self.number.lower_bound, self.number.upper_bound
        return low is not None and high is not None and -self.margin < low and high < self.margin

    @property
    def is_moved(self) -> bool:
        """Whether the interval leaves out 0, and so shows that the judges differ."""
        interval = self.number.interval
        return interval is not None and interval.leaves_out_zero

    def needed(self, outputs: int) -> int | None:
        """About how many outputs show that nothing moved beyond the margin, if nothing did."""
        number = self.number
        units = samples_to_certify(self.margin, self._noise, power=_POWER)
        return None if units is None else math.ceil(max(units / number.units, _MORE) * outputs)

    @property
    def _noise(self) -> PairedNoise:
        number = self.number
        if number.effect and number.difference is not None:
            return PairedNoise(sd=abs(number.difference / number.effect))
        return PairedNoise(flip_rate=(number.better + number.worse) / number.n)


class _Verdict(NamedTuple):
    answer: JudgeAnswer
    because: str
    needed: int | None = None


def _decide(checks: Sequence[_Check], exchange: ExchangeRate, *, outputs: int) -> _Verdict:
    """The answer of one metric, and why."""
    correlation = exchange.spearman_interval
    if correlation is not None and correlation.high < _RELATED:
        return _Verdict("not-comparable", _unrelated(exchange))

    open_checks = [check for check in checks if not check.is_within]
    if not open_checks:
        return _Verdict("interchangeable", "no number moves beyond its margin")

    moved = next((check for check in open_checks if check.is_moved), None)
    if moved is None:
        needed = [check.needed(outputs) for check in open_checks]
        known = [count for count in needed if count is not None]
        worst = open_checks[needed.index(max(known))] if known else open_checks[0]
        because = f"{worst.name} may still differ by more than {100 * worst.margin:.3g} points"
        return _Verdict("not-enough-data", because, max(known, default=None))
    if exchange.refused is None:
        return _Verdict("linked", f"{moved.name} {_describe_move(moved.number)}, and one pass mark makes up for it")
    if needed_for_link := _needed_for_link(exchange, outputs):
        return _Verdict("not-enough-data", exchange.refused, needed_for_link)
    return _Verdict("not-comparable", f"{moved.name} {_describe_move(moved.number)}, and {exchange.refused}")


def _describe_move(number: Difference) -> str:
    change = number.difference or 0.0
    return f"{'falls' if change < 0 else 'rises'} by {abs(100 * change):.1f} points"


def _unrelated(exchange: ExchangeRate) -> str:
    return f"the scores do not rise and fall together (rank correlation {exchange.spearman or 0.0:.2f})"


def _needed_for_link(exchange: ExchangeRate, outputs: int) -> int | None:
    """About how many outputs would show that an exchange rate holds; None where no number of them would."""
    if any(cohort.is_uneven for cohort in exchange.cohorts):
        return None
    if exchange.spearman is None or exchange.spearman_interval is None or exchange.spearman <= _RELATED:
        return None

    distance = math.atanh(min(exchange.spearman, 1 - 1e-9)) - math.atanh(_RELATED)
    reach = math.atanh(min(exchange.spearman, 1 - 1e-9)) - math.atanh(max(-1 + 1e-9, exchange.spearman_interval.low))
    times = (reach / distance) ** 2
    if exchange.left is not None and exchange.left_bounds is not None:
        room = COHORT_MARGIN - abs(exchange.left)
        if room <= 0:
            return None
        half_width = max(exchange.left_bounds.high - exchange.left, exchange.left - exchange.left_bounds.low)
        times = max(times, (half_width / room) ** 2)
    return math.ceil(outputs * times) if times > 1 else None


def _exchange(outputs: JudgedOutputs, *, confidence: float, seed: int) -> ExchangeRate:
    """The exchange rate of the pass mark, or why there is none."""
    old = -outputs.old if outputs.old_is_loss else outputs.old
    new = -outputs.new if outputs.new_is_loss else outputs.new
    correlation = spearman_interval(old, new, outputs.units, confidence=confidence)
    link = link_pass_mark(outputs.old_passed, new, outputs.units, confidence=confidence)
    if link is None:
        n_passed = int(np.count_nonzero(outputs.old_passed))
        verb, count = ("pass", n_passed) if n_passed < FEWEST_OF_A_KIND else ("fail", len(new) - n_passed)
        return ExchangeRate(refused=f"too few outputs {verb} under the old judge to link its pass mark ({count})")

    rho, rho_interval = correlation or (None, None)
    low, high = link.interval
    cohorts = _cohorts_left(outputs, link, seed=seed)
    exchange = ExchangeRate(
        old_mark=outputs.old_mark,
        mark=-link.mark if outputs.new_is_loss else link.mark,
        interval=Interval(-high, -low) if outputs.new_is_loss else link.interval,
        left=link.left.value,
        left_bounds=Interval(link.left.lower_bound or 0.0, link.left.upper_bound or 0.0),
        spearman=rho,
        spearman_interval=rho_interval,
        cohorts=cohorts,
    )
    return msgspec.structs.replace(exchange, refused=next(_refusals(exchange), None))


def _refusals(exchange: ExchangeRate) -> Iterator[str]:
    """Why there is no exchange rate that holds."""
    if exchange.spearman_interval is None:
        yield "the scores do not differ enough to be linked"
    elif exchange.spearman_interval.low < _RELATED:
        yield _unrelated(exchange)

    uneven = [cohort for cohort in exchange.cohorts if cohort.is_uneven]
    if uneven:
        worst = max(uneven, key=lambda cohort: abs(cohort.left))
        side = "above" if worst.left > 0 else "below"
        apart = f"{abs(100 * worst.left):.0f} points {side} the old judge"
        yield f"one pass mark would be unfair: it leaves `{worst.label}` {apart}"

    bounds = exchange.left_bounds
    if bounds is not None and not -COHORT_MARGIN < bounds.low <= bounds.high < COHORT_MARGIN:
        yield f"no pass mark is shown to give the old pass-rate within {100 * COHORT_MARGIN:.0f} points"


def _cohorts_left(outputs: JudgedOutputs, link: ScoreLink, *, seed: int) -> tuple[UnevenCohort, ...]:
    """What the link leaves in each cohort, and whether that is beyond chance and beyond the margin of a cohort."""
    if not outputs.cohorts:
        return ()
    left = link.passed.astype(np.float64) - outputs.old_passed
    sums, sizes = unit_sums(left, outputs.units)
    _, unit_of_row = np.unique(outputs.units, return_inverse=True)
    counts = [np.bincount(unit_of_row[rows], minlength=len(sizes)) for rows in outputs.cohorts.values()]
    members = np.stack(counts, axis=1).astype(np.float64)
    p_values = permuted_group_tests(sums / sizes, members, seed=seed)
    adjusted = holm(p_values, level=_PERMUTATION_LEVEL).adjusted

    cohorts = []
    for (label, rows), p_value in zip(outputs.cohorts.items(), adjusted, strict=True):
        change = paired_difference(*unit_sums(left[rows], outputs.units[rows]))
        interval = interval_ends(change.interval) or Interval(-1.0, 1.0)
        is_slight = interval.low > -COHORT_MARGIN and interval.high < COHORT_MARGIN
        is_uneven = p_value is not None and p_value < _PERMUTATION_LEVEL and not is_slight
        cohorts.append(UnevenCohort(label=label, left=change.value or 0.0, p_value=p_value or 0.0, is_uneven=is_uneven))
    return tuple(cohorts)
