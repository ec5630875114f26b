"""The rule that says whether a judge can be trusted: yes, with care, not yet, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from deemster.agreement.result_models import (
    AnyCriterion,
    CriterionMetrics,
    HumanAgreement,
    NumericCriterionMetrics,
    OrdinalCriterionMetrics,
    interval_of,
)
from deemster.errors import plural, visible
from deemster.stats.confidence_interval import ConfidenceInterval, Interval, interval_ends
from deemster.stats.systematic_bias import SIGNIFICANCE
from deemster.text.number_format import count_criteria, format_number, format_percent

if TYPE_CHECKING:
    from deemster.agreement.metrics_result import MetricsResult

# Landis and Koch call kappa substantial from 0.61 on and moderate from 0.41 on.
SUBSTANTIAL = 0.61
MODERATE = 0.41
FULL_ENOUGH = 0.8
MEDIUM_EFFECT = 0.5
ENOUGH_ITEMS = 30
ENOUGH_CLUSTERS = 40
# Kappa of a class with fewer labels rests on a handful of verdicts.
ENOUGH_LABELS = 10
# Errors that go one way matter from this error rate on.
MOST_ONE_WAY = 0.2
# More disputed cells than this, and the rest is no fair sample of the question.
MOST_DISPUTED = 0.1

Answer: TypeAlias = Literal["yes", "with care", "not yet"]


class TrustVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to "can I trust this judge?", and what it rests on.

    Attributes:
        answer: The answer. None where mean kappa or its interval is undefined.
        floor: What it rests on: the lower end of the interval of mean kappa, or of the mean concordance of numeric
            criteria where that is lower. None where one of them has no interval.
        reasons: Why it is not a plain yes, each led by its code.
        notes: How the judge compares with people, and what that says about the question, each led by its code.
    """

    answer: Answer | None
    floor: float | None
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def reaches(self, least: Answer) -> bool:
        """Whether the answer is at least this good.

        >>> TrustVerdict(answer="with care", floor=0.5, reasons=()).reaches("yes")
        False
        """
        order = (None, "not yet", "with care", "yes")
        return order.index(self.answer) >= order.index(least)


def judge_trust(result: MetricsResult) -> TrustVerdict:
    """The answer to "can I trust this judge?".

    It is `yes` where the lower end of the interval of mean kappa is substantial and nothing speaks against it, `with
    care` where it is moderate or something does, and `not yet` below. Numeric criteria have their mean concordance in
    its place, by the same bounds: quadratic kappa is the concordance of options that stand for numbers. Where there are
    both, the lower of the two decides. It is None where one of them or its interval is undefined: an answer that rests
    on less must not be a milder one, and so does one that rests on items which nobody drew at random.
    """
    if result.sampling == "chosen":
        chosen = "not-random: the labelled outputs were picked, not drawn at random, so they do not speak for the rest"
        return TrustVerdict(answer=None, floor=None, reasons=(chosen,))
    floors = []
    for what, value, ends in _agreements(result):
        if value is None:
            unknown = (
                f"no-kappa: no criterion has a {what.removeprefix('mean ')}, so nothing tells agreement from chance"
            )
            return TrustVerdict(answer=None, floor=None, reasons=(unknown,))
        if ends is None:
            return TrustVerdict(answer=None, floor=None, reasons=(f"no-interval: {what} has no interval",))
        floors.append((ends[0], what))
    floor, what = min(floors)
    measured = f"the interval of {what} begins at {format_number(floor)}"
    notes = tuple(_notes_on_people(result.human)) if result.human is not None else ()
    if floor < MODERATE:
        low = f"low-kappa: {measured}, below {MODERATE}"
        return TrustVerdict(answer="not yet", floor=floor, reasons=(low,), notes=notes)
    reasons = tuple(_reservations(result, measured, floor))
    return TrustVerdict(answer="with care" if reasons else "yes", floor=floor, reasons=reasons, notes=notes)


def _agreements(result: MetricsResult) -> Iterator[tuple[str, float | None, Interval | None]]:
    """What is measured of verdicts and of numbers, with its interval; the lower of the two ends decides."""
    if result.n_numeric_criteria < result.n_criteria or not result.n_criteria:
        yield "mean kappa", result.mean_kappa, kappa_interval(result)
    if result.n_numeric_criteria:
        yield "mean concordance", result.mean_concordance, concordance_interval(result)


def _reservations(result: MetricsResult, measured: str, floor: float) -> Iterator[str]:
    weak, undefined = weak_criteria(result), undefined_criteria(result)
    effect, cover = result.bias.effect_size, result.coverage_stats
    if floor < SUBSTANTIAL:
        yield f"moderate: {measured}, below {SUBSTANTIAL}"
    if count_units(result) < ENOUGH_ITEMS:
        unit = "item" if result.bootstrap is None else result.bootstrap.unit
        yield f"few-items: {plural(count_units(result), unit)} only"
    if any(warning.startswith("few-clusters:") for warning in result.warnings):
        yield "few-clusters: there are few clusters"
    if weak:
        yield f"weak-criteria: {count_criteria(len(weak))} below {MODERATE}"
    if undefined:
        yield f"undefined-criteria: {count_criteria(len(undefined))} without a kappa"
    if rare := rare_classes(result):
        yield "rare-class: " + "".join(visible(piece, limit=60) for piece in rare)
    if (errors := one_way_errors(result)) is not None:
        yield f"one-way: {errors}"
    if result.bias.is_significant and effect is not None and abs(effect) >= MEDIUM_EFFECT:
        yield "bias: the bias is significant and not small"
    if cover is not None and cover.coverage is not None and cover.coverage < FULL_ENOUGH:
        yield f"coverage: coverage is below {format_percent(FULL_ENOUGH)}"
    disputed = _disputed_share(result)
    if disputed > MOST_DISPUTED:
        yield f"disputed: annotators are tied on {format_percent(disputed)} of the labelled cells"


def count_units(result: MetricsResult) -> int:
    """How many items stand alone: repetitions and clusters of items count once."""
    return result.n_units or result.n_items


def one_way_errors(result: MetricsResult) -> str | None:
    """What the judge does wrong, where its errors go one way beyond chance and are many; None elsewhere."""
    if result.one_way_p is None or result.one_way_p >= SIGNIFICANCE:
        return None
    lenient = result.passed_of_failed or 0.0
    strict = 0.0 if result.passed_of_passed is None else 1 - result.passed_of_passed
    if max(lenient, strict) < MOST_ONE_WAY:
        return None
    if lenient >= strict:
        return f"it passes {_share(result, 'passed_of_failed')} of what people fail"
    return f"it passes only {_share(result, 'passed_of_passed')} of what people pass"


def error_rates(result: MetricsResult) -> str | None:
    """Both error rates in words; None without a binary pair."""
    sentences = []
    for people, name in (("passed", "passed_of_passed"), ("failed", "passed_of_failed")):
        if getattr(result, name) is not None:
            sentences.append(f"Of what people {people}, it passed {_share(result, name)}.")
    return " ".join(sentences) or None


def _share(result: MetricsResult, name: str) -> str:
    """A share in per cent with the ends of its interval."""
    interval = (result.intervals or {}).get(name)
    percent = f"{100 * getattr(result, name):.0f} %"
    if interval is None or interval.ci is None:
        return percent
    return f"{percent} ({100 * interval.ci.lower:.0f} to {100 * interval.ci.upper:.0f})"


def _disputed_share(result: MetricsResult) -> float:
    """The share of labelled cells on which annotators are tied."""
    human = result.human
    return len(human.disputed) / human.n_labelled_cells if human is not None and human.n_labelled_cells else 0.0


def _notes_on_people(human: HumanAgreement) -> Iterator[str]:
    """How the panel agrees with people, and they with each other, on all cells that two of them labelled."""
    among, own = human.pairwise_kappa, human.panel_pairwise_kappa
    gap = (human.intervals or {}).get("pairwise_kappa_gap")
    if among is None or own is None or gap is None or gap.ci is None:
        yield from _notes_on_test(human)
        return
    both = f"kappa with a person {format_number(own)}, of two people {format_number(among)}"
    apart = f"difference {format_number(gap.ci.lower)} to {format_number(gap.ci.upper)}"
    if gap.ci.upper >= 0:
        yield f"as-people: the judge agrees with people about as well as they agree with each other ({both}; {apart})"
    else:
        yield f"below-people: the judge agrees with people less than they do with each other ({both}; {apart})"
    yield from _notes_on_test(human)
    if among < SUBSTANTIAL:
        yield (
            f"unreliable-question: two people agree only with a kappa of {format_number(among)}, so the criteria "
            "themselves are not clear enough: word them more sharply, give examples, and label again"
        )


def _notes_on_test(human: HumanAgreement) -> Iterator[str]:
    """Whether the judge could take the place of a person, where three or more labelled enough items."""
    tests = [test for test in (human.annotator_tests or {}).values() if test.passes is not None]
    passed = sum(test.passes is True for test in tests)
    if tests:
        rates = [test.value for test in tests if test.value is not None]
        yield (
            f"annotator-test: by the alternative annotator test (epsilon {format_number(tests[0].epsilon, places=2)}) "
            f"the judge may replace a person on {passed:,} of {count_criteria(len(tests))} "
            f"(mean winning rate {format_number(sum(rates) / len(rates), places=2)})"
        )


def rare_classes(result: MetricsResult) -> tuple[str, ...]:
    """The class with the fewest labels, in words; the second and the fourth piece are data. Nothing from ten on."""
    found = []
    for criterion in result.per_criterion:
        count, label = fewest_labels(criterion)
        if label is not None and count < ENOUGH_LABELS:
            found.append((count, label, criterion.name))
    if not found:
        return ()
    count, label, name = min(found, key=lambda one: one[0])
    others = f", and likewise on {count_criteria(len(found) - 1)}" if len(found) > 1 else ""
    return f"{plural(count, 'label')} of ", label, " on ", name, f", fewer than {ENOUGH_LABELS}{others}"


def fewest_labels(criterion: AnyCriterion) -> tuple[int, str | None]:
    """How many labels the rarest class of a criterion has, and which it is; None for a criterion without classes."""
    if isinstance(criterion, NumericCriterionMetrics):
        return 0, None
    if isinstance(criterion, CriterionMetrics):
        counts = {"MET": criterion.support_true, "UNMET": criterion.n_samples - criterion.support_true}
    else:
        counts = {option.label: option.support_true for option in criterion.per_option}
    return min(((count, label) for label, count in counts.items()), default=(0, None), key=lambda one: one[0])


def weak_criteria(result: MetricsResult) -> tuple[AnyCriterion, ...]:
    """The criteria with a kappa below moderate, the weakest first."""
    found = [(criterion_kappa(part), part.index, part) for part in result.per_criterion]
    weak = [(kappa, index, part) for kappa, index, part in found if kappa is not None and kappa < MODERATE]
    return tuple(part for _, _, part in sorted(weak, key=lambda one: one[:2]))


def undefined_criteria(result: MetricsResult) -> tuple[AnyCriterion, ...]:
    """The criteria without a kappa."""
    return tuple(part for part in result.per_criterion if criterion_kappa(part) is None)


def kappa_interval(result: MetricsResult) -> Interval | None:
    """The ends of the interval of mean kappa, where there is one."""
    found = interval_ends(interval_of(result.intervals, "mean_kappa"))
    if found is None and result.bootstrap is not None and result.bootstrap.kappa_ci is not None:
        return Interval(*result.bootstrap.kappa_ci)
    return found


def concordance_interval(result: MetricsResult) -> Interval | None:
    """The ends of the interval of mean concordance, where there is one."""
    return interval_ends(interval_of(result.intervals, "mean_concordance"))


def criterion_kappa(criterion: AnyCriterion) -> float | None:
    """The kappa of a criterion: quadratically weighted where its options are ordered, else Cohen's.

    Of a numeric criterion it is the concordance, which quadratic kappa is for options that stand for numbers.
    """
    if isinstance(criterion, NumericCriterionMetrics):
        return criterion.concordance
    return criterion.weighted_kappa if isinstance(criterion, OrdinalCriterionMetrics) else criterion.kappa


def criterion_interval(criterion: AnyCriterion) -> ConfidenceInterval | None:
    """The interval of `criterion_kappa`; None where it has none."""
    field = {"ordinal": "weighted_kappa", "numeric": "concordance"}.get(criterion.criterion_type, "kappa")
    return interval_of(criterion.intervals, field)
