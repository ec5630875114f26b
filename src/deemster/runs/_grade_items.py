"""Grades the items of a dataset, many at once, and buffers what is graded."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, overload

import msgspec
import numpy as np

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.errors import StoreError
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.grading_case import make_case
from deemster.judges.grading_result import Grading, ItemGrading, JudgeGrading, vote_payments
from deemster.judges.vote import Vote, total_usage
from deemster.models import Gateway
from deemster.records import Usage
from deemster.records.shared_call_cost import NOTHING_SPENT, Spending, paid_amount
from deemster.records.usage import sum_usage
from deemster.rubrics.criterion import Criterion
from deemster.runs._worker_pool import worker_pool
from deemster.runs.grading_store import GradingWriter, carry_over_calls
from deemster.runs.play_scripts import script_result
from deemster.runs.progress import Progress, ProgressCounter
from deemster.runs.stop_request import Stop

# Requests under way at once: enough to keep every model busy, few enough for the memory.
LIVE = 2048
# Usages that are added up at once.
_TOGETHER = 500


class GradingWork:
    """Grades the items of a dataset.

    Args:
        dataset: The items.
        grader: Who judges them, and how.
        checks: The metrics that answer criteria.
        stop: Asks the grading to stop.
        progress: Gets the progress.
        writer: Stores graded items; None where they are not stored.

    Attributes:
        stop: Asks the grading to stop.
        first_failure: The first failure of each judge, by its id.
        spent: What the models used before the grading was resumed.
        before: Items that were graded before.
        again: Items graded before of which some votes failed; these are asked for again.
    """

    def __init__(
        self,
        dataset: RubricDataset,
        grader: CriterionGrader,
        checks: Mapping[Criterion, Any],
        *,
        stop: Stop,
        progress: Callable[[Progress], None] | None,
        writer: GradingWriter | None = None,
    ) -> None:
        self._dataset, self._grader, self._checks = dataset, grader, checks
        self._counter = ProgressCounter(len(dataset), progress)
        self._writer, self.stop = writer, stop
        self._buffer = GradingBuffer(len(dataset))
        self._known: dict[int, tuple[tuple[Vote, ...], ...]] = {}
        self._left: Iterable[int] = iter(range(len(dataset)))
        self._store_error: StoreError | None = None
        self._errors = self._undecided = 0
        self._votes: Counter[str] = Counter()
        self._not_run: Counter[str] = Counter()
        self._failures: dict[str, Counter[str]] = {judge.id: Counter() for judge in grader.judges}
        self._usages: dict[str, list[Usage]] = {}
        self._calls = array("q")
        self.spent = NOTHING_SPENT
        self.first_failure: dict[str, str] = {}
        self.before = self.again = 0

    @property
    def seed(self) -> int:
        """The seed of everything random."""
        return self._grader.seed

    def restore(self, tell: Callable[[str], None]) -> None:
        """Read the items that were graded before from the store.

        Raises:
            StoreError: The store fails.
        """
        if self._writer is None:
            return
        done: set[int] = set()
        payments, tokens, usd = vote_payments(), 0, Decimal(0)
        for position, item, known in self._writer.stored(tell):
            paid = paid_amount(vote.usage for vote in item.settle(payments).votes)
            tokens, usd = tokens + paid[0], usd + paid[1]
            if known is None:
                done.add(position)
                self._count(position, item)
            else:
                self._buffer.put(position, item)
                self._known[position] = known
        self.spent = Spending(payments.paid, tokens, usd)
        self.again = len(self._known)
        self.before = self._counter.before = len(done)
        self._left = iter([position for position in range(len(self._dataset)) if position not in done])

    async def grade_all(self, gateway: Gateway) -> None:
        """Grade everything that is left, as many items at once as keep the models busy.

        Raises:
            StoreError: The store fails.
        """
        self._counter.gateway = gateway
        rubrics = {id(rubric): rubric for rubric in self._dataset.rubrics}
        each = max((self._grader.count_requests(rubric) for rubric in rubrics.values()), default=1)
        workers = max(1, min(len(self._dataset), LIVE // max(each, 1)))
        async with worker_pool(self.stop) as pool:
            telling = pool.serve(self._counter.tell_regularly())
            await pool.for_each(
                self._left, partial(self._grade, gateway), workers=workers, finish=self._store, skip=self._skip
            )
            telling.cancel()
        if self._store_error is not None:
            raise self._store_error

    async def _grade(self, gateway: Gateway, position: int) -> ItemGrading:
        """Grade one item; what its script raises is an error of the item."""
        case = make_case(self._dataset, position)
        with UserCodeGuard() as caught:
            script = self._grader.script(case, checks=self._checks, known=self._known.get(position, ()))
            item: ItemGrading = await script_result(script, gateway.answers, [])
            return item
        return ItemGrading(id=case.id, unscored=caught.message, error=caught.message)

    def _skip(self, position: int) -> None:
        """Count an item that no judge was asked about: as it was graded before, or with votes that are `not_run`."""
        if self._buffer.holds(position):
            item = self._buffer.read_with_calls(position)
        else:
            case = make_case(self._dataset, position)
            item = self._grader.grade_unasked(case, self.stop.reason or "The grading was stopped.")
        self._count(position, item)

    async def _store(self, position: int, item: ItemGrading) -> None:
        """Store a graded item; an error of the store stops the grading."""
        if position in self._known:
            item = carry_over_calls(self._buffer.read_with_calls(position), item)
        if self._writer is not None and self._store_error is None:
            try:
                await asyncio.to_thread(self._writer.add, position, item)
            except StoreError as error:
                self._store_error = error
                self.stop.request("the store failed")
        self._count(position, item)
        self._counter.tell()

    def _count(self, position: int, item: ItemGrading) -> None:
        self._buffer.put(position, item)
        self._counter.done += 1
        self._errors += item.error is not None
        self._calls.extend(item.call_ids)
        self._add_usage(item.votes)
        for criterion in item.criteria:
            self._undecided += criterion.failed and any(map(_is_out, criterion.votes))
            for vote in criterion.votes:
                self._votes[vote.judge] += 1
                if vote.failure is not None and vote.judge in self._failures:
                    self._counter.unscored += 1
                    self._failures[vote.judge][vote.failure.category] += 1
                    if vote.failure.cause == "not_run":
                        self._not_run[vote.judge] += 1
                    else:
                        self.first_failure.setdefault(vote.judge, vote.failure.message)

    def _add_usage(self, votes: Iterable[Vote]) -> None:
        for vote in votes:
            if vote.usage is None:
                continue
            usages = self._usages.setdefault(vote.judge, [])
            usages.append(vote.usage)
            if len(usages) == _TOGETHER:
                usages[:] = [usage for usage in [sum_usage(usages)] if usage is not None]

    def _settle(self) -> None:
        """Charge each shared call to the first vote in order, so that the cost does not depend on timing."""
        calls = np.frombuffer(self._calls, dtype=np.int64)
        # In its place: a copy for every vote there is would be the largest thing in memory.
        calls.sort()
        shared = frozenset(calls[1:][calls[1:] == calls[:-1]].tolist())
        if not shared:
            return
        payments = vote_payments(shared=shared)
        self._usages = {}
        for position in range(len(self._buffer)):
            item = self._buffer.read_with_calls(position)
            settled = item.settle(payments)
            if settled is not item:
                self._buffer.put(position, settled)
            self._add_usage(settled.votes)

    @property
    def votes(self) -> int:
        """How many votes there should be."""
        return sum(self._votes[judge.id] for judge in self._grader.judges)

    def build_grading(self) -> Grading:
        """The grading: items, judges, usage and why it stopped."""
        self._settle()
        used = {judge: sum_usage(usages) for judge, usages in self._usages.items()}
        judges = tuple(
            JudgeGrading(
                id=judge.id,
                model=judge.model,
                weight=judge.weight,
                votes=self._votes[judge.id],
                failures=dict(sorted(self._failures[judge.id].items())),
                not_run=self._not_run[judge.id],
                usage=used.get(judge.id),
            )
            for judge in self._grader.judges
        )
        return Grading(
            items=self._buffer,
            judges=judges,
            settings=self._grader.settings,
            dataset=self._dataset,
            usage=total_usage(used.values()),
            halted=self._halted if self._not_run else None,
            n_failed_items=self._errors,
            n_undecided=self._undecided,
            run=None if self._writer is None else self._writer.run.id,
            mixed=() if self._writer is None else self._writer.mixed,
        )

    @property
    def _halted(self) -> str | None:
        """Why not everything was asked: a stop request, a spent budget, or an open circuit."""
        return self.stop.reason or self._counter.open_circuit


def _is_out(vote: Vote) -> bool:
    """Whether a vote is missing because a model could not be reached."""
    return vote.failure is not None and vote.failure.category == "infrastructure"


_IN_MEMORY = 8 * 1024 * 1024
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ItemGrading)


class GradingBuffer(Sequence[ItemGrading]):
    """Keeps graded items in a temporary file, by position; they come in any order."""

    def __init__(self, count: int) -> None:
        self._offsets = array("q", [-1]) * count
        self._lengths = array("q", [0]) * count
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - lives as long as the grading
        self._end = 0
        # Reading is seek and read, which two threads must not interleave.
        self._lock = threading.Lock()
        weakref.finalize(self, self._file.close)

    def put(self, position: int, item: ItemGrading) -> None:
        """Write an item.

        Raises:
            OSError: The temporary file cannot be written.
        """
        row = _ENCODER.encode(item)
        with self._lock:
            self._offsets[position], self._lengths[position] = self._end, len(row)
            self._end += len(row)
            self._file.seek(0, 2)
            self._file.write(row)

    def holds(self, position: int) -> bool:
        """Whether there is an item at a position already."""
        return self._offsets[position] >= 0

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[ItemGrading]:
        return (self._read(position) for position in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> ItemGrading: ...

    @overload
    def __getitem__(self, index: slice) -> list[ItemGrading]: ...

    def __getitem__(self, index: int | slice) -> ItemGrading | list[ItemGrading]:
        found = range(len(self))[index]
        return self._read(found) if isinstance(found, int) else [self._read(position) for position in found]

    def read_with_calls(self, position: int) -> ItemGrading:
        """An item as it was written, with the calls behind its votes."""
        with self._lock:
            self._file.seek(self._offsets[position])
            row = self._file.read(self._lengths[position])
        return _DECODER.decode(row)

    def _read(self, position: int) -> ItemGrading:
        return self.read_with_calls(position).without_calls()
