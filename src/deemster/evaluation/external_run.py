"""Runs of other tools: stores one as if it had been run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from deemster import __version__
from deemster.datasets import Dataset
from deemster.datasets.fingerprint import digest
from deemster.engine.run_plan import Plan
from deemster.errors import Issue, StoreError
from deemster.evaluation.gate_baseline import compare_again, pin_baseline
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.suite import load_suite
from deemster.gate import NONE_UNSCORED, GateRules, check_gate_names, read_gate
from deemster.judges.metric_catalog import card_spellings
from deemster.models.clock import Clock
from deemster.records import Execution, MetricCard
from deemster.report.build_report import batches, finish_run
from deemster.report.report_settings import RUBRICS_FACT, RunFindings, settings_facts
from deemster.report.stored_columns import keep_columns
from deemster.report.stored_report import stored_report, stored_run_record
from deemster.runs.run_identity import format_time, run_id
from deemster.runs.run_lifecycle import RunDefinition, StoredRun, begin_run, new_token
from deemster.runs.run_timer import RunTimer
from deemster.store import RunFacts, Store
from deemster.store.run_facts import IMPORTED_FACT
from deemster.targets.saved_outputs import SavedOutputs

# The fact of a stored run that says where it came from.
ORIGIN_FACT = "made_by"


class ExternalRun(NamedTuple):
    """A run that another tool made, in our records.

    Attributes:
        tool: The tool, with its version where its file says it.
        dataset: The samples.
        cards: Its metrics, in the order of the marks; none where the outputs are not scored yet.
        executions: What the target said, and how that was marked.
        repetitions: How often each sample was run.
        target: What was run, such as a model and its prompt.
        started: When it began, where the file says it.
        duration_s: How long it took, where the file says it.
        times: By position, when each execution ended, of live traffic, which is kept as a recording.
        left_out: What the file has and no record holds, one sentence each.
        rubrics: By metric, the rubric that it judges by, as JSON.
        file: The name of the file it came from.
    """

    tool: str
    dataset: Dataset
    cards: tuple[MetricCard, ...]
    executions: Sequence[Execution]
    repetitions: int = 1
    target: str | None = None
    started: datetime | None = None
    duration_s: float | None = None
    times: Sequence[str] = ()
    left_out: tuple[str, ...] = ()
    rubrics: Mapping[str, Any] = {}
    file: str | None = None


class StoredExternalRun(NamedTuple):
    """What became of a run of another tool.

    Attributes:
        id: Its id in the store.
        is_known: Whether the store had it already.
    """

    id: str
    is_known: bool


class GateOfSuite(NamedTuple):
    """The gate that an external run is held to, and the suite that it belongs to."""

    suite: str | None
    gate: GateRules


def load_gate(path: str) -> GateOfSuite:
    """The name and the gate of a suite file.

    Raises:
        ConfigurationError: The suite cannot be read.
    """
    suite = load_suite(path, calls_target=False, must_run=False)
    return GateOfSuite(suite.name, read_gate(suite.gate, document=suite.document))


def store_external_run(
    store: Store,
    run: ExternalRun,
    *,
    held_to: GateOfSuite | None = None,
    label: str | None = None,
    clock: Clock | None = None,
) -> StoredExternalRun:
    """Store a run that another tool made. One that the store has already is left as it is.

    Args:
        store: Where it is stored.
        run: The run.
        held_to: The gate it is held to; None for none.
        label: What the user calls it.
        clock: The time; the machine's own unless given.

    Raises:
        ConfigurationError: The gate names a metric or a cohort that the run does not have.
        StoreError: The store fails.
    """
    timer = RunTimer(clock)
    job = _job(run, held_to, label)
    baseline = None
    if job.gate is not None:
        cohorts = list(dict.fromkeys(tag for sample in run.dataset for tag in sample.tags or (None,)))
        check_gate_names(job.gate, metrics=card_spellings(run.cards), cohorts=cohorts)
        if job.gate.baseline is not None:
            baseline = pin_baseline(job.gate.baseline, job, store)
    definition = _definition(run, job, RunFindings(baseline=baseline), timer)
    if (known := _find_same(store, definition.facts)) is not None:
        return StoredExternalRun(known, is_known=True)
    with begin_run(definition, store, timer=timer) as stored:
        _write(run, stored)
        _close(run, job, stored)
    if run.cards:
        if compared := compare_again(store, stored.id, is_first=True):
            with store.lease(stored.id):
                store.amend(stored.id, facts=compared)
        keep_columns(store, stored_report(store, stored.id))
    return StoredExternalRun(stored.id, is_known=False)


def _job(run: ExternalRun, held_to: GateOfSuite | None, label: str | None) -> Evaluation:
    """The settings of the run's report, as an evaluation has them."""
    # Every answer is there already, so what stands for the target is never asked.
    plan = Plan(run.dataset, SavedOutputs({"no target": [""] * run.repetitions}), (), run.repetitions)
    if held_to is None:
        return Evaluation(plan, label=label)
    allowance = held_to.gate.allowance or NONE_UNSCORED
    return Evaluation(plan, gate=held_to.gate, suite=held_to.suite, allowance=allowance, label=label)


def _without_absent(executions: Any) -> Any:
    """Executions without a field that earlier versions did not have, where it says nothing: a run keeps its id."""
    for execution in executions:
        answer = execution["answer"]
        if isinstance(answer, dict) and answer.get("broken_off") is None:
            answer.pop("broken_off", None)
    return executions


def _definition(run: ExternalRun, job: Evaluation, findings: RunFindings, timer: RunTimer) -> RunDefinition:
    dataset, is_recording = run.dataset, bool(run.times)
    started_at = timer.started_at if run.started is None else format_time(run.started)
    origin: dict[str, Any] = {"tool": run.tool, "file": run.file, "left_out": list(run.left_out)}
    content = {
        "samples": dataset.fingerprint,
        "executions": _without_absent(msgspec.to_builtins(run.executions, str_keys=True)),
        "cards": [card.identity for card in run.cards],
        "target": run.target,
    }
    origin["digest"] = digest(msgspec.json.decode(msgspec.json.encode(content)))
    facts = RunFacts(
        id=run_id(run.started or timer.started, origin["digest"]),
        kind="recording" if is_recording else "run",
        suite=job.suite,
        dataset=dataset.name,
        fingerprint="" if is_recording else dataset.fingerprint,
        seed=job.seed,
        repetitions=run.repetitions,
        samples=0 if is_recording else len(dataset),
        started_at=started_at,
        tool_version=__version__,
        identity={
            "dataset": dataset.fingerprint,
            "target": {"made by": run.tool},
            "metrics": {card.name: {"identity": card.identity, "threshold": card.threshold} for card in run.cards},
        },
        facts={
            **settings_facts(job.report_settings, job.plan, origin=job.origin),
            **findings.facts(),
            "label": job.label,
            "target": run.target,
            "token": new_token(),
            IMPORTED_FACT: True,
            ORIGIN_FACT: origin,
            **({RUBRICS_FACT: dict(run.rubrics)} if run.rubrics else {}),
        },
    )
    return RunDefinition(facts, tuple if is_recording else dataset.facts, run.cards)


def _find_same(store: Store, facts: RunFacts) -> str | None:
    """The id of the stored run that has the same samples, outputs and marks."""
    mine = facts.facts[ORIGIN_FACT]["digest"]
    for row in store.runs(dataset=facts.dataset, kind=facts.kind):
        origin = row.facts.get(ORIGIN_FACT)
        if isinstance(origin, dict) and origin.get("digest") == mine:
            if row.suite != facts.suite:
                message = f"The store has this run already as `{row.id}`, without this suite. Remove it first."
                raise StoreError(Issue(message, store.where))
            return row.id
    return None


def _write(run: ExternalRun, stored: StoredRun) -> None:
    if run.times:
        # The samples of a recording come with their records.
        stored.writer.add_samples(list(run.dataset.facts()))
    for batch in batches(run.executions):
        if not run.times:
            stored.writer.add(batch, at=stored.row.started_at)
            continue
        for execution in batch:
            stored.writer.add([execution], at=run.times[execution.position])
    stored.writer.flush()


def _close(run: ExternalRun, job: Evaluation, stored: StoredRun) -> None:
    finished_at = stored.row.started_at
    if not run.cards:
        stored.close("complete", None, finished_at=finished_at, duration_s=run.duration_s, is_final=True)
        return
    record = stored_run_record(stored.store, stored.store.run(stored.id))._replace(ended=True)
    entry = finish_run(record, job.report_settings).entry
    stored.close(entry.status, entry.reason, finished_at=finished_at, duration_s=run.duration_s, is_final=True)
