"""Audits the gate of a suite: simulates runs from its stored ones, and counts what the gate says of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deemster import __version__
from deemster.audit.gate_error_rates import GateAudit, TrialSettings, audit_gate_rates
from deemster.audit.simulated_runs import ExecutionPool
from deemster.comparison.compare_columns import ComparisonSettings, comparable_metrics, compare_columns
from deemster.comparison.run_source import build_columns
from deemster.comparison.stored_source import StoredSource
from deemster.errors import ConfigurationError, plural
from deemster.evaluation.suite import Suite
from deemster.evaluation.suite_parts import suite_dataset, suite_metrics
from deemster.gate import read_gate
from deemster.gate.gate_names import check_gate_names
from deemster.gate.read_gate import GateRules
from deemster.judges.metric_catalog import card, card_spellings
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import SCORED
from deemster.results.run_columns import ComparedRun, RunColumns, join_samples
from deemster.store import Store

# Runs that differ so clearly are not runs without a change.
_LEVEL = 0.01
_MOST_RUNS = 20


def audit_gate(
    suite: Suite,
    store: Store | None,
    *,
    names: Sequence[str] = (),
    settings: TrialSettings,
) -> GateAudit:
    """Simulate runs of a suite, and count how often its gate errs.

    Args:
        suite: The suite.
        store: Where its runs are stored; None where there is no store.
        names: The stored runs to measure the noise on; the newest of the suite by one target unless given.
        settings: How the gate is tried.

    Raises:
        ConfigurationError: The gate has no rule, or nothing says how much runs differ.
        StoreError: A run cannot be read.
    """
    gate = read_gate(suite.gate, document=suite.document)
    if not gate.rules and gate.baseline is None:
        raise ConfigurationError(f"The suite `{suite.name}` has no gate, so there is nothing to audit.")
    cluster = None if gate.baseline is None else gate.baseline.cluster
    runs, notes = ([], []) if store is None else stored_runs(store, suite.name, names, cluster=cluster)
    is_stated = settings.states_noise
    if settings.pass_rate is not None:
        runs = [_made_run(suite, settings.pass_rate)]
    if not runs:
        message = f"No complete run of `{suite.name}` is stored. Run it, or state `pass_rate` and `flip_rate`."
        raise ConfigurationError(message)
    pool = ExecutionPool(runs)
    if is_stated:
        runs, notes = runs[:1], []
        pool = pool.with_noise(flip_rate=settings.flip_rate, sd=settings.sd)
    elif pool.executions < 2:
        message = "One execution of each sample does not say how much runs differ."
        ways = "Run the suite again, or with `--repetitions`, or state `flip_rate` or `sd`."
        raise ConfigurationError(f"{message} {ways}")
    metrics = _check_names(gate, suite, pool)
    return GateAudit(
        suite=suite.name,
        dataset=runs[0].run.dataset,
        runs=() if settings.pass_rate is not None else tuple(run.run.id for run in runs),
        samples=pool.samples,
        executions=1 if is_stated else pool.executions,
        repetitions=pool.repetitions,
        noise="stated" if is_stated else "measured",
        draws=settings.draws,
        confidence=settings.confidence,
        seed=settings.seed,
        notes=(*notes, *(() if pool.note is None else (pool.note,))),
        **audit_gate_rates(gate, pool, metrics=metrics, settings=settings),
    )


def _check_names(gate: GateRules, suite: Suite, pool: ExecutionPool) -> dict[str, str]:
    """Every way to call the metrics of the pool; names that the gate has and the suite does not are refused."""
    marks = pool.reference.marks
    known = card_spellings(map(card, suite_metrics(suite)))
    parts = [f"{one.name}/{part}" for one in marks.cards for part in one.parts]
    check_gate_names(
        gate,
        metrics=known,
        cohorts=[tag for tag, _ in marks.cohorts],
        aggregates=suite.aggregator is not None,
        parts=parts,
    )
    names = {each.name for each in marks.cards}
    return {spelling: name for spelling, name in (known | card_spellings(marks.cards)).items() if name in names}


def stored_runs(
    store: Store,
    suite: str | None,
    names: Sequence[str],
    *,
    dataset: str | None = None,
    cluster: str | None = None,
    is_alike: bool = True,
) -> tuple[list[RunColumns], list[str]]:
    """Stored runs of the same samples and metrics, the newest first, and notes on what was left out.

    Args:
        store: Where they are stored.
        suite: The suite whose runs are looked at; None for every suite.
        names: The runs, where the user names them.
        dataset: The dataset whose runs are looked at; None for every dataset.
        cluster: The metadata key whose equal values make one unit.
        is_alike: Whether only runs by the target of the newest one will do, with as many repetitions.

    Raises:
        StoreError: A run cannot be read, or is not there.
    """
    if names:
        rows = [store.run(name, kind="run") for name in names]
    else:
        found = store.runs(suite=suite, dataset=dataset, kind="run", status="complete")
        whole = [row for row in found if "part" not in row.facts and row.samples]
        rows = [row for row in whole if row.series == whole[0].series]
    notes = []
    if len(rows) > _MOST_RUNS:
        notes.append(f"Only the newest {_MOST_RUNS} of {plural(len(rows), 'stored run')} are read.")
        rows = rows[:_MOST_RUNS]
    kept: list[RunColumns] = []
    for row in rows:
        columns = StoredSource(store, row).columns(cluster=cluster)
        reason = None if not kept else _difference(kept[0], columns, is_alike=is_alike, is_named=bool(names))
        if reason is None:
            kept.append(columns)
        else:
            notes.append(f"The run {row.id} is left out: {reason}.")
    return kept, [*notes, *(_changes(kept) if is_alike else ())]


def _difference(first: RunColumns, other: RunColumns, *, is_alike: bool, is_named: bool) -> str | None:
    """Why a run cannot stand beside the newest one, as half a sentence; None where it can."""
    if is_alike and not is_named and other.run.target != first.run.target:
        return "it ran another target"
    if len(join_samples(other, first).before) < first.marks.samples:
        return "it does not have all samples of the newest run"
    _, reasons = comparable_metrics(other, first)
    if reasons:
        return f"its metrics are others ({', '.join(reasons)})"
    if is_alike and other.marks.repetitions != first.marks.repetitions:
        count = plural(other.marks.repetitions, "repetition")
        return f"it has {count} of each sample, and the newest {first.marks.repetitions}"
    return None


def _changes(runs: Sequence[RunColumns]) -> list[str]:
    """A note on each run that differs from the newest by more than chance."""
    found = []
    for other in runs[1:]:
        compared = compare_columns(other, runs[0], settings=ComparisonSettings(tests=False), tool_version=__version__)
        p_value = compared.pass_rate.p_value
        if p_value is not None and p_value < _LEVEL / (len(runs) - 1):
            found.append(
                f"The run {other.run.id} differs from the newest by more than chance (p {p_value:.2g}): what changed "
                "in truth counts as noise here. Name the runs without a change with --run."
            )
    return found


def _made_run(suite: Suite, pass_rate: float) -> RunColumns:
    """A run of a suite's dataset, as if a share of its samples passed every metric."""
    dataset = suite_dataset(suite)
    cards = [card(metric) for metric in suite_metrics(suite)]
    n = len(dataset)
    if any(one.where is not None for one in cards):
        raise ConfigurationError("A metric applies to a part of the samples only. Run the suite once, and audit that.")
    table = MarkTable(cards, samples=n, repetitions=suite.repetitions or dataset.repetitions or 1)
    # Every cohort gets its share, since neighbours in a file often have the same tags.
    passes = np.floor((np.arange(n) + 1) * pass_rate + 0.5) > np.floor(np.arange(n) * pass_rate + 0.5)
    table.passed[passes], table.scores[passes], table.causes[:] = True, 1.0, SCORED
    table.outputs[:] = 1 + np.arange(table.outputs.size).reshape(table.outputs.shape)
    for position, sample in enumerate(dataset):
        table.tag(position, sample.tags)
    run = ComparedRun(
        id="stated",
        dataset=dataset.name,
        fingerprint=None,
        started_at="",
        status="complete",
        samples=n,
        repetitions=table.repetitions,
        macro_f1=None,
        pass_rate=pass_rate,
    )
    columns = build_columns(run, table, dataset, identities={card.name: {} for card in cards})
    return columns._replace(metadata=None)
