"""A user's metric under another name or pass mark."""

from __future__ import annotations

from typing import Any

import msgspec

from deemster.errors import ConfigurationError
from deemster.records import Metric, MetricScore, Output, Sample

OPTIONS = frozenset({"name", "threshold"})


class Adjusted:
    """A metric with the options that every metric takes, whether or not its author thought of them.

    Args:
        metric: The metric itself.
        options: `name`, `threshold`, or both.

    Raises:
        ConfigurationError: An option is not what it should be.
    """

    def __init__(self, metric: Metric, options: dict[str, Any]) -> None:
        name: Any = options.get("name", metric.name)
        threshold: Any = options.get("threshold")
        if not isinstance(name, str) or not name.strip():
            raise ConfigurationError(f"`name` of `{metric.name}` is non-blank text, not {name!r:.80}.")
        if "threshold" in options and (type(threshold) not in (int, float) or not 0 <= threshold <= 1):
            raise ConfigurationError(f"`threshold` of `{name}` is a number between 0 and 1, not {threshold!r:.80}.")
        self.metric = metric
        self.options = options
        self.name = name
        self.threshold = getattr(metric, "threshold", None) if threshold is None else float(threshold)

    def __getattr__(self, name: str) -> Any:
        # Batches go pair by pair, so that every mark gets its pass mark.
        if name in ("metric", "score_many"):
            raise AttributeError(name)
        return getattr(self.metric, name)

    def score(self, sample: Sample, output: Output) -> Any:
        """Mark one output, against the given pass mark."""
        mark = self.metric.score(sample, output)
        if isinstance(mark, MetricScore) and self.threshold is not None and "threshold" in self.options:
            return msgspec.structs.replace(mark, threshold=self.threshold)
        return mark
