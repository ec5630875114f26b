"""The run of a grading: an evaluation of submissions by the rubric metric, and what it comes to."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, overload

import msgspec
import numpy as np

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.grading_case import make_case
from deemster.judges.grading_result import Grading, ItemGrading, JudgeGrading, vote_payments
from deemster.judges.vote import Vote, total_usage
from deemster.models.clock import Clock
from deemster.records import Execution, Mark, Usage
from deemster.records.shared_call_cost import NOTHING_SPENT, Spending, paid_amount
from deemster.records.usage import sum_usage
from deemster.rubrics.criterion import Criterion
from deemster.runs._submissions import EarlierGrading, SubmissionMetric, Submissions
from deemster.runs.backend import InThisProcess, RemainingWork, RunWork
from deemster.runs.grading_store import GradingWriter
from deemster.runs.kept_calls import KeptCalls
from deemster.runs.model_access import ModelAccess
from deemster.runs.progress import Progress, ProgressCounter
from deemster.runs.resolved_evaluation import Evaluation
from deemster.runs.run_plan import Plan, collect_secrets
from deemster.runs.stop_request import Stop
from deemster.store import Spool
from deemster.targets.saved_outputs import SavedOutputs

# Usages that are added up at once.
_TOGETHER = 500


class _VoteCounter(ProgressCounter):
    """Counts graded items; what is unscored are votes, which are counted where they are read."""

    def add(self, executions: Sequence[Execution]) -> None:
        """Nothing: whoever reads the items counts them, and tells of each."""


class GradingRun:
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
        self._dataset, self._grader = dataset, grader
        self._counter = _VoteCounter(len(dataset), progress)
        self._writer, self.stop = writer, stop
        self._submissions = Submissions(dataset, grader, checks, writer)
        self._items = GradedItems(len(dataset))
        self._done: set[int] = set()
        self._errors = self._undecided = 0
        self._votes: Counter[str] = Counter()
        self._not_run: Counter[str] = Counter()
        self._failures: dict[str, Counter[str]] = {judge.id: Counter() for judge in grader.judges}
        self._usages: dict[str, list[Usage]] = {}
        self._calls = array("q")
        self.spent = NOTHING_SPENT
        self.first_failure: dict[str, str] = {}
        self.before = self.again = 0

    def restore(self, tell: Callable[[str], None]) -> None:
        """Read the items that were graded before from the store.

        Raises:
            StoreError: The store fails.
        """
        if self._writer is None:
            return
        payments, tokens, usd = vote_payments(), 0, Decimal(0)
        for position, item, known in self._writer.stored(tell):
            paid = paid_amount(vote.usage for vote in item.settle(payments).votes)
            tokens, usd = tokens + paid[0], usd + paid[1]
            self._items.put(position, self._submissions.mark(position, item))
            if known is None:
                self._done.add(position)
                self._count(item)
            else:
                self._submissions.earlier[position] = EarlierGrading(item, known)
        self.spent = Spending(payments.paid, tokens, usd)
        self.again = len(self._submissions.earlier)
        self.before = self._counter.before = len(self._done)

    async def execute(
        self, access: ModelAccess, *, clock: Clock, warn: Callable[[str], None], calls: KeptCalls | None
    ) -> None:
        """Grade everything that is left; what is not reached keeps its earlier grading, or votes that are `not_run`.

        Args:
            access: How models may be asked.
            clock: The time.
            warn: Gets each warning.
            calls: Keeps the model calls; None where the grading cannot be resumed.

        Raises:
            StoreError: The store fails.
        """
        dataset: Any = self._dataset
        metric: Any = SubmissionMetric(submissions=self._submissions)
        # Every submission is there already, so what stands for the target is never asked.
        no_target = SavedOutputs({"no target": ""})
        plan = Plan(dataset, no_target, (metric,), secrets=collect_secrets(no_target, access))
        evaluation = Evaluation(plan, seed=self._grader.seed, access=access)

        left = (position for position in range(len(self._dataset)) if position not in self._done)
        remaining = RemainingWork(works=self._submissions.works(left), spent=self.spent, calls=calls)
        sinks = [self._keep] if self._writer is None else [self._writer.add, self._keep]
        work = RunWork(evaluation, remaining, sinks, self._counter, clock, self.stop, warn)

        with InThisProcess().open() as backend:
            await backend.execute(work)
        self._count_unreached()

    def _keep(self, executions: Sequence[Execution]) -> None:
        """Count items as they are graded."""
        self._items.add(executions)
        for execution in executions:
            self._done.add(execution.position)
            self._count(self._items.graded(execution))
            self._counter.tell()

    def _count_unreached(self) -> None:
        """Count the items that no judge was asked about: as graded before, or with votes that are `not_run`."""
        for position in range(len(self._dataset)):
            if position in self._done:
                continue
            earlier = self._submissions.earlier.get(position)
            if earlier is not None:
                self._count(earlier.item)
                continue
            case = make_case(self._dataset, position)
            item = self._grader.grade_unasked(case, self.stop.reason or "The grading was stopped.")
            self._items.put(position, self._submissions.mark(position, item))
            self._count(item)

    def _count(self, item: ItemGrading) -> None:
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
        for position in range(len(self._items)):
            item = self._items.read_with_calls(position)
            settled = item.settle(payments)
            if settled is not item:
                self._items.put(position, self._submissions.mark(position, settled))
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
            items=self._items,
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


class _Details(msgspec.Struct, gc=False):
    """What is read of the details of a mark."""

    item: ItemGrading


class _GradedMark(msgspec.Struct, gc=False):
    """What is read of a mark."""

    details: _Details


class _GradedRow(msgspec.Struct, gc=False):
    """What is read of an execution."""

    id: str
    marks: tuple[_GradedMark]


_DECODER = msgspec.json.Decoder(_GradedRow)


class GradedItems(Sequence[ItemGrading]):
    """Graded items, as the executions of their run hold them.

    Args:
        count: How many there are.
    """

    def __init__(self, count: int) -> None:
        self._spool = Spool(samples=count, repetitions=1)

    def add(self, executions: Sequence[Execution]) -> None:
        """Keep executions as they finish."""
        self._spool.add(executions)

    def put(self, position: int, mark: Mark) -> None:
        """Keep the mark of an item, in place of an earlier one."""
        self._spool.add([Execution(position, "", 0, None, (mark,))])

    @staticmethod
    def graded(execution: Execution) -> ItemGrading:
        """The grading of an item that was just graded, from its execution."""
        (mark,) = execution.marks
        item: ItemGrading = getattr(mark, "details", {})["item"]
        return item

    def __len__(self) -> int:
        return len(self._spool)

    def __iter__(self) -> Iterator[ItemGrading]:
        return map(self._read, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> ItemGrading: ...

    @overload
    def __getitem__(self, index: slice) -> list[ItemGrading]: ...

    def __getitem__(self, index: int | slice) -> ItemGrading | list[ItemGrading]:
        found = range(len(self))[index]
        return self._read(found) if isinstance(found, int) else list(map(self._read, found))

    def read_with_calls(self, position: int) -> ItemGrading:
        """An item with the calls behind its votes."""
        return _DECODER.decode(self._spool.row(position)).marks[0].details.item

    def _read(self, position: int) -> ItemGrading:
        return self.read_with_calls(position).without_calls()
