"""The baseline of a gate: finds it when a run begins, and compares the run with it when the run ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from deemster.comparison.compare_columns import ComparisonSettings
from deemster.comparison.compare_runs import compare_sources
from deemster.comparison.comparison import Comparison
from deemster.comparison.comparison_gate import baseline_evidence
from deemster.comparison.find_runs import RunSources
from deemster.comparison.run_source import RunSource, ShownSample, build_columns, card_identities, compared_run
from deemster.comparison.stored_source import StoredSource
from deemster.errors import ConfigurationError, Issue, StorageError, StoreError
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.gate.baseline_gate import PinnedBaseline
from deemster.gate.read_gate import BaselineRules
from deemster.records import Sample
from deemster.report.build_report import FinishedRun
from deemster.report.report_assembly import execution_entry
from deemster.report.report_entries import PrivacyEntry
from deemster.report.report_settings import report_facts, stored_settings
from deemster.results.run_columns import RunColumns
from deemster.store import RunRow, Store

_NEWEST = ("previous", "latest")


def pin_baseline(rules: BaselineRules, job: Evaluation, store: Store | None) -> PinnedBaseline:
    """Find the baseline of a job's gate before anything runs.

    Args:
        rules: What the gate says of its baseline.
        job: What is to be run.
        store: Where it is stored; None where it is not.

    Raises:
        ConfigurationError: The run and its baseline have no sample in common.
        ReportError: The baseline is a file that is no report.
        StoreError: The store cannot be read.
    """
    found = _find(rules, job, store)
    if found.missing is not None:
        return found
    dataset = job.plan.dataset
    with RunSources(None) as files:
        source = open_baseline(found, store, files)
        if not isinstance(source, str) and not set(dataset.row_hashes).isdisjoint(source.row_hashes):
            return found
    message = f"no sample of this run is in the baseline `{found.run or found.file}`"
    if dataset.part is not None:
        return PinnedBaseline(name=rules.compare, missing=message)
    raise ConfigurationError(Issue(f"The gate compares with a baseline, and {message}.", rules.where))


def _find(rules: BaselineRules, job: Evaluation, store: Store | None) -> PinnedBaseline:
    name = rules.compare
    is_of_experiment = job.experiment is not None and name.startswith(f"{job.experiment}/")
    if Path(name).suffix in (".json", ".jsonl") or ("/" in name and not is_of_experiment):
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
            return PinnedBaseline(name=name, missing="there is no baseline yet; `deemster baseline RUN` makes one")
        return PinnedBaseline(name=name, run=baseline.run)
    if name in _NEWEST:
        alike = store.runs(suite=job.suite, dataset=job.plan.dataset.name, kind="run", status="complete")
        newest = next((row for row in alike if "part" not in row.facts and _is_before(row, job)), None)
        if newest is None:
            return PinnedBaseline(name=name, missing="there is no complete run of this suite before it")
        return PinnedBaseline(name=name, run=newest.id)
    try:
        return PinnedBaseline(name=name, run=store.run(name, kind="run").id)
    except StorageError:
        raise
    except StoreError:
        return PinnedBaseline(name=name, missing=f"the store holds no run `{name}`")


def _is_before(row: RunRow, job: Evaluation) -> bool:
    """Whether a run may be one before: of the same suite, and of another experiment under the same name."""
    series = None if job.experiment is None else job.label
    is_beside = row.experiment is not None and row.experiment == job.experiment
    return row.suite == job.suite and row.series == series and not is_beside


def compare_with_baseline(
    run: FinishedRun, pinned: PinnedBaseline, evaluation: Evaluation, store: Store | None
) -> tuple[PinnedBaseline | None, Comparison | None]:
    """Compare a run that has ended with the baseline of its gate.

    Args:
        run: The run.
        pinned: The baseline that was found when it began.
        evaluation: What was run.
        store: Where it is stored; None where it is not.

    Returns:
        The baseline with what the comparison found, which the run then remembers, and the comparison; None for what
        there is not.

    Raises:
        StoreError: The store cannot be read.
        ReportError: The report file of the baseline cannot be read.
    """
    rules = None if evaluation.gate is None else evaluation.gate.baseline
    if rules is None:
        return None, None
    compared = _compare(pinned, rules, store, _FinishedSource(run), seed=evaluation.seed)
    return (PinnedBaseline(name=pinned.name, missing=compared), None) if isinstance(compared, str) else compared


def _compare(
    pinned: PinnedBaseline, rules: BaselineRules, store: Store | None, candidate: RunSource, *, seed: int
) -> tuple[PinnedBaseline, Comparison] | str:
    """The baseline with what a comparison found, and the comparison; or why the baseline is missing."""
    with RunSources(None) as files:
        source = open_baseline(pinned, store, files)
        if isinstance(source, str):
            return source
        comparison = compare_sources(source, candidate, settings=comparison_settings(rules, seed=seed))
    return pinned.concluded(baseline_evidence(comparison, cohorts=rules.cohorts)), comparison


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
    pinned = report_facts(row).baseline
    is_open = pinned is not None and (is_first or pinned.evidence is not None)
    gate = None if pinned is None else stored_settings(row).gate
    if pinned is None or not is_open or gate is None or gate.baseline is None:
        return {}

    compared = _compare(pinned, gate.baseline, store, StoredSource(store, row), seed=row.seed)
    if isinstance(compared, str):
        return {}
    return {"baseline": msgspec.to_builtins(msgspec.structs.replace(compared[0], scorings=len(row.scorings)))}


def comparison_settings(rules: BaselineRules, *, seed: int) -> ComparisonSettings:
    """How a gate wants runs to be compared."""
    return ComparisonSettings(confidence=rules.confidence, margin=rules.margin, cluster=rules.cluster, seed=seed)


def open_baseline(pinned: PinnedBaseline, store: Store | None, files: RunSources) -> RunSource | str:
    """The baseline, or why it is missing.

    Args:
        pinned: The baseline, as it was found when the run began.
        store: Where it is stored; None where the run is not.
        files: Reads it where it is a file, and keeps it open.

    Raises:
        StoreError: The store or a run file cannot be read.
        ReportError: It is a file that is no report.
    """
    if pinned.missing is not None:
        return pinned.missing
    if pinned.file is not None:
        return files.find(pinned.file)
    if store is None or pinned.run is None:
        return "the run is not stored"
    try:
        return StoredSource(store, store.run(pinned.run))
    except StorageError:
        raise
    except StoreError:
        return f"the run `{pinned.run}` was removed"


class _FinishedSource:
    """A run that has ended, stored or not, as comparisons read it.

    Args:
        run: The run.
    """

    privacy = PrivacyEntry()
    stored = None
    # Its own gate is what asks.
    gate = None
    margin: float | None = None

    def __init__(self, run: FinishedRun) -> None:
        self._run = run
        self.quotes = {card.name: card.quotes for card in run.record.cards}
        self.cluster = run.record.samples.cluster
        self.row_hashes = run.record.samples.row_hashes

    def every_sample(self) -> Iterator[Sample]:
        """Every sample in order."""
        return iter(self._run.record.samples)

    def columns(self, *, cluster: str | None) -> RunColumns:
        """The run as arrays.

        Raises:
            ReportError: A sample has no such key in its metadata.
        """
        run, record = self._run, self._run.record
        return build_columns(
            compared_run(run.entry, record.samples, run.summary),
            run.table,
            record.samples,
            identities=card_identities(record.cards, record.facts.identity),
            cluster=cluster,
            anchors=record.findings.anchors,
        )

    def samples(self, positions: Sequence[int]) -> list[ShownSample]:
        """The samples at some positions."""
        wanted, record = set(positions), self._run.record
        names = [card.name for card in record.cards]
        # One pass: they may be read from a store or a file.
        found: dict[int, ShownSample] = {
            sample.position: (sample, []) for sample in record.samples.facts() if sample.position in wanted
        }
        for execution in record.executions:
            if execution.position in wanted:
                sample, entries = found[execution.position]
                found[execution.position] = sample, [*entries, execution_entry(execution, names)]
        return [found[position] for position in positions]
