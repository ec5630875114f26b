"""Ready-made groups of metrics in a suite or a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deemster.errors import ConfigurationError
from deemster.judges.groups import group
from deemster.run.catalog import resolve_all


def with_group(name: str, metrics: Sequence[Any], aggregator: Any) -> tuple[list[Any], Any]:
    """The metrics beside a group and its own, and its aggregator.

    Args:
        name: The group's name.
        metrics: Metric entries beside it.
        aggregator: What was declared beside it; the group has one of its own.

    Raises:
        ConfigurationError: No group is called that, or an aggregator is declared beside it.
    """
    found = group(name)
    if aggregator is not None:
        raise ConfigurationError(f"The group `{name}` has an aggregator of its own; leave `aggregator` out.")
    # Last, so that the places of the others in their file stay what they are.
    return [*metrics, *found.metrics], found.aggregator


def names_of_group(name: str) -> tuple[str, ...]:
    """The names of a group's metrics in a run.

    Args:
        name: The group's name.

    Raises:
        ConfigurationError: No group is called that.
    """
    return tuple(metric.name for metric in resolve_all(group(name).metrics))
