"""The door to golden-dataset evaluation: from a dataset, a target and metrics to a report."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import warnings as python_warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from deemster.dataset import Dataset
from deemster.errors import ConfigurationError, Fault, did_you_mean
from deemster.records import Execution, Metric, MetricCard, Sample
from deemster.report import Report, RunNote, assemble, redacted
from deemster.run import catalog
from deemster.run.clock import Clock, clock_of_environment
from deemster.run.engine import perform
from deemster.run.plan import Plan, Target, survey
from deemster.run.stopping import Stop
from deemster.run.suite import CONCURRENCY, SEED
from deemster.store import Spool
from deemster.summary import (
    NONE_UNSCORED,
    Allowance,
    Gate,
    Tally,
    Totals,
    decide,
    read_allowance,
    read_gate,
    summarize,
    unknown_names,
)
from deemster.target.python import PythonTarget
from deemster.target.saved import SavedOutputs

DELTA = 0.05
_T = TypeVar("_T")


class Progress(NamedTuple):
    """How far a run is."""

    done: int
    total: int
    unscored: int


class Job(NamedTuple):
    """A plan and everything else a run is told.

    Attributes:
        plan: What to run.
        gate: The rules it is held to; None where nobody asked for a gate.
        suite: The suite's name.
        seed: For everything that draws.
        delta: The difference that repeated runs should be able to show.
        strict: Whether something absent in a sample is an error.
        allowance: How many marks may stay unscored before the run counts as incomplete.
        discreet: Whether warnings leave out what a sample says.
    """

    plan: Plan
    gate: Gate | None = None
    suite: str | None = None
    seed: int = SEED
    delta: float = DELTA
    strict: bool = False
    allowance: Allowance = NONE_UNSCORED
    discreet: bool = False


def evaluate(
    dataset: Dataset | Iterable[Any] | str | Path,
    *,
    target: Callable[..., Any] | None = None,
    outputs: SavedOutputs | Mapping[str, Any] | str | Path | None = None,
    metrics: Sequence[Any],
    repetitions: int | None = None,
    thresholds: Mapping[str, float] | None = None,
    gate: Mapping[str, Any] | None = None,
    concurrency: int = CONCURRENCY,
    seed: int = SEED,
    delta: float = DELTA,
    strict: bool = False,
    max_unscored: int | str = 0,
    clock: Clock | None = None,
) -> Report:
    """Run a target over a golden dataset, score what it says, and report.

    Works in a script, inside a running event loop (a notebook) and in any thread.

    Args:
        dataset: The samples, as a dataset, the path of its file, or a list of samples or maps.
        target: A function, sync or async, from a sample's input to text, an ``Output`` or JSON data.
        outputs: Saved outputs in place of a target: a map of id to text, or a file.
        metrics: Metrics, specs such as `ndcg@10`, or one-key maps of alias to options.
        repetitions: How often each sample is run; otherwise what the dataset says, or once.
        thresholds: Pass marks that replace the metrics' own, by metric name.
        gate: Rules as in a suite's `gate` section.
        concurrency: How many calls of the target may be under way at once.
        seed: For everything that draws.
        delta: The difference that repeated runs should be able to show.
        strict: Whether something absent in a sample is an error instead of a warning.
        max_unscored: Marks that may stay unscored before the run counts as incomplete: a count, or a share like `2%`.
        clock: The time; the machine's own unless given.

    Raises:
        InputError: Something given cannot be used.
    """
    job = job_of(
        dataset,
        target=target,
        outputs=outputs,
        metrics=metrics,
        repetitions=repetitions,
        thresholds=thresholds,
        gate=gate,
        concurrency=concurrency,
        seed=seed,
        delta=delta,
        strict=strict,
        max_unscored=max_unscored,
    )
    return _shown(finished(run(job, clock=clock, warn=_warner(inspect.currentframe()))))


async def evaluate_async(
    dataset: Dataset | Iterable[Any] | str | Path, *, clock: Clock | None = None, **options: Any
) -> Report:
    """The same as ``evaluate``, to be awaited inside a running event loop.

    Raises:
        InputError: Something given cannot be used.
    """
    return _shown(await run(job_of(dataset, **options), clock=clock, warn=_warner(inspect.currentframe())))


def _shown(report: Report) -> Report:
    """The report as it is shown unless somebody asks for more: without the samples' input."""
    return redacted(report, quotes=lambda _: None)


def job_of(
    dataset: Dataset | Iterable[Any] | str | Path,
    *,
    target: Callable[..., Any] | None = None,
    outputs: SavedOutputs | Mapping[str, Any] | str | Path | None = None,
    metrics: Sequence[Any],
    repetitions: int | None = None,
    thresholds: Mapping[str, float] | None = None,
    gate: Mapping[str, Any] | None = None,
    concurrency: int = CONCURRENCY,
    seed: int = SEED,
    delta: float = DELTA,
    strict: bool = False,
    max_unscored: int | str = 0,
) -> Job:
    """Resolve and check everything a run is told; see ``evaluate``.

    Raises:
        InputError: Something given cannot be used.
    """
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 < delta <= 1:
        raise ConfigurationError(f"`delta` lies in (0, 1], not {delta!r}.")
    if type(seed) is not int or seed < 0:
        raise ConfigurationError(f"`seed` is a whole number of at least 0, not {seed!r}.")
    resolved = catalog.resolve_all(metrics)
    plan = planned(
        _dataset(dataset),
        target=_target(target, outputs),
        metrics=resolved,
        repetitions=repetitions,
        thresholds=thresholds or {},
        concurrency=concurrency,
    )
    rules = None if gate is None else read_gate(gate, place=lambda path: ".".join(("gate", *map(str, path))))
    allowance = (rules.allowance if rules is not None else None) or read_allowance(max_unscored)
    return Job(plan, gate=rules, seed=seed, delta=delta, strict=strict, allowance=allowance)


def _dataset(given: Dataset | Iterable[Any] | str | Path) -> Dataset:
    if isinstance(given, Dataset):
        return given
    if isinstance(given, (str, Path)):
        return Dataset.load(given)
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise ConfigurationError(f"A dataset is a Dataset, a path or a list of samples, not {type(given).__name__}.")
    samples: Any = given
    return Dataset(samples, name="samples")


def planned(
    dataset: Dataset,
    *,
    target: Target,
    metrics: tuple[Metric, ...],
    repetitions: int | None,
    thresholds: Mapping[str, float],
    concurrency: int,
) -> Plan:
    """A plan whose parts fit each other.

    Args:
        dataset: The samples.
        target: What answers them.
        metrics: What marks the answers.
        repetitions: How often each sample is run; otherwise what the saved outputs or the dataset say, or once.
        thresholds: Pass marks by metric name or spec.
        concurrency: How many calls of the target may be under way at once.

    Raises:
        InputError: Repetitions, thresholds or saved outputs do not fit.
    """
    if repetitions is not None and (type(repetitions) is not int or repetitions < 1):
        raise ConfigurationError(f"`repetitions` is a whole number of at least 1, not {repetitions!r}.")
    if type(concurrency) is not int or concurrency < 1:
        raise ConfigurationError(f"`concurrency` is a whole number of at least 1, not {concurrency!r}.")
    times = repetitions or dataset.repetitions or 1
    if isinstance(target, SavedOutputs):
        if repetitions is None and target.repetitions > 1:
            times = dataset.repetitions or target.repetitions
        target.check(dataset, times)
    return Plan(dataset, target, metrics, times, _thresholds(thresholds, metrics), concurrency)


def spellings(metrics: Sequence[Metric]) -> dict[str, str]:
    """Every way to call the run's metrics (by name, by spec), with the name it stands for."""
    return {catalog.spec(metric): metric.name for metric in metrics} | {metric.name: metric.name for metric in metrics}


def _thresholds(given: Mapping[str, float], metrics: Sequence[Metric]) -> dict[str, float]:
    names = spellings(metrics)
    faults = []
    resolved = {}
    for name, value in given.items():
        if name not in names:
            known = did_you_mean(name, dict.fromkeys(names.values()))
            faults.append(Fault(f"A threshold is given for `{name}`, which is no metric of this run. {known}"))
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            faults.append(Fault(f"The threshold of `{name}` is a number between 0 and 1, not {value!r}."))
        else:
            resolved[names[name]] = float(value)
    if faults:
        raise ConfigurationError(faults)
    return resolved


def _target(target: Callable[..., Any] | None, outputs: Any) -> Target:
    if (target is None) == (outputs is None):
        raise ConfigurationError("Give either `target`, a function, or `outputs`, what it has said already.")
    if target is not None:
        return PythonTarget(target)
    if isinstance(outputs, SavedOutputs):
        return outputs
    return SavedOutputs.load(outputs) if isinstance(outputs, (str, Path)) else SavedOutputs(outputs)


async def run(
    job: Job,
    *,
    clock: Clock | None = None,
    stop: Stop | None = None,
    warn: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Run a job and report on it.

    Args:
        job: What to run.
        clock: The time; the machine's own unless given.
        stop: Asks the run to stop; what was not started is then `not_run`.
        warn: Told each warning.
        progress: Told how far the run is.

    Raises:
        InputError: A sample is malformed for a metric, or the gate names something unknown.
    """
    plan, clock, stop = job.plan, clock or clock_of_environment(), stop or Stop()
    cards = [catalog.card(metric, threshold=plan.thresholds.get(metric.name)) for metric in plan.metrics]
    tally = Tally(cards, samples=len(plan.dataset), repetitions=plan.repetitions)

    def tag(position: int, sample: Sample) -> None:
        tally.tag(position, sample.tags)

    for warning in survey(plan, note=tag, strict=job.strict, discreet=job.discreet):
        warn(warning)
    names = spellings(plan.metrics)
    if job.gate is not None:
        unknown_names(job.gate, metrics=names, cohorts=[name for name, _ in tally.cohorts])
    spool = Spool(samples=len(plan.dataset), repetitions=plan.repetitions)
    counter = _Counter(len(spool), progress)

    def sink(executions: Sequence[Execution]) -> None:
        tally.add(executions)
        spool.add(executions)
        counter.add(executions)

    started, began = clock.now(), clock.elapsed_s()
    await perform(plan, sink=sink, clock=clock, stop=stop)
    ended, finished_s = clock.now(), clock.elapsed_s()
    summary = summarize(tally, delta=job.delta)
    missing = _missing(summary.totals, stop, job.allowance)
    note = RunNote(
        id=_run_id(started, job, cards),
        suite=job.suite,
        status="incomplete" if missing else "complete",
        reason=missing,
        started_at=_written(started),
        finished_at=_written(ended),
        duration_s=0.0 if began is None or finished_s is None else round(finished_s - began, 3),
        seed=job.seed,
        varied=plan.varied,
    )
    decision = None if job.gate is None else decide(job.gate, summary, metrics=names)
    return assemble(run=note, dataset=plan.dataset, tally=tally, summary=summary, executions=spool, gate=decision)


def _missing(totals: Totals, stop: Stop, allowance: Allowance) -> str | None:
    """Why a run is incomplete: marks that were not run, or more unscored ones than are allowed."""
    if totals.not_run:
        return f"{totals.not_run} of {totals.marks} marks were not run ({stop.reason})"
    if allowance.exceeded(totals.unscored, totals.marks):
        return f"{totals.unscored} of {totals.marks} marks are unscored, above the allowance of {allowance}"
    return None


class _Counter:
    """Counts finished executions and tells how far the run is."""

    def __init__(self, total: int, progress: Callable[[Progress], None] | None) -> None:
        self.total, self.done, self.unscored, self.progress = total, 0, 0, progress

    def add(self, executions: Sequence[Execution]) -> None:
        self.done += len(executions)
        if self.progress is not None:
            self.unscored += sum(hasattr(mark, "cause") for execution in executions for mark in execution.marks)
            self.progress(Progress(self.done, self.total, self.unscored))


def finished(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine, whether or not an event loop is running already.

    Inside a running loop (a notebook) it runs in a thread of its own, so that nothing has to be patched.
    """
    if not _in_a_loop():
        return asyncio.run(work)
    with ThreadPoolExecutor(1, thread_name_prefix="deemster-evaluate") as pool:
        return pool.submit(asyncio.run, work).result()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_id(started: datetime, job: Job, cards: Sequence[MetricCard]) -> str:
    """A run's id: when it started, and a digest of what it was."""
    facts = (job.plan.dataset.fingerprint, *(card.identity for card in cards), job.seed, job.suite, _written(started))
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()
    return f"{started:%Y%m%dT%H%M%SZ}-{digest[:6]}"


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _warner(frame: FrameType | None) -> Callable[[str], None]:
    """Warns at the line that called the function of a frame; a stack level would count the event loop's own."""
    caller = frame.f_back if frame is not None else None
    file, line = (caller.f_code.co_filename, caller.f_lineno) if caller is not None else ("deemster", 1)

    def warn(message: str) -> None:
        python_warnings.warn_explicit(message, UserWarning, file, line)

    return warn
