"""Runs a part of an evaluation on a worker of a cluster, and yields what comes of it."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from deemster import __version__
from deemster.datasets import Dataset
from deemster.engine.backend import InThisProcess, RemainingWork, RunWork
from deemster.engine.execution_handover import NO_PENDING_STORAGE, PendingStorage
from deemster.engine.kept_calls import KeptCalls
from deemster.engine.kept_prompts import KeptPrompts, WhichPrompts
from deemster.engine.model_access import ModelAccess
from deemster.engine.progress import ProgressCounter
from deemster.engine.run_plan import Plan
from deemster.engine.stop_request import Stop
from deemster.engine.work_items import Answer, WorkItem
from deemster.errors import ConfigurationError
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.models.call_log import LoggedCall
from deemster.models.clock import Clock
from deemster.records import Execution, Mark, Usage
from deemster.remote.call_coordinator import RoleLimits
from deemster.remote.coordinator_client import CoordinatorClient
from deemster.store import encode_execution
from deemster.targets.saved_outputs import SavedOutputs

# What a part has to say is sent so often.
_SEND_S = 0.1
_encode_call = msgspec.json.Encoder().encode


class PartSettings(NamedTuple):
    """What all parts of a run have in common.

    Attributes:
        plan: The plan; its dataset and its saved outputs come with each part.
        access: How metrics may ask models.
        seed: For everything that draws.
        clock: The time.
        token: Names the run in the log of its calls.
        prompts: Which prompts of judges are kept; `none` where the run is not stored.
        pending_s: How long an answer of a live target waits for its marks before it is sent alone; None for ever.
        limits: The limits of each model, over all workers.
        version: The version of this package that the run was started with.
    """

    plan: Plan
    access: ModelAccess
    seed: int
    clock: Clock
    token: str
    prompts: WhichPrompts
    pending_s: float | None
    limits: Mapping[str, RoleLimits]
    version: str = __version__


class PartWork(NamedTuple):
    """One part of a run: some samples, with what is known of them.

    Attributes:
        name: Tells the parts of a run and their attempts apart.
        keys: Position and repetition of each execution.
        dataset: The samples of these positions, in the order of their first mention.
        outputs: Their saved outputs; None where the target is called.
        known: Answer, marks and earlier marks of executions that are finished only in part, by their place in `keys`.
    """

    name: str
    keys: Sequence[tuple[int, int]]
    dataset: Dataset
    outputs: SavedOutputs | None
    known: Mapping[int, tuple[Answer | None, tuple[Mark | None, ...] | None, tuple[Mark, ...] | None]]

    def works(self) -> Iterator[WorkItem]:
        """The work of the part."""
        positions = dict.fromkeys(position for position, _ in self.keys)
        samples = dict(zip(positions, self.dataset, strict=True))
        for place, (position, repetition) in enumerate(self.keys):
            yield WorkItem(position, samples[position], repetition, *self.known.get(place, ()))


class PartNews(NamedTuple):
    """What a worker sends of a part.

    Attributes:
        executions: Finished executions, encoded.
        waiting: Executions whose target has answered and whose marks are missing, encoded.
        calls: Model calls that have ended: id and body.
        prompts: What judges were asked: position, repetition, place of the metric, body.
        spent: What each model has used for this part so far.
        open_circuit: Why a circuit breaker stopped calls; None where it stopped none.
        notes: What a person should know of its models.
    """

    executions: Sequence[bytes] = ()
    waiting: Sequence[bytes] = ()
    calls: Sequence[tuple[int, bytes]] = ()
    prompts: Sequence[tuple[int, int, int, bytes]] = ()
    spent: Mapping[str, Usage | None] = {}
    open_circuit: str | None = None
    notes: Sequence[str] = ()


class PartRun(NamedTuple):
    """A part as what is run: its plan, and how its metrics may ask models."""

    plan: Plan
    access: ModelAccess
    seed: int
    origin: None = None


def run_part(settings: bytes, paths: Sequence[str], part: bytes, coordinator: Any) -> Iterator[PartNews]:
    """Run a part; what comes of it, as it comes.

    Args:
        settings: What all parts have in common, pickled.
        paths: Where the process that started the run looks for modules.
        part: The part, pickled.
        coordinator: Grants the calls of models; None where none is asked.

    Raises:
        ConfigurationError: The worker lacks a module or a file of the run, or has another version of this package.
    """
    common: PartSettings = _load_settings(settings, paths)
    outbox: queue.SimpleQueue[PartNews | BaseException | None] = queue.SimpleQueue()
    runner = _PartRunner(common, _unpickle(part), outbox.put, coordinator)
    thread = threading.Thread(target=runner.run_in_thread, args=(outbox.put,), daemon=True)
    thread.start()
    while (news := outbox.get()) is not None:
        if isinstance(news, BaseException):
            raise news
        yield news


# The settings of the last run that this process worked for: a process runs many parts.
_loaded: tuple[bytes, PartSettings] | None = None


def _load_settings(data: bytes, paths: Sequence[str]) -> PartSettings:
    global _loaded  # noqa: PLW0603 - one run at a time
    if _loaded is None or _loaded[0] != data:
        # In the same order, so that the same name finds the same module.
        sys.path[:] = [*paths, *(path for path in sys.path if path not in paths)]
        settings = _unpickle(data)
        if settings.version != __version__:
            raise ConfigurationError(
                f"A worker has deemster {__version__}, and the run was started with {settings.version}. "
                "Install the same version on every node."
            )
        _loaded = (data, settings)
    return _loaded[1]


def _unpickle(data: bytes) -> Any:
    from ray import cloudpickle  # noqa: PLC0415 - an extra

    with UserCodeGuard() as caught:
        return cloudpickle.loads(data)
    raise ConfigurationError(
        f"A worker cannot load the target or a metric: {caught.message}. Its code must be installed on every node, or "
        "lie at the same path on every node."
    )


class _PartRunner:
    """Runs the engine on a part, and collects what it says.

    Args:
        settings: What all parts have in common.
        part: The part.
        send: Sends news.
        coordinator: Grants the calls of models; None where none is asked.
    """

    def __init__(
        self, settings: PartSettings, part: PartWork, send: Callable[[PartNews], None], coordinator: Any
    ) -> None:
        self._settings, self._part, self._send, self._coordinator = settings, part, send, coordinator
        self._lock = threading.Lock()
        self._executions: list[bytes] = []
        self._waiting: list[bytes] = []
        self._calls: list[tuple[int, bytes]] = []
        self._prompts: list[tuple[int, int, int, bytes]] = []
        self._spent: Callable[[], Mapping[str, Usage | None]] = dict

    def run_in_thread(self, send: Callable[[BaseException | None], None]) -> None:
        """Run the part to its end; send an error where one ended it, else None."""
        caught = UserCodeGuard(everything=True)
        with caught:
            asyncio.run(self._run())
        send(caught.error)

    async def _run(self) -> None:
        """Do the work of the part, as one process does that of a whole run."""
        part, plan, stop = self._part, self._settings.plan._replace(dataset=self._part.dataset), Stop()
        if part.outputs is not None:
            plan = plan._replace(target=part.outputs)
        notes: list[str] = []
        counter = ProgressCounter(len(part.keys), None)
        self._spent = lambda: {} if counter.gateway is None else counter.gateway.spent

        sending = asyncio.create_task(self._send_regularly())
        try:
            async with self._open_client(stop) as client:
                work = self._work(plan, counter, stop=stop, warn=notes.append)
                await InThisProcess(shared=client).execute(work)
        finally:
            sending.cancel()
        circuit = counter.open_circuit or getattr(plan.target, "open_circuit", None)
        self._flush(PartNews(open_circuit=circuit, notes=notes))

    def _work(self, plan: Plan, counter: ProgressCounter, *, stop: Stop, warn: Callable[[str], None]) -> RunWork:
        """The part as work; what comes of it is kept until it is sent."""
        settings, prompts, pending = self._settings, None, NO_PENDING_STORAGE
        # The coordinator holds the cache and the budget.
        calls = settings.access.calls._replace(cache=None, budget_usd=None, budget_tokens=None)
        access = settings.access._replace(calls=calls)
        if settings.prompts != "none":
            prompts = KeptPrompts(settings.prompts, self._add_prompt, secrets=plan.secrets)
        if settings.pending_s is not None:
            pending = PendingStorage(self._add_waiting, settings.pending_s)
        return RunWork(
            PartRun(plan, access, settings.seed),
            remaining=RemainingWork(
                self._part.works(),
                calls=KeptCalls(settings.token, self._add_call, lambda: iter(())),
                prompts=prompts,
            ),
            sinks=[self._add],
            counter=counter,
            clock=settings.clock,
            stop=stop,
            warn=warn,
            pending=pending,
        )

    @asynccontextmanager
    async def _open_client(self, stop: Stop) -> AsyncIterator[CoordinatorClient | None]:
        """What asks the coordinator, under whose limits models are called; None where none is."""
        if self._coordinator is None:
            yield None
            return
        limit = self._settings.access.calls.budget()
        budget = None if limit is None else (limit.usd, limit.tokens)
        client = CoordinatorClient(self._coordinator, self._part.name, limits=self._settings.limits, budget=budget)
        await client.ask("begin")
        relaying = asyncio.create_task(self._relay_stop(client, stop))
        stop.on_request(lambda: client.stop(stop.reason or ""))
        try:
            yield client
        finally:
            relaying.cancel()
            await client.close()

    async def _relay_stop(self, client: CoordinatorClient, stop: Stop) -> None:
        stop.request(await client.stop_reason())

    def _add(self, executions: Sequence[Execution]) -> None:
        encoded = [encode_execution(execution) for execution in executions]
        with self._lock:
            self._executions += encoded

    def _add_waiting(self, executions: Sequence[Execution]) -> None:
        encoded = [encode_execution(execution) for execution in executions]
        with self._lock:
            self._waiting += encoded

    def _add_call(self, call: LoggedCall) -> None:
        body = _encode_call(call)
        with self._lock:
            self._calls.append((call.id, body))

    def _add_prompt(self, *prompt: Any) -> None:
        with self._lock:
            self._prompts.append(prompt)

    async def _send_regularly(self) -> None:
        while True:
            await asyncio.sleep(_SEND_S)
            self._flush()

    def _flush(self, last: PartNews | None = None) -> None:
        """Send what has come since the last time."""
        with self._lock:
            news = (self._executions, self._waiting, self._calls, self._prompts)
            self._executions, self._waiting, self._calls, self._prompts = [], [], [], []
        if any(news) or last is not None:
            last = last or PartNews()
            executions, waiting, calls, prompts = news
            self._send(
                last._replace(executions=executions, waiting=waiting, calls=calls, prompts=prompts, spent=self._spent())
            )
