"""Grading a dataset: many items at once, through one gateway, into one grading."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from deemster.dataset.labelled import RubricDataset
from deemster.errors import ConfigurationError, counted
from deemster.evaluation.apart import finished
from deemster.evaluation.asking import Asking, asking_of, completed, opened
from deemster.evaluation.counting import TELL_S, Progress
from deemster.evaluation.door import warner
from deemster.evaluation.pages import Pages
from deemster.judges.grading.cases import Case, case_of
from deemster.judges.grading.grader import CriterionGrader
from deemster.judges.grading.grades import Grading, ItemGrading, JudgeGrading, total_of
from deemster.metrics.contract import shown
from deemster.model import Gateway
from deemster.records import Mark, Output, Sample, Unscored, Usage
from deemster.rubrics.criterion import Criterion
from deemster.run import catalog
from deemster.run.clock import Clock, clock_of_environment
from deemster.run.guard import Caught
from deemster.run.marking import marks_of, user_mark
from deemster.run.playing import result_of
from deemster.run.stopping import DRAIN_S, Stop

# Requests that are made out at once: enough to keep every model busy, few enough to hold in memory.
LIVE = 2048


def grade(
    dataset: RubricDataset | str | Path,
    grader: CriterionGrader,
    *,
    models: Mapping[str, Any] | None = None,
    cache: str | Path | None = None,
    budget_usd: Decimal | float | None = None,
    budget_tokens: int | None = None,
    offline: bool = False,
    progress: Callable[[Progress], None] | None = None,
    clock: Clock | None = None,
) -> Grading:
    """Grade every item of a dataset by its rubric.

    Works in a script, inside a running event loop (a notebook) and in any thread.

    Args:
        dataset: The items and their rubric, or the path of their file.
        grader: Who judges, and how.
        models: Models by role, as the judges name them: a client, or a map as in a suite's `models` section.
        cache: A file in which the models' answers are kept, and looked up first.
        budget_usd: US dollars that the models must not cost more than; what is not asked then is `not_run`.
        budget_tokens: Tokens that the models must not use more of.
        offline: Whether nothing may be asked over the network.
        progress: Told how far the grading is; `unscored` counts votes that failed.
        clock: The time; the machine's own unless given.

    Raises:
        InputError: Something given cannot be used.
    """
    asking = asking_of(models, cache=cache, budget_usd=budget_usd, budget_tokens=budget_tokens, offline=offline)
    warn = warner(inspect.currentframe())
    return finished(graded(dataset, grader, asking=asking, progress=progress, clock=clock, warn=warn))


async def grade_async(
    dataset: RubricDataset | str | Path,
    grader: CriterionGrader,
    *,
    progress: Callable[[Progress], None] | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> Grading:
    """The same as ``grade``, to be awaited inside a running event loop.

    Raises:
        InputError: Something given cannot be used.
    """
    warn = warner(inspect.currentframe())
    asking = asking_of(options.pop("models", None), **options)
    return await graded(dataset, grader, asking=asking, progress=progress, clock=clock, warn=warn)


async def graded(
    dataset: RubricDataset | str | Path,
    grader: CriterionGrader,
    *,
    asking: Asking,
    warn: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
    clock: Clock | None = None,
    stop: Stop | None = None,
) -> Grading:
    """Grade every item of a dataset.

    Args:
        dataset: The items and their rubric, or the path of their file.
        grader: Who judges, and how.
        asking: How models may be asked.
        warn: Told each warning.
        progress: Told how far the grading is.
        clock: The time; the machine's own unless given.
        stop: Asks the grading to stop; what was not asked is then `not_run`.

    Raises:
        InputError: Something given cannot be used.
    """
    if not isinstance(grader, CriterionGrader):
        raise ConfigurationError(f"`grader` is a `CriterionGrader`, not {shown(grader)[:60]}.")
    known = dataset if isinstance(dataset, RubricDataset) else RubricDataset.load(dataset)
    checks = checks_of(known)
    asking = completed(asking, [grader, *checks.values()])
    stop, clock = stop or Stop(), clock or clock_of_environment()
    work = _Work(known, grader, checks, stop=stop, progress=progress)
    async with opened(asking, clock=clock, seed=grader.seed, on_stop=stop.request) as gateway:
        stop.call_in(asyncio.get_running_loop(), lambda: gateway.halt(stop.reason or "stopped"))
        await work.done(gateway)
        for note in gateway.notes:
            warn(note)
    grading = work.grading()
    if grading.halted is not None:
        missing = sum(judge.not_run for judge in grading.judges)
        warn(f"{counted(missing, 'vote')} of {work.votes:,} were not asked for: {grading.halted}")
    for judge in grading.judges:
        if judge.failed:
            warn(f"The judge `{judge.id}` failed every call: {work.first_failure[judge.id]}")
    return grading


def checks_of(dataset: RubricDataset) -> dict[Criterion, Any]:
    """The metric of every criterion that a metric answers.

    Raises:
        ConfigurationError: There is no such metric, or it cannot be made with these arguments; all faults are listed.
    """
    found: dict[Criterion, Any] = {}
    faults = []
    for rubric in {id(rubric): rubric for rubric in dataset.rubrics}.values():
        for criterion in rubric.criteria:
            if criterion.check is None or criterion in found:
                continue
            try:
                found[criterion] = _guarded(catalog.resolve({criterion.check.metric: dict(criterion.check.args)}))
            except ConfigurationError as error:
                faults += [fault._replace(message=f"`{criterion.name}`: {fault.message}") for fault in error.faults]
    if faults:
        raise ConfigurationError(list(dict.fromkeys(faults)))
    return found


def _guarded(metric: Any) -> _Guarded | _GuardedScorer:
    return _GuardedScorer(metric) if hasattr(metric, "script") else _Guarded(metric)


class _Guarded:
    """A metric whose every failure is an unscored mark."""

    def __init__(self, metric: Any) -> None:
        self.name = str(metric.name)
        self.roles = tuple(getattr(metric, "roles", ()))
        self._metric = metric

    def score(self, sample: Sample, output: Output) -> Mark:
        """The mark of one output."""
        ((mark,),) = marks_of([self._metric], [sample], [output], thresholds={})
        return mark


class _GuardedScorer:
    """A scorer whose every failure is an unscored mark."""

    def __init__(self, metric: Any) -> None:
        self.name = str(metric.name)
        self.roles = tuple(getattr(metric, "roles", ()))
        self._metric = metric

    def script(self, sample: Sample, output: Output) -> Any:
        """Mark one output, asking as it goes."""
        with Caught() as caught:
            return user_mark(self._metric, (yield from self._metric.script(sample, output)))
        return Unscored("metric_failed", caught.message)


class _Work:
    """The items of one grading, under way."""

    def __init__(
        self,
        dataset: RubricDataset,
        grader: CriterionGrader,
        checks: Mapping[Criterion, Any],
        *,
        stop: Stop,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._dataset, self._grader, self._checks, self._stop, self._progress = dataset, grader, checks, stop, progress
        self._pages = Pages(len(dataset))
        self._left: Iterator[int] = iter(range(len(dataset)))
        self._live: set[asyncio.Task[ItemGrading]] = set()
        self._gateway: Gateway | None = None
        self._done = self._failed = 0
        self._votes: Counter[str] = Counter()
        self._not_run: Counter[str] = Counter()
        self._failures: dict[str, Counter[str]] = {judge.id: Counter() for judge in grader.judges}
        self._usage: dict[str, Usage | None] = {}
        self.first_failure: dict[str, str] = {}

    async def done(self, gateway: Gateway) -> None:
        """Grade everything, as many items at once as keep the models busy."""
        self._gateway = gateway
        rubrics = {id(rubric): rubric for rubric in self._dataset.rubrics}
        each = max((self._grader.requests(rubric) for rubric in rubrics.values()), default=1)
        workers = max(1, min(len(self._dataset), LIVE // max(each, 1)))
        async with asyncio.TaskGroup() as tasks:
            keepers = [tasks.create_task(self._let_go()), tasks.create_task(self._tell_regularly())]
            await asyncio.gather(*(tasks.create_task(self._worker(gateway)) for _ in range(workers)))
            for keeper in keepers:
                keeper.cancel()

    async def _worker(self, gateway: Gateway) -> None:
        for position in self._left:
            case = case_of(self._dataset, position)
            if self._stop.requested:
                self._keep(position, self._unasked(case))
                continue
            task = asyncio.ensure_future(self._item(case, gateway))
            self._live.add(task)
            try:
                await asyncio.wait([task])
            finally:
                self._live.discard(task)
                task.cancel()
            self._keep(position, self._unasked(case) if task.cancelled() else task.result())

    async def _item(self, case: Case, gateway: Gateway) -> ItemGrading:
        with Caught() as caught:
            item: ItemGrading = await result_of(self._grader.script(case, checks=self._checks), gateway.answers, [])
            return item
        return ItemGrading(id=case.id, unscored=caught.message, error=caught.message)

    def _unasked(self, case: Case) -> ItemGrading:
        return self._grader.unasked(case, self._stop.reason or "The grading was stopped.")

    def _keep(self, position: int, item: ItemGrading) -> None:
        self._pages.put(position, item)
        self._done += 1
        spent: dict[str, list[Usage | None]] = {}
        for criterion in item.criteria:
            for vote in criterion.votes:
                spent.setdefault(vote.judge, []).append(vote.usage)
                if vote.failure is not None and vote.judge in self._failures:
                    self._failed += 1
                    self._failures[vote.judge][vote.failure.category] += 1
                    if vote.failure.cause == "not_run":
                        self._not_run[vote.judge] += 1
                    else:
                        self.first_failure.setdefault(vote.judge, vote.failure.message)
        for judge, usages in spent.items():
            self._votes[judge] += len(usages)
            self._usage[judge] = total_of([self._usage.get(judge), *usages])
        self._tell()

    @property
    def votes(self) -> int:
        """How many votes there should be."""
        return sum(self._votes[judge.id] for judge in self._grader.judges)

    def grading(self) -> Grading:
        """What it all comes to."""
        judges = tuple(
            JudgeGrading(
                id=judge.id,
                model=judge.model,
                weight=judge.weight,
                votes=self._votes[judge.id],
                failures=dict(sorted(self._failures[judge.id].items())),
                not_run=self._not_run[judge.id],
                usage=self._usage.get(judge.id),
            )
            for judge in self._grader.judges
        )
        return Grading(
            items=self._pages,
            judges=judges,
            settings=self._grader.settings,
            dataset=self._dataset,
            usage=total_of(self._usage.values()),
            halted=self._halted if self._not_run else None,
        )

    @property
    def _halted(self) -> str | None:
        """Why something was not asked: somebody or the budget stopped it, or a server was given up."""
        return self._stop.reason or (None if self._gateway is None else self._gateway.held_back)

    async def _let_go(self) -> None:
        """Once asked to stop, give what is under way a little time and then let go of it."""
        await self._stop.wait()
        await asyncio.sleep(DRAIN_S)
        for task in tuple(self._live):
            task.cancel()

    async def _tell_regularly(self) -> None:
        while self._progress is not None:
            await asyncio.sleep(TELL_S)
            self._tell()

    def _tell(self) -> None:
        if self._progress is not None and self._gateway is not None:
            gateway = self._gateway
            total = len(self._dataset)
            self._progress(Progress(self._done, total, self._failed, gateway.spent, gateway.limits()))
