"""Calibrates a judge cascade: the confidence threshold, its accuracy and cost with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, Final

import msgspec
import numpy as np

from deemster.agreement._bootstrap_replicates import BootstrapSettings
from deemster.agreement._cascade_outcomes import CascadeOutcomes, cascade_outcomes
from deemster.agreement._criterion_columns import Floats, Indices
from deemster.datasets import Votes
from deemster.errors import InputError, Issue, did_you_mean, visible
from deemster.formats.json_values import is_number, name_kind
from deemster.stats.bootstrap_resampling import resample_blocks
from deemster.stats.confidence_interval import ConfidenceInterval, normal_quantile
from deemster.stats.proportion_intervals import wilson
from deemster.stats.student_distribution import t_quantile

REPLICATES: Final = 2000
METHOD: Final = "simultaneous"
# Two items with every cell right and two with none are added, so that no share is certain.
_PRIOR_ITEMS: Final = 2
_FEWEST_ITEMS: Final = 2


class CascadePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy and cost of a cascade at one threshold.

    Attributes:
        threshold: The cheap judge's vote stands where its confidence is at least this; None where it never stands.
        accuracy: The share of cells whose verdict is the truth. A cell without a verdict is not right.
        accuracy_ci: Holds at all thresholds at once, so also at the one that was chosen by looking.
        cost_per_item: The mean cost of an item, by the costs given.
        cost_ci: Its interval, at all thresholds at once.
        escalation_share: The share of cells that the strong panel is asked about.
        escalation_ci: Its interval, at all thresholds at once.
        n_escalated: How many cells these are.
        n_unanswered: Cells that end without a verdict.
    """

    threshold: float | None
    accuracy: float
    accuracy_ci: ConfidenceInterval
    cost_per_item: float
    cost_ci: ConfidenceInterval
    escalation_share: float
    escalation_ci: ConfidenceInterval
    n_escalated: int
    n_unanswered: int


class CascadeCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """Every threshold of a cascade, and the cheapest one that is accurate enough.

    Attributes:
        cheap: The judge that is asked first.
        strong: The judges that are asked where it is not believed.
        costs: What one answer of each costs.
        tolerance: How much accuracy may be given up.
        confidence: The level of the intervals.
        seed: The seed of the draws.
        fresh_items: The size of the run that the intervals speak of; None for the long run.
        n_items: Items with at least one cell that counts.
        n_cells: Cells that count: truth, cheap vote and strong vote are there, and the truth is no abstention.
        n_left_out: Labelled cells that a judge was not asked about.
        n_forced: Cells that always escalate: the cheap judge abstained, failed, or stated no confidence.
        factor: How many standard errors the intervals reach, in place of the 1.96 that would do for one threshold.
        points: The points, by rising threshold.
        best: The place of the highest accuracy, the cheapest where several have it.
        chosen: The place of the cheapest point within the tolerance of the best.
        optimism: By how much the accuracy of a chosen threshold is overstated on the items it was chosen on.
        expected_accuracy: The accuracy of the chosen point without that.
        cheap_only: Accuracy of the cheap judge alone.
        cheap_cost: What the cheap judge alone costs per item.
        strong_only: Accuracy of the strong panel alone.
        strong_cost: What the strong panel alone costs per item.
    """

    cheap: str
    strong: tuple[str, ...]
    costs: dict[str, float]
    tolerance: float
    confidence: float
    seed: int
    fresh_items: int | None
    n_items: int
    n_cells: int
    n_left_out: int
    n_forced: int
    factor: float
    points: tuple[CascadePoint, ...]
    best: int
    chosen: int
    optimism: float
    expected_accuracy: float
    cheap_only: float
    cheap_cost: float
    strong_only: float
    strong_cost: float

    @property
    def choice(self) -> CascadePoint:
        """The cheapest point within the tolerance of the best."""
        return self.points[self.chosen]

    @property
    def pays(self) -> bool:
        """Whether the chosen cascade costs less than the strong panel alone."""
        return self.choice.threshold is not None and self.choice.cost_per_item < self.strong_cost


def calibrate_cascade(
    votes: Votes,
    *,
    cheap: str,
    strong: Sequence[str],
    costs: Mapping[str, float],
    tolerance: float = 0.01,
    confidence: float = 0.95,
    seed: int = 0,
    fresh_items: int | None = None,
) -> CascadeCalibration:
    """Find the cheapest threshold of a cascade from stored votes, with intervals that hold although it was chosen.

    The cheap judge's vote on a criterion stands where its confidence reaches the threshold: the probability it gave the
    verdict, else the share of its repeats that say the same. Otherwise, and wherever it abstained, failed or stated no
    confidence, the strong panel's verdict stands. Accuracy counts cells, cost is per item; items are the units drawn.

    A threshold chosen for its accuracy looks better than it is. The intervals therefore hold at every threshold at
    once, for accuracy, cost and escalation together: their ends lie ``factor`` standard errors away, the quantile of
    the largest deviation at any threshold over bootstrap replicates of the items (Wilson's form for shares, so that no
    share is certain). ``optimism`` is the mean over replicates of the accuracy at the threshold chosen on the
    replicate, minus the accuracy there on all items.

    The strong panel must have been asked about items chosen without regard to the cheap judge, best all of them.

    References: B. Efron, Estimating the error rate of a prediction rule, JASA 78 (1983); R. G. Miller, Simultaneous
    Statistical Inference (1981).

    Args:
        votes: Votes of all these judges, with truth.
        cheap: The judge that is asked first; its votes have `p` or repeats.
        strong: The judges that are asked where it is not believed, joined by the rules of the votes.
        costs: What one answer (one criterion of one item, one repeat) costs, by judge.
        tolerance: How much accuracy below the best may be given up for a lower cost.
        confidence: The level of the intervals.
        seed: The seed of the draws.
        fresh_items: The size of the run that the intervals speak of; None for the long run.

    Raises:
        InputError: A judge is unknown, a cost is missing or negative, the cheap judge states no confidence anywhere,
            fewer than two items can be used, or an argument is not as described.
    """
    options = BootstrapSettings(replicates=REPLICATES, confidence=confidence, seed=seed).checked()
    _check_judges(votes, cheap, strong, costs)
    _check_numbers(tolerance, fresh_items)
    outcomes = cascade_outcomes(votes, cheap=cheap, strong=strong, costs=costs)
    if len(outcomes.cells) < _FEWEST_ITEMS:
        n = len(outcomes.cells)
        raise InputError(f"A cascade needs at least {_FEWEST_ITEMS} items with a truth and votes of both; {n} have.")
    known = {judge: float(costs[judge]) for judge in (cheap, *strong)}
    return _calibration(outcomes, options, known, tolerance=float(tolerance), fresh_items=fresh_items)


def _calibration(
    outcomes: CascadeOutcomes,
    options: BootstrapSettings,
    costs: dict[str, float],
    *,
    tolerance: float,
    fresh_items: int | None,
) -> CascadeCalibration:
    """Compute every point and choose one; the first judge with a cost is the cheap one."""
    cheap, *strong = costs
    accuracy, cost = outcomes.accuracy, outcomes.cost
    chosen = _cheapest(accuracy[:, None], cost[:, None], tolerance)[0]
    deviation, optimism = _replicate_deviations(outcomes, tolerance, options.replicates, options.seed)
    factor = _interval_factor(deviation, options.confidence, len(outcomes.cells))
    places = range(len(accuracy))
    points = tuple(_point(outcomes, place, factor, options.confidence, fresh_items) for place in places)
    best = int(np.lexsort((cost, -accuracy))[0])
    return CascadeCalibration(
        cheap=cheap,
        strong=tuple(strong),
        costs=costs,
        tolerance=tolerance,
        confidence=options.confidence,
        seed=options.seed,
        fresh_items=fresh_items,
        n_items=len(outcomes.cells),
        n_cells=int(outcomes.cells.sum()),
        n_left_out=outcomes.n_left_out,
        n_forced=outcomes.n_forced,
        factor=factor,
        points=points,
        best=best,
        chosen=int(chosen),
        optimism=optimism,
        expected_accuracy=min(max(float(accuracy[chosen]) - optimism, 0.0), 1.0),
        cheap_only=outcomes.cheap_right / int(outcomes.cells.sum()),
        cheap_cost=outcomes.cheap_cost,
        strong_only=float(accuracy[-1]),
        strong_cost=float(cost[-1]) - outcomes.cheap_cost,
    )


def _check_judges(votes: Votes, cheap: str, strong: Sequence[str], costs: Mapping[str, float]) -> None:
    if not isinstance(votes, Votes):
        raise InputError(f"`votes` are Votes, not {name_kind(votes)}; read a file with `Votes.load`.")
    known = [judge.id for judge in votes.judges]
    judges = [cheap, *([strong] if isinstance(strong, str) else strong)]
    issues = [
        f"No judge is called `{visible(str(judge), limit=60)}`. {did_you_mean(str(judge), known)}"
        for judge in judges
        if judge not in known
    ]
    if isinstance(strong, str) or not strong:
        issues.append("`strong` is a list of at least one judge.")
    if len(set(judges)) < len(judges):
        issues.append("A judge stands twice in the cascade; the cheap one and the strong ones are different judges.")
    for judge in dict.fromkeys(judges):
        cost: Any = costs.get(judge)
        if not is_number(cost) or cost < 0:
            problem = "is missing" if cost is None else f"is a number from 0 on, not {cost!r:.40}"
            issues.append(f"The cost of `{visible(str(judge), limit=60)}` {problem}.")
    if issues:
        raise InputError([Issue(message) for message in issues])


def _check_numbers(tolerance: float, fresh_items: int | None) -> None:
    issues = []
    if not is_number(tolerance) or not 0 <= tolerance < 1:
        issues.append(f"`tolerance` is a share from 0 to below 1, not {tolerance!r:.40}.")
    if fresh_items is not None and (type(fresh_items) is not int or fresh_items < 1):
        issues.append(f"`fresh_items` is a whole number from 1 on, or None, not {fresh_items!r:.40}.")
    if issues:
        raise InputError([Issue(message) for message in issues])


def _cheapest(accuracy: Floats, cost: Floats, tolerance: float) -> Indices:
    """The place of the cheapest threshold within the tolerance of the best, in each column."""
    # The slack admits a difference of exactly the tolerance despite rounding.
    enough = accuracy >= accuracy.max(axis=0) - tolerance - 1e-12
    places: Indices = np.where(enough, cost, np.inf).argmin(axis=0)
    return places


def _replicate_deviations(
    outcomes: CascadeOutcomes, tolerance: float, replicates: int, seed: int
) -> tuple[Floats, float]:
    """The largest deviation at any threshold in standard errors, by replicate; and the mean optimism."""
    accuracy, cost, share = outcomes.accuracy, outcomes.cost, outcomes.share
    parts: list[list[Floats]] = [[], [], []]
    optimism: list[Floats] = []
    for counts in resample_blocks(len(outcomes.cells), replicates, seed, dtype=np.float64):
        cells, items = outcomes.cells @ counts, counts.sum(axis=0)
        drawn = (
            outcomes.right.T @ counts / cells,
            outcomes.spent.T @ counts / items,
            outcomes.escalated.T @ counts / cells,
        )
        for part, found, known in zip(parts, drawn, (accuracy, cost, share), strict=True):
            part.append(found - known[:, None])
        places = _cheapest(drawn[0], drawn[1], tolerance)
        optimism.append(np.take_along_axis(drawn[0], places[None], axis=0)[0] - accuracy[places])
    deviations = [np.concatenate(part, axis=1) for part in parts]
    largest = np.zeros(replicates)
    for deviation in deviations:
        error = np.sqrt(np.square(deviation).mean(axis=1))
        # A point that never varies has no deviation in standard errors.
        varied = error > 1e-12
        if varied.any():
            largest = np.maximum(largest, (np.abs(deviation[varied]) / error[varied, None]).max(axis=0))
    return largest, float(np.concatenate(optimism).mean())


def _interval_factor(largest: Floats, confidence: float, items: int) -> float:
    """How many standard errors an interval reaches: at least what one threshold takes, more where items are few."""
    plain = normal_quantile(confidence)
    widened = t_quantile(confidence, max(items - 1, 1)) / plain
    return max(plain, float(np.quantile(largest, confidence))) * widened


def _point(outcomes: CascadeOutcomes, place: int, factor: float, confidence: float, fresh: int | None) -> CascadePoint:
    cells, items = outcomes.cells, len(outcomes.cells)
    wider = 1.0 if fresh is None else 1.0 + items / fresh
    accuracy, share, cost = (float(part[place]) for part in (outcomes.accuracy, outcomes.share, outcomes.cost))
    right_ci = _share_interval(outcomes.right[:, place], cells, factor, wider, confidence)
    share_ci = ConfidenceInterval(1.0, 1.0, confidence, method=METHOD)
    if outcomes.thresholds[place] is not None:
        share_ci = _share_interval(outcomes.escalated[:, place], cells, factor, wider, confidence)
    error = float(np.std(outcomes.spent[:, place], ddof=1)) / math.sqrt(items)
    reach = factor * error * math.sqrt(wider)
    # A cost that does not vary on these items varies elsewhere with the share that escalates.
    slope = outcomes.mean_strong_cost * float(cells.mean())
    lower = cost - max(reach, slope * (share - share_ci.lower))
    upper = cost + max(reach, slope * (share_ci.upper - share))
    return CascadePoint(
        threshold=outcomes.thresholds[place],
        accuracy=accuracy,
        accuracy_ci=right_ci,
        cost_per_item=cost,
        cost_ci=ConfidenceInterval(max(lower, 0.0), upper, confidence, method=METHOD),
        escalation_share=share,
        escalation_ci=share_ci,
        n_escalated=int(outcomes.escalated[:, place].sum()),
        n_unanswered=int(outcomes.unanswered[place]),
    )


def _share_interval(hits: Floats, cells: Floats, factor: float, wider: float, confidence: float) -> ConfidenceInterval:
    """Wilson's interval with the size that clustered cells are worth, reaching so many standard errors."""
    size = _effective_cells(hits, cells) / wider
    share = float(hits.sum() / cells.sum())
    level = 2 * NormalDist().cdf(factor) - 1
    found = wilson(size if share == 1 else share * size, size, confidence=min(level, 1 - 1e-15)).interval
    if found is None:
        return ConfidenceInterval(0.0, 1.0, confidence, method=METHOD)
    return ConfidenceInterval(found.lower, found.upper, confidence, method=METHOD)


def _effective_cells(hits: Floats, cells: Floats) -> float:
    """How many independent cells the cells of these items are worth, of a share and its error with the prior items."""
    mean = float(cells.mean())
    sizes = np.concatenate((cells, np.full(2 * _PRIOR_ITEMS, mean)))
    successes = np.concatenate((hits, np.full(_PRIOR_ITEMS, mean), np.zeros(_PRIOR_ITEMS)))
    share = successes.sum() / sizes.sum()
    rest = (successes - share * sizes) / mean
    spread = float(np.square(rest).sum()) / (len(sizes) - 1)
    size = share * (1 - share) * len(cells) / spread
    smallest = float(cells.sum()) ** 2 / float(np.square(cells).sum())
    return float(min(max(size, min(smallest, float(len(cells)))), float(cells.sum())))
