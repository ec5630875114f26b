"""Runs an experiment: every variant as an ordinary run, all of them side by side, sample by sample."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from deemster.comparison.experiment import Experiment, MissingVariant, VariantSource, build_experiment
from deemster.comparison.experiment_source import stored_experiment, variant_rows
from deemster.comparison.report_source import ReportSource
from deemster.engine.backend import Execute, InThisProcess, RunWork
from deemster.engine.progress import Progress
from deemster.engine.stop_request import Stop, deadline
from deemster.engine.turnstile import RunTurns, Turnstile
from deemster.errors import ConfigurationError, DeemsterError, InputError, Issue, StoreError, list_names
from deemster.evaluation.preflight_check import CheckedSamples, check_samples
from deemster.evaluation.resolve_evaluation import SuiteOverrides, resolve_dataset, resolve_evaluation
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.evaluation.suite import Suite
from deemster.evaluation.variants import Variant, VariantGates, choose_variants, suite_variants
from deemster.models.clock import Clock, clock_from_environment
from deemster.models.gateway import close_clients
from deemster.models.side_by_side_calls import SideBySideCalls
from deemster.records import Usage
from deemster.records.usage import sum_usage
from deemster.report import Report
from deemster.runs.find_resumed_run import find_resumed
from deemster.runs.run_identity import digest, format_time, run_id
from deemster.runs.run_storage import NOT_STORED, NotStored, RunStorage, StoredOrNot
from deemster.store import RunRow, Store
from deemster.targets.saved_outputs import SavedOutputs
from deemster.targets.target_section import DeclaredTarget


class Arm(NamedTuple):
    """One variant of an experiment, resolved.

    Attributes:
        variant: The variant.
        evaluation: What is run of it.
        storage: Where its run is stored, and what it resumes.
    """

    variant: Variant
    evaluation: Evaluation
    storage: StoredOrNot


class ResolvedExperiment(NamedTuple):
    """An experiment, resolved and checked.

    Attributes:
        id: Its id, which the stored runs of its variants have.
        suite: The suite's name.
        arms: Its variants.
        baseline: The name of the variant with which the gates of the others compare; None where they compare with none.
        seed: For the order of the variants within a sample.
        timeout_s: How long all of it may take.
    """

    id: str
    suite: str | None
    arms: Sequence[Arm]
    baseline: str | None
    seed: int
    timeout_s: float | None


class FinishedVariant(NamedTuple):
    """What came of a variant.

    Attributes:
        name: Its name.
        levels: By factor of a grid, its level.
        report: Its report; None where its run could not go on.
        error: Why not.
    """

    name: str
    levels: Mapping[str, str]
    report: Report | None
    error: DeemsterError | None = None


def resolve_experiment(
    suite: Suite,
    variants: Sequence[Variant],
    overrides: SuiteOverrides,
    *,
    storage: StoredOrNot,
    patterns: Sequence[str] = (),
    prepare: Callable[[Suite], Suite] = lambda suite: suite,
) -> ResolvedExperiment:
    """Resolve every variant of a suite as an evaluation of its own, all with the same samples.

    Args:
        suite: The suite.
        variants: Its variants.
        overrides: What is given with the call.
        storage: Where the runs are stored, and which experiment they resume.
        patterns: Names or globs of the variants that are run; all without any.
        prepare: What flags change of the suite of each variant.

    Raises:
        InputError: Something given cannot be used.
        StoreError: What is to be resumed is missing, or is no experiment of this suite.
    """
    chosen = choose_variants(variants, patterns)
    names = [variant.name for variant in chosen]
    gates = VariantGates(suite, variants, names)

    dataset = resolve_dataset(suite, overrides)
    overrides = overrides._replace(dataset=dataset, select=None)
    resumed = _find_resumed(storage, suite, dataset=dataset.name)
    experiment = _new_id(suite, [dataset.fingerprint, *names], storage.store) if resumed is None else resumed.id

    arms = []
    for place, variant in enumerate(chosen):
        own_storage = _own_storage(storage, variant.name, None if resumed is None else resumed.runs.get(variant.name))
        own_suite = prepare(variant.suite_of(suite))._replace(gate=gates.of(variant.name, experiment=experiment))
        own_overrides = overrides._replace(label=variant.name, **_target_of(variant))
        evaluation = resolve_evaluation(own_suite, own_overrides, storage=own_storage)
        facts = {"variant": {"name": variant.name, "levels": dict(variant.levels), "place": place}}
        arms.append(Arm(variant, evaluation._replace(experiment=experiment, facts=facts), own_storage))

    timeout_s = arms[0].evaluation.plan.timeout_s
    return ResolvedExperiment(
        id=experiment,
        suite=suite.name or None,
        arms=[_beside_others(arm, arms) for arm in arms] if len(arms) > 1 else arms,
        baseline=gates.baseline,
        seed=suite.seed,
        timeout_s=timeout_s,
    )


def suite_evaluations(suite: Suite, overrides: SuiteOverrides) -> dict[str, Evaluation]:
    """What a suite runs, by the name of the variant; one without variants has one evaluation, without a name.

    Raises:
        InputError: Something given cannot be used.
    """
    if suite.variants is None:
        return {"": resolve_evaluation(suite, overrides)}
    variants = suite_variants(suite, calls_target=overrides.asks_models)
    experiment = resolve_experiment(suite, variants, overrides, storage=NOT_STORED)
    return {arm.variant.name: arm.evaluation for arm in experiment.arms}


def check_variants(evaluations: Mapping[str, Evaluation]) -> dict[str, CheckedSamples]:
    """What is seen of the samples before anything runs, by variant.

    Args:
        evaluations: What is going to run, by the name of the variant.

    Raises:
        InputError: A variant cannot use a sample; the issues of all variants are listed, with the variants they are of.
    """
    checked = {}
    names_by_issue: dict[Issue, list[str]] = {}
    for name, evaluation in evaluations.items():
        try:
            checked[name] = check_samples(evaluation)
        except InputError as error:
            for issue in dict.fromkeys(error.issues):
                names_by_issue.setdefault(issue, []).append(name)
    if names_by_issue:
        raise ConfigurationError(
            issue
            if len(names) == len(evaluations)
            else issue._replace(message=f"{list_names(names, limit=3)}: {issue.message}")
            for issue, names in names_by_issue.items()
        )
    return checked


class _ResumedExperiment(NamedTuple):
    """An experiment that is in the store.

    Attributes:
        id: Its id.
        runs: By the name of a variant, its run.
    """

    id: str
    runs: Mapping[str, RunRow]


def _find_resumed(storage: StoredOrNot, suite: Suite, *, dataset: str) -> _ResumedExperiment | None:
    """The stored experiment that is to be resumed, by its id or by one of its runs; None where a new one is to begin.

    Raises:
        StoreError: There is none of that name, or it belongs to another suite.
    """
    if isinstance(storage, NotStored) or not storage.resume:
        return None
    store = storage.store
    name = suite.name or None
    experiment = store.find_experiment(storage.resume) if isinstance(storage.resume, str) else None

    if experiment is None:
        row = find_resumed(storage, kind="run", suite=name, dataset=dataset, accept=_is_of_experiment)
        if row is None:
            return None
        experiment = row.experiment
        if experiment is None:
            message = f"The run `{row.id}` belongs to no experiment, and this suite has variants."
            raise StoreError(Issue(message, store.where))

    runs = variant_rows(store, experiment)
    others = {row.suite for row in runs.values()} - {name}
    if others:
        message = f"The experiment `{experiment}` is one of the suite {list_names(map(str, others))}."
        raise StoreError(Issue(message, store.where))
    return _ResumedExperiment(experiment, runs)


def _is_of_experiment(row: RunRow) -> bool:
    return row.experiment is not None


def _own_storage(storage: StoredOrNot, name: str, resumed: RunRow | None) -> StoredOrNot:
    """Where the run of one variant is stored, and what it resumes."""
    if isinstance(storage, NotStored):
        return NOT_STORED
    return RunStorage(
        storage.store,
        None if resumed is None else resumed.id,
        storage.allow_changed,
        lambda sentence: storage.tell(f"{name}: {sentence}"),
        keep_prompts=storage.keep_prompts,
    )


def _target_of(variant: Variant) -> dict[str, Any]:
    """How a variant's target is given where no suite declares it."""
    if isinstance(variant.target, DeclaredTarget):
        return {}
    return {"outputs" if isinstance(variant.target, SavedOutputs) else "target": variant.target}


def _new_id(suite: Suite, parts: Sequence[str], store: Store | None) -> str:
    """The id of an experiment that begins now, which the store has not."""
    now = (suite.settings.clock or clock_from_environment()).now()
    name = f"exp-{run_id(now, digest([suite.name, suite.seed, format_time(now), *parts]))}"
    ids = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(known for known in ids if store is None or not store.runs(experiment=known, limit=1))


def _beside_others(arm: Arm, arms: Sequence[Arm]) -> Arm:
    """A variant as it runs beside the others: all of them have as many calls under way as one alone would have.

    They ask the same clients. Its run has no time of its own. Cases that watch the judges are judged for the first one.
    """
    evaluation = arm.evaluation
    plan = evaluation.plan
    if not isinstance(plan.target, SavedOutputs):
        plan = plan._replace(most_calls=-(-plan.target_concurrency // len(arms)))
    access = arms[-1].evaluation.access.without_anchors()
    if arm is arms[0] and any(role.anchors is not None for role in evaluation.access.roles.values()):
        # They are judged once its run is over, which closes the clients.
        access = evaluation.access
    return arm._replace(evaluation=evaluation._replace(plan=plan._replace(timeout_s=None), access=access))


async def run_experiment(
    experiment: ResolvedExperiment,
    *,
    clock: Clock | None = None,
    stop: Stop | None = None,
    warn: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
) -> list[FinishedVariant]:
    """Run every variant side by side, and keep what comes of each; one that cannot go on stops none of the others.

    Args:
        experiment: What to run.
        clock: The time; the machine's own unless given.
        stop: Asks all of it to stop.
        warn: Gets each warning, with the variants that it is about.
        progress: Gets the progress of all of it.

    Raises:
        InputError: A variant cannot use a sample; nothing has run then.
    """
    stop = stop or Stop()
    checked = list(check_variants({arm.variant.name: arm.evaluation for arm in experiment.arms}).values())
    running = _SideBySide(experiment, clock or clock_from_environment(), warn, progress)
    stop.call_in(asyncio.get_running_loop(), lambda: running.stop_all(stop.reason or "stopped"))
    try:
        with deadline(stop, experiment.timeout_s):
            async with asyncio.TaskGroup() as tasks:
                # The gate of a run finds its baseline when the run begins.
                places = sorted(range(len(checked)), key=lambda place: place != running.baseline)
                started = {place: tasks.create_task(running.run(place, checked[place])) for place in places}
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        await running.close()
    return [started[place].result() for place in range(len(checked))]


def conclude_experiment(
    experiment: ResolvedExperiment, finished: Sequence[FinishedVariant], store: Store | None
) -> Experiment:
    """What the variants show that were run, together with others of the same experiment that are stored.

    Args:
        experiment: What was run.
        finished: What came of it.
        store: Where it is stored; None where it is not.

    Raises:
        ReportError: No variant has anything to be compared.
        StoreError: A run cannot be read.
    """
    missing = [
        MissingVariant(name=variant.name, levels=dict(variant.levels), reason=str(variant.error).partition("\n")[0])
        for variant in finished
        if variant.error is not None
    ]
    if store is not None:
        return stored_experiment(store, experiment.id, missing=missing)

    sources = [
        VariantSource(variant.name, variant.levels, ReportSource(variant.report))
        for variant in finished
        if variant.report is not None
    ]
    return build_experiment(sources, id=experiment.id, name=experiment.suite, missing=missing)


class _SideBySide:
    """The runs of an experiment while they go on.

    Args:
        experiment: What is run.
        clock: The time.
        warn: Gets each warning.
        progress: Gets the progress.

    Attributes:
        baseline: The place of the variant with which the gates of the others compare; None for none.
    """

    def __init__(
        self,
        experiment: ResolvedExperiment,
        clock: Clock,
        warn: Callable[[str], None],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        names = [arm.variant.name for arm in experiment.arms]
        self.baseline = None if experiment.baseline is None else names.index(experiment.baseline)
        self._arms = experiment.arms
        self._clock = clock
        self._warnings = _GroupedWarnings(names, warn)
        self._progress = (
            None if progress is None else _SummedProgress(progress, [arm.evaluation.plan.size for arm in self._arms])
        )
        self._turnstile = Turnstile(len(names), seed=experiment.seed, opened=self._warnings.tell)
        roles, limits = self._arms[0].evaluation.access
        self._calls = SideBySideCalls(roles, clock=clock, cache=limits.cache, budget=limits.budget())
        self._stops = [Stop() for _ in names]
        self._ended = [asyncio.Event() for _ in names]

    async def run(self, place: int, checked: CheckedSamples) -> FinishedVariant:
        """Run one variant to its end, or until it cannot go on."""
        arm, stop, turns = self._arms[place], self._stops[place], self._turnstile.turns_of(place)
        stop.call_in(asyncio.get_running_loop(), turns.leave)
        stop.on_request(self._stop_others)
        running = run_evaluation(
            arm.evaluation,
            storage=arm.storage,
            backend=_InTurn(InThisProcess(self._calls, turns=turns), turns, self._baseline_of(place)),
            clock=self._clock,
            stop=stop,
            warn=partial(self._warnings.add, arm.variant.name),
            progress=None if self._progress is None else partial(self._progress.add, place),
            checked=checked,
        )
        try:
            report = await running
        except DeemsterError as error:
            return FinishedVariant(arm.variant.name, arm.variant.levels, None, error)
        else:
            return FinishedVariant(arm.variant.name, arm.variant.levels, report)
        finally:
            turns.leave()
            self._ended[place].set()

    def stop_all(self, reason: str) -> None:
        """Ask all runs to stop."""
        for stop in self._stops:
            stop.request(reason)

    async def close(self) -> None:
        """Close the clients of models, and tell the last warnings."""
        await close_clients(role for arm in self._arms for role in arm.evaluation.access.roles.values())
        self._warnings.tell()

    def _stop_others(self) -> None:
        """Stop all where one has found that what all may spend is spent."""
        if self._calls.budget is not None and self._calls.budget.exhausted is not None:
            self.stop_all(self._calls.budget.exhausted)

    def _baseline_of(self, place: int) -> asyncio.Event | None:
        """What a run waits for before its gate compares it; None where it compares with no variant."""
        return None if self.baseline in (None, place) else self._ended[self.baseline]


class _InTurn:
    """Does the work of one run in turn with the others.

    Args:
        backend: Does it.
        turns: The turns of the run.
        baseline: Set once the run has ended with which its gate compares; None for none.
    """

    def __init__(self, backend: InThisProcess, turns: RunTurns, baseline: asyncio.Event | None) -> None:
        self._backend = backend
        self._turns = turns
        self._baseline = baseline

    def open(self) -> AbstractContextManager[Execute]:
        """What does the work: nothing needs to get ready."""
        return nullcontext(self.execute)

    async def execute(self, work: RunWork) -> None:
        """Do the work; the others wait for none of what comes after it."""
        await self._backend.execute(work)
        self._turns.leave()
        if self._baseline is not None:
            await self._baseline.wait()


class _GroupedWarnings:
    """Tells each warning once, with the variants that it is about.

    Args:
        names: All variants.
        warn: Gets what is told.
    """

    def __init__(self, names: Sequence[str], warn: Callable[[str], None]) -> None:
        self._all = list(names)
        self._warn = warn
        self._names_by_message: dict[str, list[str]] = {}
        self._told: set[str] = set()

    def add(self, name: str, message: str) -> None:
        """Note a warning about a variant."""
        self._names_by_message.setdefault(message, []).append(name)

    def tell(self) -> None:
        """Tell what was noted since the last time."""
        for message, names in self._names_by_message.items():
            if message not in self._told:
                is_about_all = set(names) == set(self._all)
                self._warn(message if is_about_all else f"{list_names(dict.fromkeys(names), limit=3)}: {message}")
        self._told.update(self._names_by_message)
        self._names_by_message = {}


class _SummedProgress:
    """The progress of several runs as that of one.

    Args:
        progress: Gets it.
        sizes: How many executions each run has.
    """

    def __init__(self, progress: Callable[[Progress], None], sizes: Sequence[int]) -> None:
        self._progress = progress
        self._states = [Progress(0, size, 0) for size in sizes]

    def add(self, place: int, state: Progress) -> None:
        """Note how far one of the runs is, and tell how far all are."""
        self._states[place] = state
        states = self._states
        spent: dict[str, list[Usage]] = {}
        for known in states:
            for role, usage in known.spent.items():
                spent.setdefault(role, []).extend([] if usage is None else [usage])
        self._progress(
            Progress(
                sum(known.done for known in states),
                sum(known.total for known in states),
                sum(known.unscored for known in states),
                {role: sum_usage(used) for role, used in spent.items()},
                state.limits,
            )
        )
