"""A role that embeds: texts of all scripts together, in full batches, each distinct text once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from deemster.formats.json_values import SURROGATE
from deemster.models._record_replay import describe_text
from deemster.models.answer_cache import store_vector, text_key
from deemster.models.budget import UsageBound
from deemster.models.call_context import RoleAccess
from deemster.models.call_log import LoggedCall
from deemster.models.call_usage import NOTHING, check_usage
from deemster.models.model_call import (
    DRY_RUN,
    REQUEST_FAULTS,
    CallAnswer,
    CallFailure,
    ClientResult,
    ModelCaller,
    RequestSize,
)
from deemster.models.model_client import ModelFailure
from deemster.records import Call, Embed, NoAnswer, Usage, Vectors
from deemster.records.usage import cached_usage, divide_usage, sum_usage

KEPT_BYTES = 128 << 20
Rows = npt.NDArray[np.float32]


def read_vectors(raw: Any, texts: Sequence[str]) -> ClientResult[Rows]:
    """Check what an embedding client returned: one finite vector a text, all of one dimension.

    Raises:
        ModelFailure: It is anything else.
    """
    if isinstance(raw, Vectors):
        check_usage(raw)
    usage, model = (raw.usage, raw.model) if isinstance(raw, Vectors) else (None, None)
    values = raw.values if isinstance(raw, Vectors) else raw
    wrong = ""
    try:
        found = np.asarray(values)
        if found.ndim != 2 or found.shape[1] == 0 or found.dtype.kind not in "fiu":
            wrong = "Vectors are lists of numbers of one length above 0."
        elif found.shape[0] != len(texts):
            wrong = f"{found.shape[0]} vectors came for {len(texts)} texts."
        else:
            with np.errstate(over="ignore"):
                rows = np.ascontiguousarray(found, dtype=np.float32)
            if np.isfinite(rows).all():
                return ClientResult(rows, usage, model)
            wrong = "A vector holds a number that is not finite."
    except (ValueError, TypeError, OverflowError):
        wrong = "Vectors are lists of numbers of one length above 0."
    raise ModelFailure("shape", wrong, usage=usage, may_cost=True)


class _Batch:
    """Texts that go in one request, and their vectors."""

    __slots__ = ("calls", "done", "lost", "model", "no_answers", "owners", "shares", "texts", "vectors")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.owners: list[object] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.vectors: dict[str, Rows] = {}
        self.no_answers: dict[str, NoAnswer] = {}
        self.shares: dict[int, Usage | None] = {}
        self.calls: dict[str, Call] = {}
        self.lost: dict[int, Usage | None] = {}
        self.model: str | None = None

    def add(self, text: str, owner: object) -> None:
        self.texts.append(text)
        if not self.owners or self.owners[-1] is not owner:
            self.owners.append(owner)


class EmbeddingRole:
    """Gives texts their vectors: from memory, the recording, the cache, or the model.

    Args:
        caller: Makes its calls.
        access: Where vectors may come from.
    """

    def __init__(self, caller: ModelCaller[Rows], access: RoleAccess) -> None:
        self.caller = caller
        self._access, self._context = access, access.context
        self._cache = self._context.cache if access.is_cached else None
        self._size = caller.role.batch_size
        # A model of this process costs nothing, and a text's share of its batch would be a made-up number.
        self._counts_usage = not caller.role.is_local
        self._kept: dict[str, Rows] = {}
        self._calls: dict[str, Call] = {}
        self._dimensions: int | None = None
        self._model: str | None = caller.role.model
        self._under_way: dict[str, _Batch] = {}
        self._open: _Batch | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def reply(self, embed: Embed) -> Vectors | NoAnswer:
        """The vectors of texts, or why there are none.

        Args:
            embed: The texts.
        """
        if not embed.texts:
            return Vectors(values=np.empty((0, self._dimensions or 0), dtype=np.float32), model=self._model)
        if any(not text.isascii() and SURROGATE.search(text) for text in embed.texts):
            return NoAnswer(cause="model_failed", message="A text holds a lone surrogate, which is no character.")
        owner = object()
        vectors: dict[str, Rows] = {}
        calls: dict[str, Call] = {}
        awaited: dict[str, _Batch] = {}
        for text in dict.fromkeys(embed.texts):
            if (row := self._known(text)) is not None:
                vectors[text] = row
                if (call := self._calls.get(text)) is not None:
                    calls[text] = call
                continue
            batch = self._under_way.get(text)
            if batch is None:
                if not self._context.dry_run and not self._access.may_call:
                    has_client = self.caller.role.client is not None
                    return self._access.refuse(describe_text(self._access.name, text), has_client=has_client)
                batch = self._join_batch(text, owner)
            awaited[text] = batch
        batches = dict.fromkeys(awaited.values())
        for batch in batches:
            if not batch.done.done():
                await asyncio.shield(batch.done)
        # Vectors of an earlier run took no call of this one; their tokens are those of cached calls.
        earlier = sum_usage(call.usage for call in calls.values() if not call.id and call.usage is not None)
        usage = self._usage(batches, owner, earlier)
        for text, batch in awaited.items():
            if (no_answer := batch.no_answers.get(text)) is not None:
                return msgspec.structs.replace(no_answer, usage=usage)
            vectors[text] = batch.vectors[text]
            if self._counts_usage:
                calls[text] = batch.calls[text]
        model = next((batch.model for batch in batches), None) or self._model
        values = np.stack([vectors[text] for text in embed.texts])
        lost = [Call(0, share) for batch in batches if (share := batch.lost.get(id(owner))) is not None]
        own = [call for call in calls.values() if call.id]
        if own and earlier is not None:
            own.append(Call(0, earlier))
        return Vectors(values=values, usage=usage, model=model, calls=(*own, *lost))

    def _usage(self, batches: dict[_Batch, None], owner: object, earlier: Usage | None) -> Usage | None:
        """What one request used: its share of the batches that hold texts it was the first to ask for.

        Where it was the first for no text, that is one cached call, with the tokens of vectors of an earlier run.
        """
        if not self._counts_usage:
            return None
        if any(id(owner) in batch.shares for batch in batches):
            return sum_usage([share for batch in batches if (share := batch.shares.get(id(owner))) is not None])
        usage = cached_usage(earlier, model=self._model)
        self.caller.usage.add(usage)
        return usage

    def _known(self, text: str) -> Rows | None:
        if (row := self._kept.get(text)) is not None:
            return row
        recording = self._access.recording
        if recording is not None and (found := recording.vector(self._access.name, text)) is not None:
            return self._remember(text, found[0], found[1])
        if self._cache is not None or self.caller.logs_calls:
            key = text_key(self._access.prefix, text)
            stored = None if self._cache is None else self._cache.vector(key)
            stored = stored or self._context.run_cache.vector(key)
            if stored is not None:
                call = self._context.own_call(key, stored.call, stored.usage)
                if call is None and stored.usage is not None:
                    call = Call(0, cached_usage(stored.usage, calls=0))
                if (row := self._remember(text, stored.values(), stored.model, call)) is not None:
                    self._record(text, row, stored.model)
                    return row
        return None

    def _record(self, text: str, row: Rows, model: str | None) -> None:
        self._access.record(lambda recording: recording.keep_vector(self._access.name, text, row, model=model))

    def _remember(self, text: str, row: Rows, model: str | None, call: Call | None = None) -> Rows | None:
        """Keep a vector in memory; None where its dimension is not that of the others."""
        if self._dimensions is None:
            self._dimensions = len(row)
        if len(row) != self._dimensions:
            return None
        self._model = self._model or model
        if len(self._kept) * row.nbytes >= KEPT_BYTES:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            self._calls.pop(oldest, None)
        self._kept[text] = row
        if call is not None:
            self._calls[text] = call
        return row

    def _join_batch(self, text: str, owner: object) -> _Batch:
        """Add a text to the open batch. The batch is sent when it is full, or when this turn of the loop is over."""
        if self._open is None:
            self._open = _Batch()
            asyncio.get_running_loop().call_soon(self._send_batch, self._open)
        batch = self._under_way[text] = self._open
        batch.add(text, owner)
        if len(batch.texts) >= self._size:
            self._send_batch(batch)
        return batch

    def _send_batch(self, batch: _Batch) -> None:
        if batch is self._open:
            self._open = None
            task = asyncio.get_running_loop().create_task(self._embed_batch(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _embed_batch(self, batch: _Batch) -> None:
        spent: list[Usage] = []
        lost: list[Usage] = []
        try:
            await self._fill(batch, batch.texts, spent, lost)
        finally:
            owners = [id(owner) for owner in batch.owners]
            batch.shares = dict(zip(owners, divide_usage(sum_usage(spent + lost), len(owners)), strict=True))
            batch.lost = dict(zip(owners, divide_usage(sum_usage(lost), len(owners)), strict=True))
            for text in batch.texts:
                del self._under_way[text]
                if text not in batch.vectors and text not in batch.no_answers:
                    batch.no_answers[text] = NoAnswer(cause="not_run", message="The request was cancelled.")
            if not batch.done.done():
                batch.done.set_result(None)

    async def _fill(self, batch: _Batch, texts: list[str], spent: list[Usage], lost: list[Usage]) -> None:
        """Embed some texts of a batch. Where the model refuses them for what they hold, find the text at fault.

        One bad text must not cost the others their vectors: they belong to other samples.
        """
        if self._context.dry_run:
            self.caller.plan(texts)
            batch.no_answers.update(dict.fromkeys(texts, DRY_RUN))
            return
        key = hashlib.sha256("\x00".join(texts).encode()).digest()
        done = await self.caller.call(texts, key=key, keep=partial(self._keep, batch, texts))
        if isinstance(done, CallAnswer):
            spent.append(done.usage)
            return
        if done.no_answer.usage is not None:
            lost.append(done.no_answer.usage)
        if len(texts) > 1 and _one_text_may_be_at_fault(done, batch):
            middle = len(texts) // 2
            await self._fill(batch, texts[:middle], spent, lost)
            await self._fill(batch, texts[middle:], spent, lost)
        else:
            failed = msgspec.structs.replace(done.no_answer, usage=None, call_id=0)
            batch.no_answers.update(dict.fromkeys(texts, failed))

    async def _keep(self, batch: _Batch, texts: list[str], done: CallAnswer[Rows]) -> CallAnswer[Rows]:
        """Keep the vectors of a batch in memory, cache, recording and log."""
        rows, model = done.value, done.usage.model
        batch.model = model
        shares = divide_usage(done.usage, len(texts)) if self._counts_usage else [None] * len(texts)
        counted, committed = done.counted, None
        for text, row, share in zip(texts, rows, shares, strict=True):
            call = None if share is None else Call(self._context.new_call_id(), share)
            kept = self._remember(text, row.copy(), model, call)
            if call is not None and self.caller.logs_calls:
                # The budget counts a batch as a whole, so the first text carries it.
                committed, counted = self._log(call, text, kept, model, counted), NOTHING
            if call is not None:
                batch.calls[text] = call
            if kept is None:
                message = f"A vector has {len(row)} parts where others have {self._dimensions}."
                batch.no_answers[text] = NoAnswer(cause="unreadable", message=message)
                continue
            batch.vectors[text] = kept
            self._record(text, kept, model)
            if self._cache is not None:
                stored = store_vector(kept, model, call=call, run=self._context.run)
                self._cache.keep(text_key(self._access.prefix, text), stored)

        if committed is not None:
            await committed
        return done

    def _log(
        self, call: Call, text: str, row: Rows | None, model: str | None, counted: UsageBound
    ) -> Awaitable[None] | None:
        """Log the part of a call that one text took, with its vector where no file has it."""
        logged = LoggedCall(id=call.id, key=text_key(self._access.prefix, text), counted=counted)
        if row is not None and self._cache is None:
            logged = msgspec.structs.replace(logged, usage=call.usage, vector=store_vector(row, model))
        return self._context.keep_call(logged)

    async def close(self) -> None:
        """Cancel the requests under way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _one_text_may_be_at_fault(done: CallFailure, batch: _Batch) -> bool:
    """Whether one text may have made the request fail for the others: by what it holds, or by its vector."""
    failure = done.failure
    if failure is None:
        return False
    return failure.status in REQUEST_FAULTS or (failure.kind == "shape" and len(batch.owners) > 1)


def texts_size(texts: Sequence[str]) -> RequestSize:
    """How many tokens texts may take: 4 bytes a token by estimate, 1 byte a token at most."""
    sizes = [len(text.encode()) for text in texts]
    return RequestSize(sum(-(-size // 4) for size in sizes), 0, sum(sizes) + 2 * len(sizes))
