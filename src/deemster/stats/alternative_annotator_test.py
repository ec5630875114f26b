"""The alternative annotator test: whether a judge may replace a human annotator."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._label_codes import is_missing, unbox
from deemster.stats.multiple_testing import benjamini_yekutieli
from deemster.stats.student_distribution import t_cdf

FEWEST_ANNOTATORS = 3


class AnnotatorTrial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The judge against one annotator, both measured by the other annotators.

    Attributes:
        n: Items that the annotator, the judge and another annotator labelled.
        judge_wins: The share of them on which the judge agrees with the others at least as well. None without an item.
        annotator_wins: The share on which the annotator does. None without an item.
        p_value: Of the null hypothesis that the annotator is better by epsilon or more. None below the fewest items.
        adjusted_p: The p-value after correction for several annotators. None without a p-value.
        rejected: Whether the judge holds its own against this annotator.
    """

    n: int
    judge_wins: float | None
    annotator_wins: float | None
    p_value: float | None
    adjusted_p: float | None
    rejected: bool


class AlternativeAnnotator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The alternative annotator test.

    Attributes:
        value: The winning rate: the share of tested annotators against whom the judge holds its own. None where none
            was tested.
        n: How many annotators were tested.
        passes: Whether the winning rate is at least one half. None where no annotator was tested.
        advantage: The mean over tested annotators of the judge's winning share. None where none was tested.
        trials: For each annotator, tested or not.
        epsilon: The advantage that is given to the judge for being cheaper.
        q: The false discovery rate.
    """

    value: float | None
    n: int
    passes: bool | None
    advantage: float | None
    trials: dict[str | int, AnnotatorTrial]
    epsilon: float
    q: float


def alternative_annotator_test(
    judge: Sequence[Hashable] | NDArray[Any],
    annotators: Mapping[str, Sequence[Hashable]] | Sequence[Sequence[Hashable]] | NDArray[Any],
    *,
    ordinal: bool = False,
    epsilon: float = 0.2,
    q: float = 0.05,
    min_items: int = 30,
) -> AlternativeAnnotator:
    """Tests whether a judge agrees with people at least as well as they agree with each other.

    Each annotator j is left out in turn. On each item, the judge and j are scored by their agreement with the others
    (the share of equal labels; ``ordinal``: minus the root mean squared difference), and d = [j ≥ judge] - [judge ≥ j].
    A one-sided t test asks whether mean d < ε; the p-values are corrected by Benjamini and Yekutieli. The winning rate
    is the share of annotators rejected, and the judge passes from one half on. Undefined (None) where no annotator has
    ``min_items`` items; without spread p is 0 or 1.

    Reference: N. Calderon, R. Reichart, R. Dror, The alternative annotator test for LLM-as-a-judge, arXiv:2501.10970
    (2025).

    Args:
        judge: The judge's label of each item; None is missing.
        annotators: The labels of each annotator, by name or in rows.
        ordinal: Whether labels are numbers on a scale.
        epsilon: How much worse than an annotator the judge may be.
        q: The false discovery rate.
        min_items: The fewest items an annotator is tested on.

    Raises:
        ValueError: There are fewer than three annotators, rows differ in length, or an option is out of range.

    >>> people = {"a": [0, 1] * 20, "b": [0, 1] * 20, "c": [0, 1] * 18 + [1, 1, 1, 1]}
    >>> result = alternative_annotator_test([0, 1] * 20, people)
    >>> result.value, result.advantage, result.passes
    (1.0, 1.0, True)
    """
    check_test_options(epsilon=epsilon, q=q, min_items=min_items)
    named: dict[str | int, Sequence[Any]] = dict(
        annotators.items() if isinstance(annotators, Mapping) else enumerate(annotators)
    )
    if len(named) < FEWEST_ANNOTATORS:
        raise ValueError(f"The test needs at least three annotators; there are {len(named)}.")
    codes = _codes([judge, *named.values()], ordinal=ordinal)
    return annotator_trials(
        codes[0], codes[1:], tuple(named), ordinal=ordinal, epsilon=epsilon, q=q, min_items=min_items
    )


def check_test_options(*, epsilon: float, q: float, min_items: int) -> None:
    """Refuse options of the test that are out of range.

    Raises:
        ValueError: One is.
    """
    if not 0 <= epsilon < 1 or not 0 < q < 1 or min_items < 2:
        raise ValueError("`epsilon` lies in [0, 1), `q` in (0, 1), and there are at least two items for a test.")


def annotator_trials(
    judged: NDArray[np.float64],
    people: NDArray[np.float64],
    names: Sequence[str | int],
    *,
    ordinal: bool,
    epsilon: float = 0.2,
    q: float = 0.05,
    min_items: int = 30,
) -> AlternativeAnnotator:
    """The alternative annotator test of labels that are numbers already.

    Args:
        judged: The judge's label of each item; NaN is missing.
        people: The labels of each annotator, annotators by items; NaN is missing.
        names: The annotators.
        ordinal: Whether labels lie on a scale; otherwise they are compared by equality.
        epsilon: How much worse than an annotator the judge may be.
        q: The false discovery rate.
        min_items: The fewest items an annotator is tested on.
    """
    wins = [
        _wins(judged, people[place], np.delete(people, place, axis=0), ordinal=ordinal) for place in range(len(people))
    ]
    raw = [
        _p_value(annotator_better.astype(int) - judge_better, epsilon) if judge_better.size >= min_items else None
        for judge_better, annotator_better in wins
    ]
    return _verdict(names, wins, raw, epsilon=epsilon, q=q)


def _verdict(
    names: Sequence[str | int],
    wins: Sequence[tuple[NDArray[np.bool_], NDArray[np.bool_]]],
    raw: Sequence[float | None],
    *,
    epsilon: float,
    q: float,
) -> AlternativeAnnotator:
    family = benjamini_yekutieli(raw, level=q)
    trials = {
        name: AnnotatorTrial(
            n=judge_better.size,
            judge_wins=float(judge_better.mean()) if judge_better.size else None,
            annotator_wins=float(annotator_better.mean()) if judge_better.size else None,
            p_value=p,
            adjusted_p=adjusted,
            rejected=rejected,
        )
        for name, (judge_better, annotator_better), p, adjusted, rejected in zip(
            names, wins, raw, family.adjusted, family.rejected, strict=True
        )
    }
    tested = [trial for trial in trials.values() if trial.p_value is not None]
    value = sum(trial.rejected for trial in tested) / len(tested) if tested else None
    return AlternativeAnnotator(
        value=value,
        n=len(tested),
        passes=None if value is None else value >= 0.5,
        advantage=sum(trial.judge_wins or 0.0 for trial in tested) / len(tested) if tested else None,
        trials=trials,
        epsilon=epsilon,
        q=q,
    )


def _codes(rows: Sequence[ArrayLike | Sequence[Any]], *, ordinal: bool) -> NDArray[np.float64]:
    """The labels as numbers, NaN for missing: their values on a scale, else any number for each label."""
    lengths = {len(row) for row in rows}  # type: ignore[arg-type]
    if len(lengths) != 1:
        raise ValueError(f"The judge and every annotator have one label for each item; there are {sorted(lengths)}.")
    places: dict[Any, float] = {}

    def number(label: Any) -> float:
        if is_missing(label):
            return math.nan
        if not ordinal:
            return places.setdefault(label, float(len(places)))
        label = unbox(label)
        if not isinstance(label, int | float) or math.isinf(label):
            raise ValueError(f"Labels on a scale are numbers, not {label!r}.")
        return float(label)

    lists = [row.tolist() if isinstance(row, np.ndarray) else row for row in rows]
    return np.array([[number(label) for label in row] for row in lists], dtype=np.float64)  # type: ignore[union-attr]


def _wins(
    judge: NDArray[np.float64], annotator: NDArray[np.float64], others: NDArray[np.float64], *, ordinal: bool
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """On which usable items the judge, and the annotator, is at least as near to the others."""
    usable = ~np.isnan(judge) & ~np.isnan(annotator) & ~np.isnan(others).all(axis=0)
    rest, counts = others[:, usable], (~np.isnan(others[:, usable])).sum(axis=0)

    def distance(labels: NDArray[np.float64]) -> NDArray[np.float64]:
        gaps = np.square(rest - labels) if ordinal else np.where(np.isnan(rest), np.nan, rest != labels)
        return np.asarray(np.nansum(gaps, axis=0) / counts)

    from_judge, from_annotator = distance(judge[usable]), distance(annotator[usable])
    slack = 1e-12 * (1 + np.maximum(from_judge, from_annotator))
    return np.asarray(from_judge <= from_annotator + slack), np.asarray(from_annotator <= from_judge + slack)


def _p_value(differences: NDArray[np.int64], epsilon: float) -> float:
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    if spread == 0:
        return 0.0 if mean < epsilon else 1.0
    return t_cdf((mean - epsilon) / (spread / math.sqrt(differences.size)), differences.size - 1)
