"""Marks: of a metric for one sample, or just so."""

from __future__ import annotations

from typing import Any

from deemster.records import MetricScore, Output, Sample, Unscored


def marked(metric: Any, expected: Any, text: str) -> Any:
    """What a metric says of a text, where something is expected."""
    return metric.score(Sample("s", {}, expected), Output(text))


def mark(score: float | None) -> MetricScore | Unscored:
    """A score, or none."""
    return Unscored("bad_output", "because") if score is None else MetricScore(score)
