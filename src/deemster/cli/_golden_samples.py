"""Failing samples of runs and recordings that become golden samples, for a person to complete."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deemster.cli._console import note
from deemster.errors import plural

if TYPE_CHECKING:
    from deemster.store import RunRow, Store


def save_failing(
    store: Store,
    runs: Sequence[RunRow],
    file: str,
    *,
    metric: str | None = None,
    ids: Collection[str] = (),
    limit: int | None = None,
) -> None:
    """Add what failed to a dataset, and say what a person has to do.

    Args:
        store: Where the runs are.
        runs: Recordings or runs, scored.
        file: The dataset; made where there is none.
        metric: Look at this metric alone.
        ids: Take these samples, failing or not.
        limit: Take so many at most.

    Raises:
        InputError: A metric or sample is unknown, nothing is scored yet, or the file cannot be read or written.
    """
    from deemster.monitoring.promote_failures import TAG, promote_failures

    saved = promote_failures(store, runs, file, name=Path(file).stem, metric=metric, ids=ids, limit=limit)
    known = f"; {plural(saved.known, 'sample')} left out whose input is there already" if saved.known else ""
    if not saved.ids:
        note(f"Nothing failed that could be written to {file}{known}.")
        return
    note(f"{plural(len(saved.ids), 'sample')} written to {file}{known}.")
    if saved.incomplete:
        note(f"Fill in each `expected_output` and remove the tag `{TAG}`.")
