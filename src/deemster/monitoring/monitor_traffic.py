"""Monitors recorded traffic: pass rates over time, and a test of drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from deemster.errors import ConfigurationError, did_you_mean, visible
from deemster.monitoring.pass_rate_over_time import BASELINE, MonitoredRecord, PassRateHistory, track_pass_rate
from deemster.records import Execution, Mark, NotApplicable, TargetFailure
from deemster.store import RunRow, Store, open_store


def monitor(
    dataset: str,
    *,
    store: str | Path | None = None,
    metric: str | None = None,
    every: str = "day",
    baseline: int = BASELINE,
    alpha: float = 0.05,
    since: str | datetime | None = None,
) -> PassRateHistory:
    """Follow the pass rate of recorded traffic, with control limits and a test of drift.

    The test stays valid however often it is looked at, as long as baseline and alpha are those chosen before the first
    look.

    Args:
        dataset: The name the recorder was given.
        store: The store's file or URL; `.deemster/runs.db` unless given.
        metric: Look at this metric alone; otherwise a record passes where all do.
        every: `hour`, `day`, `week`, `month` (UTC), or a number of records.
        baseline: How many scored records, the first ones, the later ones are held against.
        alpha: The share of false alarms that is accepted, over all looks there will ever be.
        since: Leave out what was recorded before.

    Raises:
        InputError: Nothing is recorded under this name, or something given cannot be used.
    """
    first = parse_time(since) if isinstance(since, str) else since
    with open_store(store, create=False) as opened:
        runs = opened.runs(dataset=dataset, kind="recording")
        if not runs:
            names = sorted({run.dataset for run in opened.runs(kind="recording")})
            near = did_you_mean(dataset, names) if names else "The store holds no recording."
            raise ConfigurationError(f"Nothing is recorded for `{visible(dataset)}`. {near}")
        records = [record for run in runs for record in _records(opened, run, metric)]
    chosen = (record for record in records if first is None or record.at >= first)
    return track_pass_rate(chosen, every=every, baseline=baseline, alpha=alpha, dataset=dataset)


def parse_time(text: str) -> datetime:
    """A time from its RFC 3339 text; a date alone is its first moment in UTC.

    Raises:
        ConfigurationError: It is none.

    >>> parse_time("2026-03-01").isoformat()
    '2026-03-01T00:00:00+00:00'
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        message = f"`{visible(text, limit=60)}` is no time, such as 2026-03-01 or 2026-03-01T12:00:00Z."
        raise ConfigurationError(message) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _records(store: Store, run: RunRow, metric: str | None) -> Iterator[MonitoredRecord]:
    names = [card.name for card in store.cards(run.id)]
    if metric is not None and names and metric not in names:
        raise ConfigurationError(f"No metric of {run.id} is called `{visible(metric)}`. {did_you_mean(metric, names)}")
    places = range(len(names)) if metric is None else [names.index(metric)] if names else []
    moments = store.output_times(run.id)
    position, at = next(moments, (-1, None))
    for execution in store.executions(run.id):
        while position < execution.position:
            position, at = next(moments, (execution.position, None))
        if position == execution.position and at is not None:
            marks = [execution.marks[place] if place < len(execution.marks) else None for place in places]
            made = [mark for mark in marks if not isinstance(mark, NotApplicable)]
            yield MonitoredRecord(parse_time(at), _passed(execution, made), applies=len(made) > 0 or not marks)


def _passed(execution: Execution, marks: Sequence[Mark | None]) -> bool | None:
    """Whether a record passed; None where a mark is missing. A call that failed did not pass.

    A mark is missing also where another one failed: were only passing records left out, that would look like drift.
    """
    if marks and isinstance(execution.answer, TargetFailure):
        return False
    outcomes = [getattr(mark, "success", None) for mark in marks]
    return None if None in outcomes or not outcomes else all(outcomes)
