"""Confirms or clears newly failing samples: a second, small run of them alone, which the gate reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import dropwhile, islice

import msgspec
import numpy as np

from deemster.comparison.comparison import Comparison
from deemster.comparison.comparison_gate import baseline_evidence
from deemster.comparison.report_source import ReportSource
from deemster.comparison.run_source import RunSource
from deemster.comparison.stored_source import StoredSource, stored_identities
from deemster.engine.model_access import ModelAccess
from deemster.engine.progress import Progress
from deemster.engine.stop_request import Stop
from deemster.errors import ConfigurationError, Issue, StorageError, StoreError
from deemster.evaluation.evaluation_identity import scoring_identity, target_identity
from deemster.evaluation.resolve_evaluation import SuiteOverrides, resolve_evaluation
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.evaluation.suite import load_suite, stored_suite
from deemster.gate import Allowance, GateDecision, GateRules
from deemster.gate.baseline_gate import decide_again
from deemster.gate.confirmation import Confirmation, confirm_changes, count_passes
from deemster.models.budget import BudgetEntry
from deemster.models.clock import Clock
from deemster.report import Report
from deemster.report.report_settings import report_facts
from deemster.report.stored_columns import keep_columns
from deemster.results.sample_changes import newly_failing, sample_sides
from deemster.runs.run_identity import identity_differences, plain_json
from deemster.runs.run_storage import RunStorage, StoredOrNot
from deemster.store import RunRow, Store
from deemster.targets.saved_outputs import SavedOutputs

# So many runs before the baseline are the history of a sample.
_MOST_EARLIER = 20
# The fact of a confirming run that names the run whose samples it runs again.
_CONFIRMS = "confirms"
# The fact that says by which number target and judges know its first repetition.
_FIRST = "first_repetition"
# Where runs of earlier versions keep what was run again.
_EARLIER_VERSIONS = "reruns"


def check_confirmation(evaluation: Evaluation, times: int) -> None:
    """Refuse an evaluation that is to confirm failures and has no baseline, or whose target cannot be called again.

    Args:
        evaluation: What is to be run.
        times: How often each newly failing sample is run again; 0 for never.

    Raises:
        ConfigurationError: The gate compares with no baseline, the outputs are saved ones, or the number is none.
    """
    if type(times) is not int or times < 0:
        raise ConfigurationError(f"`confirm` is a whole number of at least 0, not {times!r}.")
    if not times:
        return
    if evaluation.gate is None or evaluation.gate.baseline is None:
        raise ConfigurationError("To confirm that samples newly fail, the gate needs a section `baseline`.")
    _check_target(evaluation)


def _check_target(evaluation: Evaluation) -> None:
    if isinstance(evaluation.plan.target, SavedOutputs):
        raise ConfigurationError("To confirm failures, the target is called again, and this run grades saved outputs.")


async def confirm_report(
    report: Report,
    comparison: Comparison,
    evaluation: Evaluation,
    times: int,
    storage: StoredOrNot,
    *,
    clock: Clock | None = None,
    stop: Stop | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """The report of a run, whose gate knows which newly failing samples really fail.

    Args:
        report: The report of the run.
        comparison: The run beside its baseline.
        evaluation: What was run.
        times: How often each newly failing sample is run again.
        storage: Where the run is stored.
        clock: The time; the machine's own unless given.
        stop: Asks to stop.
        progress: Gets the progress.

    Raises:
        StoreError: The store fails, or another process holds the run.
    """
    stop, run_id, kept = stop or Stop(), report.run.id, storage
    if isinstance(storage, RunStorage):
        kept = RunStorage(storage.store, keep_prompts=storage.keep_prompts)
    run = partial(run_evaluation, storage=kept, clock=clock, stop=stop, warn=_say_nothing, progress=progress)
    evaluations = _confirming_evaluations(
        evaluation, comparison, times, run_id, store=storage.store, spent=report.budget
    )
    reports = [await run(each) for each in evaluations if not stop.requested]

    confirmation = _confirmation(comparison, storage.store, run_id, reports)
    if confirmation is None or evaluation.gate is None or report.gate is None:
        return report

    decision = decide_confirmed(report.gate, evaluation.gate, comparison, confirmation)
    report = msgspec.structs.replace(report, gate=decision)
    if isinstance(storage, RunStorage):
        _keep(storage.store, report, confirmation)
    return report


def decide_confirmed(
    decision: GateDecision, gate: GateRules, comparison: Comparison, confirmation: Confirmation | None
) -> GateDecision:
    """What a gate decides, once it knows which newly failing samples really fail.

    Args:
        decision: What it decided before.
        gate: The gate.
        comparison: The run beside its baseline.
        confirmation: Which samples really fail; None where none was run again.
    """
    if confirmation is None or gate.baseline is None:
        return decision
    evidence = baseline_evidence(comparison, cohorts=gate.baseline.cohorts)
    return decide_again(decision, gate.baseline, msgspec.structs.replace(evidence, confirmation=confirmation))


def _keep(store: Store, report: Report, confirmation: Confirmation) -> None:
    """Store what the gate of a run has read."""
    with store.lease(report.run.id):
        pinned = report_facts(store.run(report.run.id)).baseline
        if pinned is not None and pinned.evidence is not None:
            evidence = msgspec.structs.replace(pinned.evidence, confirmation=confirmation)
            pinned = msgspec.structs.replace(pinned, evidence=evidence)
            store.amend(report.run.id, facts={"baseline": msgspec.to_builtins(pinned)})
    keep_columns(store, report)


async def confirm_comparison(
    comparison: Comparison,
    candidate: StoredSource,
    times: int,
    *,
    stop: Stop,
    progress: Callable[[Progress], None] | None = None,
) -> Confirmation | None:
    """Run the newly failing samples of a stored candidate again; None where there are none.

    Args:
        comparison: The comparison.
        candidate: The candidate.
        times: How often each sample is run again, those times included that it was already.
        stop: Asks to stop.
        progress: Gets the progress.

    Raises:
        ConfigurationError: The target of the candidate cannot be called again.
        StoreError: The store fails, or another process runs the same samples again.
    """
    store, run_id = candidate.store, candidate.row.id
    evaluation = stored_evaluation(candidate.row)
    for part in _confirming_evaluations(evaluation, comparison, times, run_id, store=store):
        if not stop.requested:
            storage = RunStorage(store)
            await run_evaluation(part, storage=storage, stop=stop, warn=_say_nothing, progress=progress)
    return _confirmation(comparison, store, run_id)


def stored_confirmation(comparison: Comparison, candidate: RunSource) -> Confirmation | None:
    """Which newly failing samples of a candidate really fail, as far as they were run again; None where none was.

    Raises:
        StoreError: The store cannot be read.
    """
    if not isinstance(candidate, StoredSource):
        return None
    return _confirmation(comparison, candidate.store, candidate.row.id)


def stored_evaluation(row: RunRow) -> Evaluation:
    """The evaluation of a stored run, to call its target again.

    Args:
        row: The run.

    Raises:
        ConfigurationError: Its suite is not known, cannot be read, or has another target, metric or model now.
    """
    suite = stored_suite(row)
    if "file" not in suite:
        message = f"The target of the run `{row.id}` cannot be called again: no suite is stored with it."
        raise ConfigurationError(message)
    loaded = load_suite(suite["file"]).with_numbers(repetitions=row.repetitions)
    evaluation = resolve_evaluation(loaded, SuiteOverrides())
    _check_target(evaluation)
    now = plain_json({"target": target_identity(evaluation), **scoring_identity(evaluation)})
    before = {name: row.identity.get(name) for name in now}
    if changes := identity_differences(before, now):
        message = f"The suite of the run `{row.id}` is not the same any more, so its samples are not run again."
        raise ConfigurationError([Issue(message, suite["file"]), *map(Issue, changes)])
    return evaluation


def _say_nothing(_: str) -> None:
    """Leave out a warning: the run itself has warned of its samples."""


def _confirming_evaluations(
    whole: Evaluation,
    comparison: Comparison,
    times: int,
    run_id: str,
    *,
    store: Store | None,
    spent: BudgetEntry | None = None,
) -> Iterator[Evaluation]:
    """What runs each newly failing sample so often, those times included that it was already.

    Args:
        whole: What was run.
        comparison: The run beside its baseline.
        times: How often.
        run_id: The run.
        store: Where it is stored; None where it is not.
        spent: What the run was allowed to spend and has spent; what is left of it holds.
    """
    build = partial(_confirming_evaluation, whole, run_id, spent=spent)
    attempts = Counter[str]()
    unfinished = []
    if store is not None:
        for row in _confirming_rows(store, run_id):
            ids = [sample.id for sample in store.samples(row.id, content=False)]
            attempts.update(dict.fromkeys(ids, row.repetitions))
            if row.status in ("running", "incomplete"):
                unfinished.append(build(ids, row.repetitions, first=row.facts[_FIRST], resumes=row.id))
    yield from unfinished

    ids_by_attempts: dict[int, set[str]] = {}
    for change in newly_failing(comparison.changes):
        if change.candidate is not None and attempts[change.candidate.id] < times:
            ids_by_attempts.setdefault(attempts[change.candidate.id], set()).add(change.candidate.id)
    for before, names in ids_by_attempts.items():
        # Target and judges number the repetitions on from those of the run, so that they answer anew.
        yield build(names, times - before, first=whole.plan.repetitions + before)


def _confirming_evaluation(
    whole: Evaluation,
    run_id: str,
    ids: Collection[str],
    repetitions: int,
    *,
    first: int,
    spent: BudgetEntry | None,
    resumes: str | None = None,
) -> Evaluation:
    """A small evaluation of samples of a run, which is stored as a confirmation of it."""
    return Evaluation(
        whole.plan._replace(
            dataset=whole.plan.dataset.keep(ids, selection=f"--confirm {run_id}"),
            repetitions=repetitions,
            first_repetition=first,
        ),
        suite=whole.suite,
        seed=whole.seed,
        # A sample that gives no score tells nothing, and does not make the run incomplete.
        allowance=Allowance(1.0, share=True),
        access=_within_budget(whole.access.without_anchors(), spent),
        label=f"confirms {run_id}",
        kind="confirmation",
        facts={_CONFIRMS: run_id, _FIRST: first},
        resumes=resumes,
    )


def _within_budget(access: ModelAccess, spent: BudgetEntry | None) -> ModelAccess:
    """Access to the models of a run, with what is left of its budget."""
    if spent is None:
        return access
    usd, tokens = spent.limit_usd, spent.limit_tokens
    calls = access.calls._replace(
        budget_usd=None if usd is None else max(usd - spent.spent_usd, Decimal(0)),
        budget_tokens=None if tokens is None else max(tokens - spent.spent_tokens, 0),
    )
    return access._replace(calls=calls)


def _confirming_rows(store: Store, run_id: str) -> list[RunRow]:
    """The small runs that ran samples of a run again."""
    return [row for row in store.runs(kind="confirmation") if row.facts.get(_CONFIRMS) == run_id]


def _confirmation(
    comparison: Comparison, store: Store | None, run_id: str, reports: Sequence[Report] = ()
) -> Confirmation | None:
    """What running samples of a run again says of those that newly fail: its stored confirmations, else reports."""
    names = list(comparison.metrics)
    again: list[RunSource] = [ReportSource(report) for report in reports]
    earlier: dict[str, tuple[int, int]] = {}
    if store is not None:
        again = [StoredSource(store, row) for row in _confirming_rows(store, run_id)]
        earlier = _earlier_counts(store.run(run_id), names)

    passed, known = Counter[str](), Counter[str]()
    for counts in (*(count_passes(source.columns(cluster=None), names) for source in again), earlier):
        passed.update({name: count for name, (count, _) in counts.items()})
        known.update({name: count for name, (_, count) in counts.items()})
    if not any(known.values()):
        return None
    reruns = {name: (passed[name], count) for name, count in known.items()}
    return confirm_changes(comparison.changes, reruns, earlier=_earlier_passes(comparison, store))


class _EarlierReruns(msgspec.Struct):
    """What earlier versions kept with a run: by a sample's id, whether each metric passed in each rerun."""

    metrics: tuple[str, ...] = ()
    samples: Mapping[str, tuple[tuple[bool | None, ...], ...]] = {}


def _earlier_counts(row: RunRow, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """How often samples passed that an earlier version ran again, and in how many reruns that is known."""
    try:
        reruns = msgspec.convert(row.facts.get(_EARLIER_VERSIONS, {}), _EarlierReruns)
    except msgspec.ValidationError as error:
        raise StoreError(f"run `{row.id}`: The stored reruns cannot be read: {error}") from None
    columns = [reruns.metrics.index(name) for name in names if name in reruns.metrics]
    counts = {}
    for name, outcomes in reruns.samples.items():
        passes = [[outcome[column] for column in columns] for outcome in outcomes]
        known = [passed for passed in passes if False in passed or None not in passed]
        counts[name] = sum(map(all, known)), len(known)
    return counts


def _earlier_passes(comparison: Comparison, store: Store | None) -> dict[str, tuple[int, int]]:
    """By row hash, how often newly failing samples passed in the runs before the baseline, and how often they ran."""
    names = list(comparison.metrics)
    row_hashes = [change.row_hash for change in newly_failing(comparison.changes) if change.row_hash is not None]
    if store is None or not row_hashes:
        return {}
    try:
        row = store.run(comparison.baseline.id)
    except StorageError:
        raise
    except StoreError:
        return {}

    identities = stored_identities(row, store.cards(row.id))
    wanted = np.frombuffer(bytes.fromhex("".join(row_hashes)), dtype=np.uint64).reshape(-1, 4)
    counts: dict[str, tuple[int, int]] = {}
    for run in _runs_before(store, row):
        known = stored_identities(run, store.cards(run.id))
        if any(known.get(name) != identities[name] for name in names):
            continue
        columns = StoredSource(store, run).columns(cluster=None)
        words = np.ascontiguousarray(columns.digests).view(np.uint64)
        places = np.flatnonzero(np.isin(words[:, 0], wanted[:, 0]))
        for place, side in zip(places, sample_sides(columns, places, names), strict=True):
            row_hash = columns.digests[place].tobytes().hex()
            passed, n = counts.get(row_hash, (0, 0))
            counts[row_hash] = passed + side.passed, n + side.repetitions
    return counts


def _runs_before(store: Store, row: RunRow) -> Iterator[RunRow]:
    """The complete runs of the same suite before a run, the newest first."""
    runs = iter(store.runs(suite=row.suite, dataset=row.dataset, kind="run"))
    older = (run for run in dropwhile(lambda run: run.id != row.id, runs) if run.id != row.id)
    alike = (run for run in older if (run.suite, run.series) == (row.suite, row.series) and run.status == "complete")
    return islice(alike, _MOST_EARLIER)
