"""The turns of runs that go on side by side: all of them begin a sample before any begins the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import blake2b
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from deemster.engine.work_items import WorkItem

_BATCH = 512


class Turns(Protocol):
    """When a run may begin its work.

    Attributes:
        batch: How many outputs that were saved are marked in one turn.
        gather_s: How long answers wait for others to be marked together.
    """

    batch: int
    gather_s: float

    async def wait(self, work: WorkItem) -> bool:
        """Wait for the turn of some work; whether it is to be done at all."""
        ...


class NoTurns:
    """A run by itself begins all its work at once."""

    batch = _BATCH
    gather_s = 0.0

    async def wait(self, work: WorkItem) -> bool:  # noqa: ARG002 - as every run
        """Do the work at once."""
        return True


NO_TURNS = NoTurns()


class _Waiting(NamedTuple):
    """Work that waits for its turn; sorted by its sample, then in an order that is drawn for each sample."""

    repetition: int
    position: int
    drawn: bytes
    run: int
    turn: asyncio.Future[bool]


class Turnstile:
    """Lets several runs begin their samples in turn, so that a slow hour hits all of them alike.

    The next turn is given once every run that has not left waits for one: to the first sample among them, and within a
    sample in an order drawn by its seed.

    Args:
        runs: How many runs there are.
        seed: For the order within a sample.
        opened: Called once, when the first turn is given.
    """

    def __init__(self, runs: int, *, seed: int, opened: Callable[[], None] = lambda: None) -> None:
        self._seed = seed
        self._opened: Callable[[], None] | None = opened
        self._waiting: list[_Waiting] = []
        self._counts = dict.fromkeys(range(runs), 0)

    def turns_of(self, run: int) -> RunTurns:
        """The turns of one of the runs, by its number from 0."""
        return RunTurns(self, run)

    async def wait(self, run: int, work: WorkItem) -> bool:
        """Wait for the turn of some work of a run; False where the run has left."""
        if run not in self._counts:
            return False

        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, _Waiting(work.repetition, work.position, self._draw(run, work), run, turn))
        self._counts[run] += 1
        self._serve()
        if turn.done():
            # Those whose turns came before wake first.
            await asyncio.sleep(0)
        return await turn

    def leave(self, run: int) -> None:
        """Let a run that has ended, or was asked to stop, hold up no other; what waits of it is not done."""
        if self._counts.pop(run, None) is None:
            return
        for entry in self._waiting:
            if entry.run == run and not entry.turn.done():
                entry.turn.set_result(False)
        self._waiting = sorted(entry for entry in self._waiting if entry.run != run)
        self._serve()

    def _draw(self, run: int, work: WorkItem) -> bytes:
        key = f"{self._seed}/{work.repetition}/{work.position}/{run}"
        return blake2b(key.encode(), digest_size=8).digest()

    def _serve(self) -> None:
        while self._waiting and all(self._counts.values()):
            if self._opened is not None:
                opened, self._opened = self._opened, None
                opened()
            entry = heappop(self._waiting)
            self._counts[entry.run] -= 1
            if not entry.turn.done():
                entry.turn.set_result(True)


class RunTurns:
    """The turns of one run.

    Args:
        turnstile: Gives them.
        run: Its number.
    """

    batch = 1
    # Answers come one by one, from as many runs as there are.
    gather_s = 0.05

    def __init__(self, turnstile: Turnstile, run: int) -> None:
        self._turnstile = turnstile
        self._run = run

    async def wait(self, work: WorkItem) -> bool:
        """Wait for the turn of some work; False where the run has left."""
        return await self._turnstile.wait(self._run, work)

    def leave(self) -> None:
        """Let the others go on without this run."""
        self._turnstile.leave(self._run)
