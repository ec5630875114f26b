"""The log of a run's model calls: each call with its answer and what it took, kept when it ends."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final, NamedTuple, Protocol

import msgspec

from deemster.models.answer_cache import Cache, StoredVector
from deemster.models.budget import UsageBound
from deemster.records import Answer, Call, Usage


class LoggedCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One call as a run keeps it, so that a resumed run neither makes it again nor forgets what it took.

    Attributes:
        id: Tells the calls of a run apart; 0 for what was spent before calls were logged.
        key: The hash of the request.
        counted: What a budget counts for it.
        usage: What it used, where the log has its answer, or where no answer came.
        answer: What a chat model answered; None where the cache has the answer, or where none came.
        vector: The vector of one text, likewise.
    """

    id: int
    key: bytes = b""
    counted: UsageBound = UsageBound()
    usage: Usage | None = None
    answer: Answer | None = None
    vector: StoredVector | None = None

    def cache_entry(self, run: str) -> Answer | StoredVector | None:
        """Its answer as a cache keeps it, with the run that paid for it; None where it has none.

        Args:
            run: The run that made the call.
        """
        found = self.answer or self.vector
        if found is None:
            return None
        return msgspec.structs.replace(found, usage=self.usage, call=Call(self.id, run=run))


class RestoredCalls(NamedTuple):
    """The calls of the earlier processes of a run.

    Attributes:
        answers: Their answers; None where there are none.
        lost: Those that were paid for and brought no answer that a mark stands on, by the hash of the request.
        ids: All of them; the budget and the log of the run have them already.
        spent: What they took from the budget.
    """

    answers: Cache | None = None
    lost: Mapping[bytes, LoggedCall] = {}
    ids: frozenset[int] = frozenset()
    spent: UsageBound = UsageBound()


NO_CALLS: Final = RestoredCalls()


class CallLog(Protocol):
    """Keeps the calls of a run."""

    def keep(self, call: LoggedCall) -> Awaitable[None] | None:
        """Keep a call; what to await before its answer is used, where the log must be on the disk by then.

        Args:
            call: A call that has ended.
        """
