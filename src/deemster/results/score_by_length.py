"""Scores against the length of outputs: whether longer outputs score higher or lower."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.results.metric_summary import mean_interval
from deemster.stats import exact_mean, spearman
from deemster.stats.confidence_interval import Interval, interval_ends

# Samples of about equal length are looked at together: the most groups, and the fewest samples of one.
_MOST_GROUPS = 8
_FEWEST_SAMPLES = 5
# Samples that lie close together are one point: so many steps of the length, on a logarithmic scale, and of the score.
_LENGTH_STEPS = 60
_SCORE_STEPS = 40


class LengthGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Samples whose outputs are about equally long.

    Attributes:
        shortest: The characters of the shortest output.
        longest: The characters of the longest output.
        n: Samples.
        mean: The mean of their scores.
        interval: The 95 % interval of the mean; None below two samples.
    """

    shortest: float
    longest: float
    n: int
    mean: float
    interval: Interval | None


class LengthPoint(NamedTuple):
    """Samples that lie close together in length and score."""

    chars: float
    score: float
    n: int


class LengthProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of one metric against the length of outputs, in characters.

    Attributes:
        n: Samples with an output and a score.
        correlation: Spearman's; None below three samples, or where all scores or all lengths are equal.
        interval: Its 95 % interval; None below five samples, and at -1 and 1.
        groups: Groups of about equally many samples, the shortest outputs first.
        points: The samples, those that lie close together as one.
    """

    n: int
    correlation: float | None
    interval: Interval | None
    groups: tuple[LengthGroup, ...]
    points: tuple[LengthPoint, ...]


def score_by_length(lengths: ArrayLike, scores: Sequence[float | None]) -> LengthProfile | None:
    """Compare the scores of samples with the length of their outputs. Undefined (None) without a sample that has both.

    Args:
        lengths: The characters of each sample's output, the mean over its repetitions.
        scores: The score of each sample, the mean over its repetitions; None where it has none.

    >>> profile = score_by_length([10, 20, 40, 80, 160, 320], [1.0, 0.9, 0.7, 0.7, 0.4, None])
    >>> profile.n, round(profile.correlation, 4), profile.groups[0].mean
    (5, -0.9747, 0.74)
    """
    chars = np.asarray(lengths, dtype=np.float64)
    values = np.array([np.nan if score is None else score for score in scores], dtype=np.float64)
    known = ~np.isnan(values)
    chars, values = chars[known], values[known]
    if not chars.size:
        return None
    found = spearman(chars, values)
    return LengthProfile(
        n=int(chars.size),
        correlation=found.value,
        interval=interval_ends(found.interval),
        groups=tuple(_groups(chars, values)),
        points=tuple(_points(chars, values)),
    )


def _groups(chars: NDArray[np.float64], values: NDArray[np.float64]) -> list[LengthGroup]:
    """Groups of about equally many samples; samples of equal length are in one group."""
    count = max(1, min(_MOST_GROUPS, chars.size // _FEWEST_SAMPLES))
    edges = np.unique(np.quantile(chars, np.arange(1, count) / count, method="lower")) if count > 1 else np.empty(0)
    places = np.searchsorted(edges, chars, side="left")
    groups = []
    for place in np.unique(places).tolist():
        inside = places == place
        scores = np.sort(values[inside])
        groups.append(
            LengthGroup(
                shortest=float(chars[inside].min()),
                longest=float(chars[inside].max()),
                n=int(scores.size),
                mean=exact_mean(scores) or 0.0,
                interval=mean_interval(scores),
            )
        )
    return groups


def _points(chars: NDArray[np.float64], values: NDArray[np.float64]) -> list[LengthPoint]:
    """The samples on a grid, in order of length and score."""
    logs = np.log1p(chars)
    low, width = float(logs.min()), float(np.ptp(logs)) or 1.0
    columns = np.rint((logs - low) / width * _LENGTH_STEPS).astype(np.int64)
    rows = np.rint(np.clip(values, 0.0, 1.0) * _SCORE_STEPS).astype(np.int64)
    cells, counts = np.unique(np.stack([columns, rows], axis=1), axis=0, return_counts=True)
    return [
        LengthPoint(float(np.expm1(low + column / _LENGTH_STEPS * width)), row / _SCORE_STEPS, count)
        for (column, row), count in zip(cells.tolist(), counts.tolist(), strict=True)
    ]
