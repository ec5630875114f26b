"""Which run is gone on with, and whether it still is the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import msgspec

from deemster.errors import ConfigurationError, Issue, StoreError
from deemster.records import MetricCard
from deemster.runs._run_identity import differences, evaluation_identity
from deemster.runs.evaluation_job import Job
from deemster.store import RunRow, Store

_UNFINISHED = ("running", "incomplete")


def choose_run(store: Store, job: Job, wanted: str | bool) -> RunRow | None:  # noqa: FBT001 - what `resume` says
    """The run to go on with; None where there is none yet.

    Args:
        store: Where runs are kept.
        job: What is to be run.
        wanted: A run's id, a unique beginning of it, or `latest`; True for the last unfinished run of the same suite,
            or the last one at all.

    Raises:
        StoreError: No run is called so, or it is none of this kind.
    """
    if isinstance(wanted, str):
        row = store.run(wanted)
        if row.kind != "run":
            raise StoreError(f"{store.where}: `{row.id}` is a {row.kind}, which `run` cannot resume.")
        return row
    own = [
        row
        for row in store.runs(suite=job.suite, dataset=None if job.suite else job.plan.dataset.name, kind="run")
        if row.suite == job.suite
    ]
    return next((row for row in own if row.status in _UNFINISHED), own[0] if own else None)


def reconcile_job(
    job: Job, cards: Sequence[MetricCard], row: RunRow, store: Store, *, order: str, allowed: bool
) -> tuple[Job, list[str]]:
    """The job as it goes on with a run, and what changed since.

    Args:
        job: What is to be run.
        cards: Its metrics.
        row: The run to go on with.
        store: Where it is kept.
        order: A digest of the samples' ids in their order.
        allowed: Whether it may go on although something changed.

    Raises:
        ConfigurationError: Something changed, and that is not allowed or cannot be; every change is listed.
    """
    now = msgspec.json.decode(msgspec.json.encode(evaluation_identity(job, cards, order=order)))
    changes = differences(row.identity, now)
    shape = _other_shape(job, row, store, is_ordered=row.identity.get("order") == order) if changes else []
    if changes and (shape or not allowed):
        way_out = (
            "Start a new run: not even `--allow-changed` mixes these."
            if shape
            else "Start a new run, or go on with `--allow-changed`: the report is then marked as mixed."
        )
        issues = [f"The run `{row.id}` cannot be resumed: it is not the same any more.", *changes, *shape, way_out]
        raise ConfigurationError(map(Issue, issues))
    places = {card.name: place for place, card in enumerate(row.scorings[0].cards)}
    metrics = tuple(sorted(job.plan.metrics, key=lambda metric: places[metric.name]))
    return job._replace(plan=job.plan._replace(metrics=metrics)), changes


def _other_shape(job: Job, row: RunRow, store: Store, *, is_ordered: bool) -> list[str]:
    """What no permission can mix: other samples, other metrics, another number of repetitions."""
    found = []
    before, now = [card.name for card in row.scorings[0].cards], [metric.name for metric in job.plan.metrics]
    if sorted(before) != sorted(now):
        told = f"The metrics were {', '.join(before)} and are {', '.join(now)}."
        found.append(f"{told} `deemster rescore {row.id} --metric ...` adds metrics to a run.")
    if row.repetitions != job.plan.repetitions:
        found.append(f"The repetitions were {row.repetitions} and are {job.plan.repetitions}.")
    if not is_ordered:
        ids = zip_longest((kept.id for kept in store.samples(row.id)), (sample.id for sample in job.plan.dataset))
        if any(kept != now for kept, now in ids):
            found.append("The dataset has other samples, or has them in another order.")
    return found
