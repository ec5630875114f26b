"""The baseline of a gate: finds it when a run begins, and compares the run with it when the run ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from deemster.datasets import Dataset
from deemster.errors import ConfigurationError, Issue, StorageError, StoreError
from deemster.models.clock import Clock
from deemster.records.shared_call_cost import paid_amount, sum_spending
from deemster.report import Report, load_report
from deemster.report.baseline_gate import PinnedBaseline, baseline_evidence
from deemster.report.compare_columns import ComparisonSettings
from deemster.report.comparison import Comparison
from deemster.results import MarkTable
from deemster.results.alike_samples import ALIKE
from deemster.results.confirmation import Reruns, newly_failing
from deemster.results.difference_origin import AnchorScores
from deemster.results.gate_decision import conclude
from deemster.results.gate_rules import BaselineRules
from deemster.results.run_columns import RunColumns
from deemster.runs._report_settings import parse_settings, report_settings, stored_baseline
from deemster.runs._run_identity import plain_json, scoring_identity
from deemster.runs.build_report import RunRecord, build_report, metric_identity
from deemster.runs.compare_runs import (
    ReportSource,
    RunSource,
    StoredSource,
    cluster_value,
    compare_sources,
    compared_report,
    with_confirmation,
)
from deemster.runs.confirm_run import rerun_samples
from deemster.runs.progress import Progress
from deemster.runs.run_plan import Evaluation
from deemster.runs.run_writer import SpooledWriter, StoredWriter
from deemster.runs.stop_request import Stop
from deemster.store import Store

_NEWEST = ("previous", "latest")


def pin_baseline(job: Evaluation, store: Store | None) -> PinnedBaseline | None:
    """Find the baseline of a job's gate before anything runs; None where the gate compares with none.

    Args:
        job: What is to be run.
        store: Where it is stored; None where it is not.

    Raises:
        ConfigurationError: The run and its baseline have no sample in common.
        ReportError: The baseline is a file that is no report.
        StoreError: The store cannot be read.
    """
    rules = None if job.gate is None else job.gate.baseline
    if rules is None:
        return None
    found = _find(rules, job, store)
    if found.missing is not None:
        return found
    dataset = job.plan.dataset
    if _share_samples(dataset, _row_hashes(found, store)):
        return found
    message = f"no sample of this run is in the baseline `{found.run or found.file}`"
    if dataset.part is not None:
        return PinnedBaseline(name=rules.compare, missing=message)
    raise ConfigurationError(Issue(f"The gate compares with a baseline, and {message}.", rules.where))


def _find(rules: BaselineRules, job: Evaluation, store: Store | None) -> PinnedBaseline:
    name = rules.compare
    if Path(name).suffix == ".json" or "/" in name:
        folder = Path() if job.origin is None else Path(job.origin["file"]).parent
        file = folder / name
        if not file.is_file():
            return PinnedBaseline(name=name, missing=f"there is no file `{name}`")
        return PinnedBaseline(name=name, file=str(file))
    if store is None:
        return PinnedBaseline(name=name, missing=f"`{name}` is a stored run, and this run is not stored")
    if name == "baseline":
        baseline = store.baseline(job.suite, job.plan.dataset.name)
        if baseline is None:
            return PinnedBaseline(name=name, missing="there is no baseline yet; `deemster baseline promote` makes one")
        return PinnedBaseline(name=name, run=baseline.run)
    if name in _NEWEST:
        alike = store.runs(suite=job.suite, dataset=job.plan.dataset.name, kind="run", status="complete")
        newest = next((row for row in alike if row.suite == job.suite and "part" not in row.facts), None)
        if newest is None:
            return PinnedBaseline(name=name, missing="there is no complete run of this suite before it")
        return PinnedBaseline(name=name, run=newest.id)
    try:
        return PinnedBaseline(name=name, run=store.run(name, kind="run").id)
    except StorageError:
        raise
    except StoreError:
        return PinnedBaseline(name=name, missing=f"the store holds no run `{name}`")


def _row_hashes(pinned: PinnedBaseline, store: Store | None) -> Iterable[str]:
    """The row hashes of a baseline."""
    if pinned.file is not None:
        return (sample.row_hash or "" for sample in load_report(pinned.file).samples)
    if store is None or pinned.run is None:
        return ()
    return (sample.row_hash for sample in store.samples(pinned.run, content=False))


def _share_samples(dataset: Dataset, hashes: Iterable[str]) -> bool:
    own = set(dataset.row_hashes)
    return any(row_hash in own for row_hash in hashes)


class BaselineGate:
    """Compares a run that has ended with the baseline of its gate.

    Args:
        writer: The run.
        store: Where it is stored; None where it is not.
        clock: The time.
        stop: Asks the run to stop.
        warn: Gets each warning.
        progress: Gets the progress of what is run again.
    """

    def __init__(
        self,
        writer: SpooledWriter | StoredWriter,
        store: Store | None,
        *,
        clock: Clock,
        stop: Stop,
        warn: Callable[[str], None],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._writer, self._store = writer, store
        self._clock, self._stop, self._warn, self._progress = clock, stop, warn, progress

    async def conclude(
        self,
        report: Report,
        record: RunRecord,
        table: MarkTable,
        *,
        tell: Callable[[Comparison], None] | None,
    ) -> Report:
        """The report with the checks against the baseline, which the run then remembers.

        Args:
            report: The report of the run, without these checks.
            record: What the report is built from.
            table: The marks of the run.
            tell: Gets the comparison, where there is a baseline.

        Raises:
            StoreError: The store cannot be read.
            ReportError: The report file of the baseline cannot be read.
        """
        job = self._writer.job
        gate, pinned = job.gate, job.baseline
        rules = None if gate is None else gate.baseline
        if gate is None or rules is None or pinned is None:
            return report
        source, comparison = open_baseline(pinned, self._store), None
        if isinstance(source, str):
            pinned = PinnedBaseline(name=pinned.name, missing=source)
        else:
            settings = comparison_settings(rules, seed=job.seed)
            comparison = compare_sources(source, _FinishedRun(report, record, table, job), settings=settings)
            for warning in comparison.warnings:
                if warning.startswith(ALIKE):
                    self._warn(warning)
            reruns = await self._confirm(comparison, record)
            if reruns != record.reruns:
                # What was run again costs too.
                record = _with_reruns(record, reruns)
                report = build_report(record, report_settings(job)._replace(baseline=None), table=table)
            comparison = with_confirmation(comparison, reruns, baseline=source)
            evidence = baseline_evidence(comparison, cohorts=rules.cohorts)
            if pinned.evidence is not None:
                evidence = msgspec.structs.replace(evidence, sequence=pinned.evidence.sequence)
            pinned = msgspec.structs.replace(pinned, evidence=evidence)
        self._writer.job = job._replace(baseline=pinned)
        before = () if report.gate is None else report.gate.checks
        decision = conclude((*before, *pinned.checks(gate)), mode=gate.decision)
        if comparison is not None and tell is not None:
            tell(msgspec.structs.replace(comparison, gate=decision))
        return msgspec.structs.replace(report, gate=decision)

    async def _confirm(self, comparison: Comparison, record: RunRecord) -> Reruns:
        """What was run again: newly failing samples, where that is wanted."""
        writer = self._writer
        if not writer.job.confirm or not comparison.statuses["newly_failing"] or self._stop.requested:
            return record.reruns
        spent, (tokens, usd) = sum_spending(record.executions), paid_amount(record.reruns.usage)
        return await rerun_samples(
            writer.job,
            newly_failing(comparison.changes),
            known=record.reruns,
            keep=writer.keep_reruns,
            clock=self._clock,
            stop=self._stop,
            warn=self._warn,
            spent=spent._replace(tokens=spent.tokens + tokens, usd=spent.usd + usd),
            progress=self._progress,
        )


def _with_reruns(record: RunRecord, reruns: Reruns) -> RunRecord:
    """What a report is built from, with what was run again, and what that cost."""
    budget = record.budget
    if budget is not None:
        (tokens, usd), (before, paid) = paid_amount(reruns.usage), paid_amount(record.reruns.usage)
        budget = msgspec.structs.replace(
            budget, spent_tokens=budget.spent_tokens + tokens - before, spent_usd=budget.spent_usd + usd - paid
        )
    return record._replace(reruns=reruns, budget=budget)


def compare_again(store: Store, run_id: str, *, is_first: bool = False) -> dict[str, Any]:
    """Compare a stored run with its baseline once more, after it was rescored; facts of the run, which remember that.

    Args:
        store: Where it is stored.
        run_id: The run.
        is_first: Whether it was never compared before, as a run that another tool made.

    Returns:
        Nothing where its gate compares with no baseline, or the baseline is gone.

    Raises:
        StoreError: The store cannot be read.
    """
    row = store.run(run_id)
    pinned = stored_baseline(row.facts)
    is_open = pinned is not None and (is_first or pinned.evidence is not None)
    source = open_baseline(pinned, store) if pinned is not None and is_open else None
    gate = None if pinned is None else parse_settings(row.facts, where=f"run `{row.id}`").gate
    if pinned is None or gate is None or gate.baseline is None or source is None or isinstance(source, str):
        return {}
    settings = comparison_settings(gate.baseline, seed=row.seed)
    comparison = compare_sources(source, StoredSource(store, row), settings=settings)
    evidence = baseline_evidence(comparison, cohorts=gate.baseline.cohorts)
    pinned = msgspec.structs.replace(pinned, evidence=evidence, scorings=len(row.scorings))
    return {"baseline": msgspec.to_builtins(pinned)}


def comparison_settings(rules: BaselineRules, *, seed: int) -> ComparisonSettings:
    """How a gate wants runs to be compared."""
    return ComparisonSettings(confidence=rules.confidence, margin=rules.margin, cluster=rules.cluster, seed=seed)


def open_baseline(pinned: PinnedBaseline, store: Store | None) -> RunSource | str:
    """The baseline, or why it is missing.

    Args:
        pinned: The baseline, as it was found when the run began.
        store: Where it is stored; None where the run is not.

    Raises:
        StoreError: The store cannot be read.
        ReportError: It is a file that is no report.
    """
    if pinned.missing is not None:
        return pinned.missing
    if pinned.file is not None:
        return ReportSource(load_report(pinned.file))
    if store is None or pinned.run is None:
        return "the run is not stored"
    try:
        return StoredSource(store, store.run(pinned.run))
    except StorageError:
        raise
    except StoreError:
        return f"the run `{pinned.run}` was removed"


class _FinishedRun(ReportSource):
    """A run that has ended, stored or not.

    Args:
        report: Its report.
        record: What the report is built from.
        table: Its marks.
        job: What was run.
    """

    def __init__(self, report: Report, record: RunRecord, table: MarkTable, job: Evaluation) -> None:
        super().__init__(report)
        self._record, self._table, self._job = record, table, job
        self.anchors = job.anchors or AnchorScores()
        self.cluster = record.samples.cluster

    def columns(self, *, cluster: str | None) -> RunColumns:
        """The run as arrays.

        Raises:
            ReportError: A sample has no such key in its metadata.
        """
        samples, clusters = self._record.samples, None
        if cluster is not None:
            clusters = [cluster_value(sample.metadata, cluster, sample.id) for sample in samples]
        ids = [sample.id for sample in samples]
        digests = bytes.fromhex("".join(samples.row_hashes))
        return RunColumns(
            run=compared_report(self._report),
            marks=self._table,
            digests=np.frombuffer(digests, dtype=np.uint8).reshape(-1, 32),
            identities=job_identities(self._job),
            clusters=clusters,
            ids=lambda positions: [ids[position] for position in positions],
            metadata=samples.metadata,
        )


def job_identities(job: Evaluation) -> dict[str, Any]:
    """By a metric's name, everything that must be equal for its marks to be compared."""
    identity: Mapping[str, Any] = plain_json(scoring_identity(job))
    found = {}
    for card in job.plan.cards:
        known = identity["metrics"][card.name]
        found[card.name] = metric_identity(card.identity, card.threshold, card.roles, identity["models"]) | (
            {"source": known["source"]} if "source" in known else {}
        )
    return found
