"""Keeps the model calls of a run when they end, and gives those of its earlier processes back when it is resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from deemster.errors import DeemsterError
from deemster.models import Cache
from deemster.models.answer_cache import StoredVector
from deemster.models.budget import UsageBound
from deemster.models.call_log import LoggedCall, RestoredCalls
from deemster.records import Answer
from deemster.records.shared_call_cost import Spending

# A call that stands for all that a run spent before its calls were kept.
_EARLIER = 0


class KeptCalls:
    """The log of a run's model calls.

    A run that fails to keep a call goes on: what it stores next says why the store fails, and ends it.

    Args:
        token: Identifies the model calls of the run, also in a cache that runs share.
        add: Writes a call. It does not wait.
        read: Reads the calls that are there.
        commit: Returns once all that was written is on the disk; None where nothing waits for that.
    """

    def __init__(
        self,
        token: str,
        add: Callable[[LoggedCall], None],
        read: Callable[[], Iterator[LoggedCall]],
        *,
        commit: Callable[[], None] | None = None,
    ) -> None:
        self.token = token
        self._add, self._read, self._commit = add, read, commit
        self._added = self._committed = 0
        self._turn = asyncio.Lock()

    def keep(self, call: LoggedCall) -> Awaitable[None] | None:
        """Keep a call; what to await before its answer is used, where the log must be on the disk by then.

        Args:
            call: A call that has ended.
        """
        try:
            self._add(call)
        except (DeemsterError, UnicodeEncodeError):
            return None
        self._added += 1
        return None if self._commit is None else self._wait(self._added)

    async def _wait(self, number: int) -> None:
        """Wait until so many calls are on the disk; calls that end together are committed together."""
        async with self._turn:
            if self._committed < number and self._commit is not None:
                added = self._added
                try:
                    await asyncio.to_thread(self._commit)
                except DeemsterError:
                    return
                self._committed = added

    def restore(
        self, marked: Spending, *, keep: Callable[[bytes, Answer | StoredVector], None] | None = None
    ) -> RestoredCalls:
        """Read the calls of earlier processes.

        Args:
            marked: What the stored marks and votes say was spent. It counts only where no call was kept, as in a run
                that an earlier version began, and is kept then.
            keep: Takes their answers by the hash of the request; they are in the result unless it is given.

        Raises:
            StoreError: The store fails.
        """
        answers: Cache | None = None
        if keep is None:
            answers = Cache(None)
            keep = answers.keep
        spent = UsageBound()
        ids: set[int] = set()
        lost: dict[bytes, LoggedCall] = {}
        for call in self._read():
            ids.add(call.id)
            spent = spent.plus(call.counted)
            entry = call.cache_entry(self.token)
            if entry is not None:
                keep(call.key, entry)
            elif call.usage is not None and call.id not in marked.call_ids:
                lost[call.key] = call
        if not ids and (marked.tokens or marked.usd):
            spent = UsageBound(marked.tokens, marked.usd)
            self.keep(LoggedCall(id=_EARLIER, counted=spent))
        return RestoredCalls(answers, lost, marked.call_ids | ids, spent)
