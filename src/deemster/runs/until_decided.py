"""Runs samples in random order until the margins of the gate are settled, and leaves the rest out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from deemster.errors import ConfigurationError
from deemster.records import Execution
from deemster.results import MarkTable
from deemster.results.margin_watch import MarginWatch, SequentialCheck
from deemster.results.run_columns import ComparedRun, RunColumns
from deemster.runs._report_settings import stops_when_decided
from deemster.runs._score_batch import WorkItem, needs_settling
from deemster.runs.compare_runs import cluster_value
from deemster.runs.evaluation_job import Job
from deemster.runs.gate_baseline import job_identities, open_baseline
from deemster.runs.resume_backlog import RemainingWork
from deemster.runs.run_lifecycle import RunStorage, choose_run
from deemster.runs.run_part import stored_part
from deemster.runs.run_plan import Plan
from deemster.runs.run_writer import SpooledWriter, StoredWriter
from deemster.runs.stop_request import Stop
from deemster.store import Store

SELECTION = "--until-decided"


def in_random_order(job: Job) -> Job:
    """A job that draws its samples in a seeded random order; clusters stay together.

    Raises:
        ConfigurationError: Its gate has no margin to be decided, or a metric marks the run only as a whole.
    """
    rules = None if job.gate is None else job.gate.baseline
    if rules is None or rules.margin is None:
        raise ConfigurationError("To stop once it is decided, a run needs a margin to decide: `gate.baseline.margin`.")
    if needs_settling(job.plan.metrics):
        message = "To stop once it is decided, a run needs marks as samples end, and a metric here marks whole runs."
        raise ConfigurationError(message)
    dataset = job.plan.dataset.shuffle(job.seed, together=rules.cluster)
    return job._replace(plan=job.plan._replace(dataset=dataset))


def resume_as_begun(job: Job, storage: RunStorage) -> Job:
    """A job that resumes a run which stops once it is decided: it does so too, and takes what such a run left over.

    Args:
        job: What is to be run.
        storage: Where it is stored, and what it resumes.

    Raises:
        StoreError: The run that is to be resumed is missing, or cannot be read.
    """
    if not storage.resume:
        return job
    store, dataset = storage.store, job.plan.dataset
    row = choose_run(store, storage.resume, kind="run", suite=job.suite, dataset=dataset.name)
    part = None if row is None else stored_part(row)
    is_decided = part is not None and part.selection == SELECTION
    if row is None or not (is_decided or stops_when_decided(row.facts)):
        return job
    if is_decided and dataset.part is None:
        ids = frozenset(sample.id for sample in store.samples(row.id, content=False))
        job = job._replace(plan=job.plan._replace(dataset=dataset.keep(ids, selection=SELECTION)))
    return job._replace(until_decided=True)


class UntilDecided:
    """Stops a run once the margins of its gate are settled.

    Args:
        writer: The run.
        store: Where it is stored; None where it is not.
        table: An empty table of marks that knows the samples' tags.
        stop: Asks the run to stop for any other reason.

    Attributes:
        stop: Asks the run to stop, once it is decided too.

    Raises:
        ConfigurationError: There is no baseline to compare with.
        StoreError: The store cannot be read.
    """

    def __init__(
        self,
        writer: SpooledWriter | StoredWriter,
        store: Store | None,
        table: MarkTable,
        *,
        stop: Stop,
    ) -> None:
        job = writer.job
        gate, pinned = job.gate, job.baseline
        rules = None if gate is None else gate.baseline
        source = None if pinned is None else open_baseline(pinned, store)
        if gate is None or rules is None or source is None or isinstance(source, str):
            why = source or "the gate names none"
            raise ConfigurationError(f"To stop once it is decided, a run needs a baseline: {why}.")
        self._watch = MarginWatch(gate, rules, source.columns(cluster=None), _columns(job, table, rules.cluster))
        self._writer, self._outer = writer, stop
        self.stop = Stop()
        stop.on_request(lambda: self.stop.request(stop.reason or "stopped"))
        self.add(writer.earlier())

    def remaining(self, remaining: RemainingWork) -> RemainingWork:
        """What is left to do, sample by sample in the order in which they were drawn."""
        if remaining.works is not None:
            return remaining
        return remaining._replace(works=_sample_by_sample(self._writer.job.plan))

    def add(self, executions: Iterable[Execution]) -> None:
        """Note executions that finished, and ask the run to stop once all is settled."""
        self._watch.add(list(executions))
        if self._watch.decision is not None:
            self.stop.request(SELECTION)

    def finish(self) -> dict[str, SequentialCheck]:
        """Leave out what was not run, where the margins are settled; what is known of each margin."""
        watch, dataset = self._watch, self._writer.job.plan.dataset
        if watch.decision is None:
            if self.stop.requested:
                self._outer.request(self.stop.reason or "stopped")
        elif watch.counted < len(dataset):
            self._writer.shorten(dataset.first(watch.counted, selection=SELECTION))
        return watch.checks()


def _columns(job: Job, table: MarkTable, cluster: str | None) -> RunColumns:
    """A run that is to begin, as arrays."""
    dataset = job.plan.dataset
    ids = [sample.id for sample in dataset]
    clusters = None
    if cluster is not None:
        clusters = [cluster_value(sample.metadata, cluster, sample.id) for sample in dataset]
    run = ComparedRun(
        id="",
        dataset=dataset.name,
        fingerprint=None,
        started_at="",
        status="running",
        samples=len(ids),
        repetitions=job.plan.repetitions,
        macro_f1=0.0,
        pass_rate=0.0,
    )
    digests = np.frombuffer(bytes.fromhex("".join(dataset.row_hashes)), dtype=np.uint8).reshape(-1, 32)
    return RunColumns(
        run=run,
        marks=table,
        digests=digests,
        identities=job_identities(job),
        clusters=clusters,
        ids=lambda positions: [ids[position] for position in positions],
    )


def _sample_by_sample(plan: Plan) -> Iterator[WorkItem]:
    for position, sample in enumerate(plan.dataset):
        for repetition in range(plan.repetitions):
            yield WorkItem(position, sample, repetition)
