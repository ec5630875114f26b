"""The rule that says whether a judge can be trusted: yes, with care, not yet, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from deemster.alignment.number_format import count_criteria, format_number, format_percent
from deemster.alignment.result_models import AnyCriterion, OrdinalCriterionMetrics
from deemster.errors import plural

if TYPE_CHECKING:
    from deemster.alignment.metrics_result import MetricsResult

# Landis and Koch call kappa substantial from 0.61 on and moderate from 0.41 on.
SUBSTANTIAL = 0.61
MODERATE = 0.41
FULL_ENOUGH = 0.8
MEDIUM_EFFECT = 0.5
# A judge that is never wrong on fewer items may still err in one of ten, and resampling cannot show it.
ENOUGH_ITEMS = 30

Answer: TypeAlias = Literal["yes", "with care", "not yet"]


class TrustVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to "can I trust this judge?", and what it rests on.

    Attributes:
        answer: The answer; None where kappa is undefined.
        floor: The kappa it rests on: the lower end of the interval of the mean, or the mean where there is no interval.
        reasons: Why it is not a plain yes, each led by its code.
    """

    answer: Answer | None
    floor: float | None
    reasons: tuple[str, ...]

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
    care` where it is moderate or something does, `not yet` below, and None where kappa is undefined.
    """
    ends = kappa_interval(result)
    floor = result.mean_kappa if ends is None else ends[0]
    if floor is None:
        unknown = "no-kappa: no criterion has a kappa, so nothing tells agreement from chance"
        return TrustVerdict(answer=None, floor=None, reasons=(unknown,))
    measured = f"{'mean kappa is' if ends is None else 'the interval of mean kappa begins at'} {format_number(floor)}"
    if floor < MODERATE:
        return TrustVerdict(answer="not yet", floor=floor, reasons=(f"low-kappa: {measured}, below {MODERATE}",))
    reasons = tuple(_reservations(result, measured, floor))
    return TrustVerdict(answer="with care" if reasons else "yes", floor=floor, reasons=reasons)


def _reservations(result: MetricsResult, measured: str, floor: float) -> Iterator[str]:
    weak, undefined = weak_criteria(result), undefined_criteria(result)
    effect, cover = result.bias.effect_size, result.coverage_stats
    if kappa_interval(result) is None:
        yield "no-interval: there is no interval"
    if floor < SUBSTANTIAL:
        yield f"moderate: {measured}, below {SUBSTANTIAL}"
    if result.n_items < ENOUGH_ITEMS:
        yield f"few-items: {plural(result.n_items, 'item')} only"
    if any(warning.startswith("few-clusters:") for warning in result.warnings):
        yield "few-clusters: there are few clusters"
    if weak:
        yield f"weak-criteria: {count_criteria(len(weak))} below {MODERATE}"
    if undefined:
        yield f"undefined-criteria: {count_criteria(len(undefined))} without a kappa"
    if result.bias.is_significant and effect is not None and abs(effect) >= MEDIUM_EFFECT:
        yield "bias: the bias is significant and not small"
    if cover is not None and cover.coverage is not None and cover.coverage < FULL_ENOUGH:
        yield f"coverage: coverage is below {format_percent(FULL_ENOUGH)}"


def weak_criteria(result: MetricsResult) -> tuple[AnyCriterion, ...]:
    """The criteria with a kappa below moderate, the weakest first."""
    found = [(criterion_kappa(part), part.index, part) for part in result.per_criterion]
    weak = [(kappa, index, part) for kappa, index, part in found if kappa is not None and kappa < MODERATE]
    return tuple(part for _, _, part in sorted(weak, key=lambda one: one[:2]))


def undefined_criteria(result: MetricsResult) -> tuple[AnyCriterion, ...]:
    """The criteria without a kappa."""
    return tuple(part for part in result.per_criterion if criterion_kappa(part) is None)


def kappa_interval(result: MetricsResult) -> tuple[float, float] | None:
    """The ends of the interval of mean kappa, where there is one."""
    found = (result.intervals or {}).get("mean_kappa")
    if found is not None and found.ci is not None:
        return found.ci.lower, found.ci.upper
    return result.bootstrap.kappa_ci if result.bootstrap is not None else None


def criterion_kappa(criterion: AnyCriterion) -> float | None:
    """The kappa of a criterion: quadratically weighted where its options are ordered, else Cohen's."""
    return criterion.weighted_kappa if isinstance(criterion, OrdinalCriterionMetrics) else criterion.kappa
