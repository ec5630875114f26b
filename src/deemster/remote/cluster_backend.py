"""Does the work of an evaluation on the workers of a cluster: divides it into parts, and takes what comes back."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from deemster.engine.backend import Execute, RunWork
from deemster.engine.execution_handover import NO_PENDING_STORAGE
from deemster.engine.model_access import ModelAccess
from deemster.engine.progress import TELL_S
from deemster.engine.stop_request import deadline
from deemster.engine.work_items import WorkItem, planned_work
from deemster.engine.worker_pool import DRAIN_S
from deemster.errors import ConfigurationError, Issue, plural
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.models.budget import UsageBound
from deemster.models.call_log import LoggedCall
from deemster.models.rate_limiter import LimiterState
from deemster.models.worker_threads import WorkerThreads
from deemster.records import Answer, Execution, Output, Usage
from deemster.records.usage import sum_usage
from deemster.remote._cluster_worker import PartNews, PartSettings, PartWork, run_part
from deemster.remote.call_coordinator import CallCoordinator, CoordinatorSettings, CoordinatorState, RoleLimits
from deemster.remote.ray_cluster import RayCluster, WorkerLostError, open_cluster
from deemster.store import decode_execution
from deemster.targets.saved_outputs import SavedOutputs

# The most executions of one part, where metrics ask no model and where they do.
_MOST_SCORED, _MOST_ASKED = 4096, 512
# Workers that are free early take a further part: so many parts there are for each slot, at least.
_PARTS_PER_SLOT = 4
# A part whose workers die so often kills them itself.
_MOST_LOSSES = 5
_decode_call = msgspec.json.Decoder(LoggedCall).decode


class OnCluster:
    """Does the work on the workers of a cluster.

    Args:
        address: The address of the cluster, or `local-cluster`, which starts one on this machine.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    @contextmanager
    def open(self) -> Iterator[Execute]:
        """Connect to the cluster; what does the work there.

        Raises:
            ConfigurationError: It is not there.
        """
        with open_cluster(self._address) as cluster:
            yield lambda work: _ClusterRun(cluster, work).execute()


class _ClusterRun:
    """The work of one evaluation on a cluster.

    Args:
        cluster: The cluster.
        work: What is to be done.
    """

    def __init__(self, cluster: RayCluster, work: RunWork) -> None:
        evaluation, remaining, target = work.evaluation, work.remaining, work.evaluation.plan.target
        self._cluster, self._work, self._evaluation, self._remaining = cluster, work, evaluation, remaining
        self._stop = work.stop
        self._saved = target if isinstance(target, SavedOutputs) else None
        self._coordinator: Any = None
        self._token = secrets.token_hex(8) if remaining.calls is None else remaining.calls.token
        self._models = _ClusterModels(evaluation.access)
        self._turn = asyncio.Lock()
        self._losses = 0

    async def execute(self) -> None:
        """Do it to its end, or until it is asked to stop.

        Raises:
            ConfigurationError: A worker cannot do its part.
            StoreError: The store fails.
        """
        _check_recordings(self._evaluation.access)
        plan = self._evaluation.plan
        at_once = slots = self._cluster.slots
        limits = {
            name: RoleLimits(*role.bounds, role.rpm, role.tpm) for name, role in self._evaluation.access.roles.items()
        }
        if self._saved is None:
            at_once = min(slots, plan.target_concurrency)
            plan = plan._replace(most_calls=plan.target_concurrency // at_once)
        if self._saved is None or plan.scorers:
            self._start_coordinator(limits)
        self._settings = self._cluster.share(self._pickle_settings(plan, limits))
        self._threads = WorkerThreads("deemster-run", at_once=1)
        parts = enumerate(self._parts(slots))
        telling = asyncio.create_task(self._tell_regularly())
        relaying = asyncio.create_task(self._relay_stop())
        try:
            with deadline(self._stop, self._evaluation.plan.timeout_s):
                async with asyncio.TaskGroup() as tasks:
                    for _ in range(at_once):
                        tasks.create_task(self._run_parts(parts))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            telling.cancel()
            relaying.cancel()
            self._threads.close()
        if self._coordinator is not None:
            self._models.update(await self._coordinator.close.remote())
            for note in self._models.notes:
                self._work.warn(note)
        if self._losses:
            self._work.warn(
                f"{plural(self._losses, 'worker')} of the cluster died; other workers ran their parts again."
            )

    async def _run_parts(self, parts: Iterator[tuple[int, list[WorkItem]]]) -> None:
        """Have parts run, one after the other, as long as there are any."""
        for number, works in parts:
            if self._stop.requested or self._models.open_circuit is not None:
                return
            running = asyncio.create_task(self._run_part(number, works))
            stopping = asyncio.create_task(self._stop.wait())
            try:
                await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
                # The worker needs as long to end its own work, and what it sends then a little longer.
                await asyncio.wait([running], timeout=2 * DRAIN_S)
            finally:
                stopping.cancel()
                running.cancel()
                await asyncio.wait([running])
            if not running.cancelled():
                running.result()

    async def _run_part(self, number: int, works: list[WorkItem]) -> None:
        """Have a part run; where its worker dies, what is missing of it runs again on another."""
        left = {(work.position, work.repetition): work for work in works}
        for attempt in range(_MOST_LOSSES):
            name, died = f"{number}/{attempt}", True
            try:
                died = not await self._run_attempt(name, left)
            finally:
                if self._coordinator is not None:
                    await asyncio.shield(asyncio.ensure_future(self._drop(name, died=died)))
            if not died:
                return
            self._losses += 1
        first = next(iter(left.values()))
        message = f"{_MOST_LOSSES} workers died while they ran the same part; its first sample is `{first.sample.id}`."
        raise ConfigurationError(Issue(message))

    async def _drop(self, name: str, *, died: bool) -> None:
        await self._coordinator.drop.remote(name, died)

    async def _run_attempt(self, name: str, left: dict[tuple[int, int], WorkItem]) -> bool:
        """Have what is left of a part run; whether its worker lived to the end."""
        part = await self._threads.call(self._build_part, name, list(left.values()))
        given = (self._settings, self._paths(), part, self._coordinator)
        try:
            async with aclosing(self._cluster.stream(run_part, *given)) as stream:
                async for news in stream:
                    async with self._turn:
                        self._models.add(name, news)
                        await self._threads.call(self._take, news, left)
        except WorkerLostError:
            return False
        return True

    def _take(self, news: PartNews, left: dict[tuple[int, int], WorkItem]) -> None:
        """Store what a worker sent, as this process would have stored its own."""
        remaining = self._remaining
        if remaining.calls is not None:
            for _, body in news.calls:
                remaining.calls.keep(_decode_call(body))
        if remaining.prompts is not None:
            for prompt in news.prompts:
                remaining.prompts.add(*prompt)
        finished = [decode_execution(body) for body in news.executions]
        for execution in finished:
            left.pop((execution.position, execution.repetition), None)
        waiting = [decode_execution(body) for body in news.waiting]
        waiting = [execution for execution in waiting if (execution.position, execution.repetition) in left]
        for execution in waiting:
            self._note_answer(execution, left)
        if waiting:
            self._work.pending.sink(waiting)
        if finished:
            self._work.finish(finished)

    def _note_answer(self, execution: Execution, left: dict[tuple[int, int], WorkItem]) -> None:
        """Note what the target answered, so that another worker need not call it again."""
        if isinstance(execution.answer, Output) and execution.valid:
            key = (execution.position, execution.repetition)
            left[key] = left[key]._replace(answer=execution.answer)

    def _parts(self, slots: int) -> Iterator[list[WorkItem]]:
        plan, works = self._evaluation.plan, self._remaining.works
        total = plan.size - self._remaining.done
        most = _MOST_ASKED if self._coordinator is not None else _MOST_SCORED
        size = max(1, min(most, -(-total // (slots * _PARTS_PER_SLOT))))
        rest = iter(planned_work(plan) if works is None else works)
        while part := list(islice(rest, size)):
            yield part

    def _build_part(self, name: str, works: list[WorkItem]) -> bytes:
        known = {
            place: (work.answer, work.marks, work.earlier)
            for place, work in enumerate(works)
            if work.answer is not None or work.marks is not None or work.earlier is not None
        }
        positions = dict.fromkeys(work.position for work in works)
        outputs = None if self._saved is None else self._saved.excerpt(work.sample.id for work in works)
        keys = [(work.position, work.repetition) for work in works]
        return _pickle(PartWork(name, keys, self._evaluation.plan.dataset.excerpt(positions), outputs, known))

    def _pickle_settings(self, plan: Any, limits: Mapping[str, RoleLimits]) -> bytes:
        remaining, access = self._remaining, self._evaluation.access
        settings = PartSettings(
            # What stays in this process: the files of the run come with each part.
            plan=plan._replace(dataset=None, target=None if self._saved is not None else plan.target, timeout_s=None),
            access=access,
            seed=self._evaluation.seed,
            clock=self._work.clock,
            token=self._token,
            prompts="none" if remaining.prompts is None else remaining.prompts.which,
            pending_s=None if self._work.pending is NO_PENDING_STORAGE else self._work.pending.after_s,
            limits=limits,
        )
        return _pickle(settings)

    def _start_coordinator(self, limits: Mapping[str, RoleLimits]) -> None:
        calls, remaining = self._evaluation.access.calls, self._remaining
        answers: dict[bytes, Answer] = {}

        def keep(key: bytes, answer: Any) -> None:
            if isinstance(answer, Answer):
                answers[key] = answer

        restored = None if remaining.calls is None else remaining.calls.restore(remaining.spent, keep=keep)
        settings = CoordinatorSettings(
            limits,
            usd=calls.cost_limit,
            tokens=calls.budget_tokens,
            spent=UsageBound() if restored is None else restored.spent,
            run=self._token,
            paid=() if restored is None else restored.ids,
            answers=answers,
            lost={} if restored is None else restored.lost,
            cache=None if calls.cache is None else Path(calls.cache),
        )
        self._coordinator = self._cluster.start_actor(CallCoordinator, settings)
        self._work.counter.gateway = self._models

    async def _relay_stop(self) -> None:
        """Tell the workers where this process is asked to stop, and the other way round."""
        if self._coordinator is None:
            return
        coordinator = self._coordinator
        self._stop.on_request(lambda: coordinator.stop.remote(self._stop.reason or "stopped"))
        self._stop.request(await coordinator.wait_for_stop.remote())

    async def _tell_regularly(self) -> None:
        while True:
            await asyncio.sleep(TELL_S)
            if self._coordinator is not None:
                self._models.update(await self._coordinator.state.remote())
            self._work.counter.tell()

    def _paths(self) -> list[str]:
        """Where workers look for the modules of the target and the metrics: where this process does."""
        origin = self._evaluation.origin
        folder = [] if origin is None else [str(Path(origin["file"]).parent)]
        return folder + [str(Path(path or ".").resolve()) for path in sys.path]


class _ClusterModels:
    """What is known of the models of a run on a cluster.

    Args:
        access: How the run may ask models.

    Attributes:
        budget: What may be spent, and how much of it is; None for no limit.
        open_circuit: Why a circuit breaker of a worker stopped calls; None where it stopped none.
        notes: What a person should know of the cache and the models.
    """

    def __init__(self, access: ModelAccess) -> None:
        self.budget = access.calls.budget()
        self.open_circuit: str | None = None
        self.notes: dict[str, None] = {}
        self._spent: dict[str, Mapping[str, Usage | None]] = {}
        self._limits: Mapping[str, LimiterState] = {}

    @property
    def spent(self) -> Mapping[str, Usage | None]:
        """What each role that was asked has used so far."""
        found: dict[str, list[Usage]] = {}
        for role, usage in chain.from_iterable(one.items() for one in tuple(self._spent.values())):
            found.setdefault(role, []).extend([] if usage is None else [usage])
        return {role: sum_usage(each) for role, each in found.items()}

    def limiter_states(self) -> Mapping[str, LimiterState]:
        """What the rate limiter of each role allows at the moment."""
        return self._limits

    def add(self, part: str, news: PartNews) -> None:
        """Count what a worker says of its part."""
        self._spent[part] = news.spent
        self.open_circuit = self.open_circuit or news.open_circuit
        self.notes.update(dict.fromkeys(news.notes))

    def update(self, state: CoordinatorState) -> None:
        """Count what the coordinator says."""
        self._limits = state.limits
        self.notes.update(dict.fromkeys(state.notes))
        if self.budget is not None:
            self.budget.spent, self.budget.exhausted = state.spent, state.exhausted


def _pickle(value: Any) -> bytes:
    from ray import cloudpickle  # noqa: PLC0415 - an extra

    with UserCodeGuard() as caught:
        data: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
        return data
    raise ConfigurationError(f"The target or a metric cannot be sent to the workers: {caught.message}")


def _check_recordings(access: ModelAccess) -> None:
    """Refuse to record on several machines: each would write the same file."""
    recorded = [name for name, role in access.roles.items() if role.recording is not None and role.client is not None]
    if recorded:
        raise ConfigurationError(
            Issue(f"`models.{name}` records its answers, which one process must do. Record without a cluster first.")
            for name in recorded
        )
