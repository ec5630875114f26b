"""Whether a judge can be trusted, by a rule that is told along with the answer."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from deemster.alignment.models import AnyCriterion, MetricsResult, OrdinalCriterionMetrics

# Landis and Koch call kappa substantial from 0.61 on and moderate from 0.41 on.
SUBSTANTIAL = 0.61
MODERATE = 0.41
FULL_ENOUGH = 0.8
MEDIUM_EFFECT = 0.5
# A judge that is never wrong on fewer items may still err in one of ten, and resampling cannot show it.
ENOUGH_ITEMS = 30

Trust: TypeAlias = Literal["yes", "with care", "not yet", "no verdict"]
Reservation: TypeAlias = Literal[
    "no interval", "moderate", "few items", "few clusters", "weak criteria", "undefined criteria", "bias", "coverage"
]


class Verdict(NamedTuple):
    """An answer and what it rests on.

    Attributes:
        trust: The answer.
        floor: The kappa it rests on: the lower end of the interval of the mean, or the mean where there is no interval.
        reservations: Why it is not a plain yes.
        weak: Criteria with a kappa below moderate, the weakest first.
        undefined: Criteria without a kappa.
    """

    trust: Trust
    floor: float | None
    reservations: tuple[Reservation, ...]
    weak: tuple[AnyCriterion, ...]
    undefined: tuple[AnyCriterion, ...]


def verdict(result: MetricsResult) -> Verdict:
    """The answer to "can I trust this judge?".

    It is `yes` where the lower end of the interval of mean kappa is substantial and nothing speaks against it, `with
    care` where it is moderate or something does, `not yet` below, and `no verdict` where kappa is undefined.
    """
    ends = kappa_ends(result)
    floor = result.mean_kappa if ends is None else ends[0]
    defined = [part for part in result.per_criterion if kappa_of(part) is not None]
    weak = sorted((part for part in defined if _kappa(part) < MODERATE), key=lambda part: (_kappa(part), part.index))
    undefined = tuple(part for part in result.per_criterion if kappa_of(part) is None)
    effect, cover = result.bias.effect_size, result.coverage_stats
    against: dict[Reservation, bool] = {
        "no interval": ends is None,
        "moderate": floor is not None and floor < SUBSTANTIAL,
        "few items": result.n_items < ENOUGH_ITEMS,
        "few clusters": any(warning.startswith("few-clusters:") for warning in result.warnings),
        "weak criteria": bool(weak),
        "undefined criteria": bool(undefined),
        "bias": result.bias.is_significant and effect is not None and abs(effect) >= MEDIUM_EFFECT,
        "coverage": cover is not None and cover.coverage is not None and cover.coverage < FULL_ENOUGH,
    }
    reservations = tuple(name for name, holds in against.items() if holds)
    if floor is None:
        trust: Trust = "no verdict"
    elif floor < MODERATE:
        trust = "not yet"
    else:
        trust = "with care" if reservations else "yes"
    return Verdict(trust, floor, reservations, tuple(weak), undefined)


def kappa_ends(result: MetricsResult) -> tuple[float, float] | None:
    """The ends of the interval of mean kappa, where there is one."""
    found = (result.intervals or {}).get("mean_kappa")
    if found is not None and found.ci is not None:
        return found.ci.lower, found.ci.upper
    return result.bootstrap.kappa_ci if result.bootstrap is not None else None


def kappa_of(criterion: AnyCriterion) -> float | None:
    """The kappa of a criterion: quadratically weighted where its options are ordered, else Cohen's."""
    return criterion.weighted_kappa if isinstance(criterion, OrdinalCriterionMetrics) else criterion.kappa


def _kappa(criterion: AnyCriterion) -> float:
    value = kappa_of(criterion)
    return 1.0 if value is None else value
