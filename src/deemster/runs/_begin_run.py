"""Beginning a run in a store."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

import msgspec

from deemster import __version__
from deemster.errors import RunExistsError, StoreError
from deemster.models.clock import Clock
from deemster.records import MetricCard
from deemster.runs._run_identity import evaluation_identity, format_time, run_id
from deemster.runs._run_settings import settings_facts
from deemster.runs.evaluation_job import Job
from deemster.store import Lease, RunFacts, SampleFacts, Store

_WAYS = 10_000


def sample_facts(job: Job) -> Iterator[SampleFacts]:
    """A job's samples as a store keeps them."""
    dataset = job.plan.dataset
    for position, (sample, row_hash) in enumerate(zip(dataset, dataset.row_hashes, strict=True)):
        yield SampleFacts(
            position=position,
            id=sample.id,
            row_hash=row_hash,
            tags=sample.tags,
            metadata=sample.metadata,
            expected_output=sample.expected_output,
            input=sample.input,
        )


def begin_run(job: Job, cards: Sequence[MetricCard], store: Store, clock: Clock, *, order: str) -> Lease:
    """Begin a run; one that would have the id of another gets a number after it.

    Args:
        job: What is run.
        cards: Its metrics.
        store: Where it is kept.
        clock: The time.
        order: A digest of the samples' ids in their order.

    Raises:
        StoreError: The database refuses.
    """
    plan, started = job.plan, clock.now()
    facts = RunFacts(
        id=run_id(started, job, cards),
        suite=job.suite,
        dataset=plan.dataset.name,
        fingerprint=plan.dataset.fingerprint,
        seed=job.seed,
        repetitions=plan.repetitions,
        samples=len(plan.dataset),
        started_at=format_time(started),
        tool_version=__version__,
        identity=evaluation_identity(job, cards, order=order),
        # Runs at one time of a clock that stands still share an id, and must not take each other's calls for their own.
        facts={**settings_facts(job), "token": secrets.token_hex(8)},
    )
    for way in range(1, _WAYS):
        named = facts if way == 1 else msgspec.structs.replace(facts, id=f"{facts.id}-{way}")
        try:
            return store.begin(named, sample_facts(job), cards=cards)
        except RunExistsError:
            continue
    raise StoreError(f"{store.where}: There are {_WAYS:,} runs that would be called `{facts.id}`.")
