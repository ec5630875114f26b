"""Ready-made groups of metrics, each with its aggregator, as a suite would declare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from deemster.errors import ConfigurationError, did_you_mean
from deemster.records import freeze


class MetricGroup(msgspec.Struct, frozen=True):
    """Several metrics under one aggregator.

    Attributes:
        name: How it is called.
        about: What it is for, in a sentence or two.
        metrics: Its metrics, each as an entry of a suite's `metrics`.
        aggregator: What makes one result of them, as a suite's `aggregator`.
    """

    name: str
    about: str
    metrics: tuple[Any, ...]
    aggregator: Any


_UP: Mapping[int, float] = {1: 0.0, 2: 0.5, 3: 1.0}
_DOWN: Mapping[int, float] = {1: 1.0, 2: 0.5, 3: 0.0}

GROUPS: Mapping[str, MetricGroup] = {
    group.name: group
    for group in (
        MetricGroup(
            "generation",
            "An answer made from a context. Where the reference declines to answer, groundedness does not apply, and "
            "whether the answer declines too is judged in its place.",
            ("completeness", "redundancy", freeze({"groundedness": {"refusal_check": True}})),
            "and",
        ),
        MetricGroup(
            "query-transformation",
            "A request rewritten into queries for a search: all of it, nothing invented, nothing superfluous.",
            (
                freeze({"query-completeness": {"name": "completeness"}}),
                freeze({"query-groundedness": {"name": "groundedness"}}),
                freeze({"query-redundancy": {"name": "redundancy"}}),
            ),
            {
                "kind": "weighted",
                "weights": {"completeness": 0.4, "groundedness": 0.3, "redundancy": 0.3},
                "score_mapping": {"completeness": dict(_UP), "groundedness": dict(_UP), "redundancy": dict(_DOWN)},
            },
        ),
        MetricGroup(
            "summarisation",
            "A summary of the input: ordered, true to its source, well written, and holding what matters.",
            ("coherence", "consistency", "fluency", "relevance"),
            "and",
        ),
        MetricGroup(
            "retrieval",
            "What was retrieved for a question: enough to answer it, all that the reference holds, and little else.",
            ("context-sufficiency", "context-recall", "context-precision"),
            "and",
        ),
    )
}


def metric_group(name: str) -> MetricGroup:
    """A ready-made group.

    Args:
        name: Its name.

    Raises:
        ConfigurationError: None is called that.

    >>> metric_group("summarisation").metrics
    ('coherence', 'consistency', 'fluency', 'relevance')
    """
    if name not in GROUPS:
        raise ConfigurationError(f"No group is called `{name}`. {did_you_mean(name, GROUPS)}")
    return GROUPS[name]
