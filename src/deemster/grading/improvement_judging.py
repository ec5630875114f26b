"""Asks the models while a rubric is improved: judges for verdicts, the writer for wordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from deemster.agreement.agreement_gain import verdict_agreements
from deemster.engine.play_scripts import script_result
from deemster.engine.progress import Progress
from deemster.engine.stop_request import Stop
from deemster.engine.worker_pool import worker_pool
from deemster.errors import ConfigurationError, Issue, plural
from deemster.formats.schema_validation import NonBlank, OpenShare, Seed, decode_struct
from deemster.grading._improvement_split import DatasetPart
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.criterion_rewording import Disagreement, ask_rewording
from deemster.judges.grading_case import GradingCase, parts_digest
from deemster.judges.item_grading import CriterionGrading, ItemGrading
from deemster.judges.judge_script import NoAnswerError
from deemster.models import Gateway
from deemster.records import Reply as Said
from deemster.records import Usage
from deemster.records.shared_call_cost import CallPayments, count_as_cached_call, reply_calls
from deemster.records.usage import sum_usage
from deemster.rubrics.criterion import FAILED, Criterion
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.vote_aggregation import is_missing
from deemster.runs.run_lifecycle import StoredRun

TRAIN: Final = "train"
HELD_OUT: Final = "held_out"
WORKERS = 256
# Calls that fail for good, such as a submission that a provider refuses to read, are left out up to this share.
LOST = 0.05


_Count = Annotated[int, Meta(ge=1)]


class ImprovementSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a rubric is improved.

    Attributes:
        writer: The model role that proposes wordings; the first judge's unless given.
        rounds: How often a wording is looked for, for each criterion.
        criteria: For how many criteria.
        exemplars: How many disagreements the writer sees.
        train: Which share of the items, or how many, examples come from.
        cluster: The key of the metadata that names an item's cluster; a cluster is never divided.
        alpha: The chance that any wording is accepted though it is no better.
        seed: The seed of everything random.

    Raises:
        ConfigurationError: One is outside of its limits.
    """

    writer: NonBlank | None = None
    rounds: _Count = 3
    criteria: _Count = 3
    exemplars: _Count = 6
    train: float = 0.5
    cluster: str | None = None
    alpha: OpenShare = 0.05
    seed: Seed = 0

    def __post_init__(self) -> None:
        decode_struct(self, error=ConfigurationError)

    def writer_role(self, grader: CriterionGrader) -> str:
        """The model role that proposes wordings, where a grader judges."""
        return grader.judges[0].model if self.writer is None else self.writer

    def issues(self, grader: CriterionGrader) -> Iterator[Issue]:
        """What is wrong with the grader that is to judge."""
        if grader.calls != "per_criterion":
            yield Issue("A rubric is improved criterion by criterion: `calls` of the grader is `per_criterion`.")
        if grader.few_shot is not None:
            yield Issue("A rubric is improved without examples for the judges: `few_shot` of the grader is None.")


USUAL_IMPROVEMENT: Final = ImprovementSettings()


class WriterRole(NamedTuple):
    """Who proposes wordings, as what names the roles that are asked."""

    role: str

    @property
    def name(self) -> str:
        """How messages call it."""
        return "The writer"

    @property
    def roles(self) -> tuple[str, ...]:
        """The model roles it asks."""
        return (self.role,)


class ImprovementStopped(Exception):  # noqa: N818 - it never leaves this room: it becomes the reason why the work ended
    """Models cannot be asked any further."""


class WordingVerdicts(NamedTuple):
    """How the judges decided about one part of the items by one wording of one criterion.

    Attributes:
        codes: The code of each verdict; None where the call failed, a negative one where the reply could not be read.
        reasons: Why, in the judges' words.
    """

    codes: Sequence[int | float | None]
    reasons: Sequence[str | None]


class WordingProposal(NamedTuple):
    """What the writer proposed for one criterion at one time.

    Attributes:
        requirement: The new wording; None where the reply could not be used.
        diagnosis: What misleads in the present one.
        message: Why the reply could not be used.
    """

    requirement: str | None = None
    diagnosis: str | None = None
    message: str | None = None


class GradedCase(NamedTuple):
    """One item, graded by one wording.

    Attributes:
        item: What the judges made of it.
        replies: What models said.
    """

    item: ItemGrading
    replies: list[Said]


class ImprovementJudging:
    """Asks judges and the writer, each question once.

    Args:
        rubric: What is improved.
        parts: The two parts of the items.
        grader: Who judges, and how.
        settings: How it is improved.
        gateway: Answers what is asked.
        run: Keeps the calls; None where nothing does.
        progress: Gets the progress of the grading under way.
    """

    def __init__(
        self,
        rubric: Rubric,
        parts: Mapping[str, DatasetPart],
        grader: CriterionGrader,
        settings: ImprovementSettings,
        *,
        gateway: Gateway,
        run: StoredRun | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.rubric = rubric
        self.parts = parts
        self.grader = grader
        self.settings = settings
        self._gateway = gateway
        self._run = run
        self._progress = progress
        self._payments = CallPayments()
        self._usages: list[Usage] = []
        self._verdicts: dict[tuple[str, str, str], WordingVerdicts] = {}

    @property
    def usage(self) -> Usage | None:
        """What everything took, earlier parts of the work included."""
        return sum_usage(self._usages)

    def truths(self, index: int, part: str) -> list[int | float]:
        """The labels of one criterion on a part.

        Args:
            index: The criterion's place in the rubric.
            part: `train` or `held_out`.
        """
        return [codes[index] for codes in self.parts[part].truths]

    async def agreements(self, criterion: Criterion, part: str) -> list[float | None]:
        """How far judges and people agree on each item of a part by a wording; None where one of them gives no verdict.

        Args:
            criterion: The criterion with that wording.
            part: `train` or `held_out`.

        Raises:
            ImprovementStopped: Models cannot be asked any further.
        """
        truths = self.truths(self.rubric.names.index(criterion.name), part)
        return verdict_agreements(criterion, (await self.verdicts(criterion, part)).codes, truths)

    async def verdicts(self, criterion: Criterion, part: str) -> WordingVerdicts:
        """How the judges decide about a part by a wording; asked once.

        Args:
            criterion: The criterion with that wording.
            part: `train` or `held_out`.

        Raises:
            ImprovementStopped: Models cannot be asked any further.
        """
        question = (criterion.name, criterion.requirement, part)
        if question not in self._verdicts:
            self._verdicts[question] = await self._ask_judges(criterion, part)
        return self._verdicts[question]

    async def _ask_judges(self, criterion: Criterion, part: str) -> WordingVerdicts:
        cases = self.parts[part].cases
        truths = self.truths(self.rubric.names.index(criterion.name), part)
        criterion_alone = Rubric((criterion,), guidelines=self.rubric.guidelines)
        # Items without a label for this criterion decide nothing, and are not asked about.
        labelled = [index for index, truth in enumerate(truths) if not is_missing(truth)]
        graded = await self._grade_all([cases[index]._replace(rubric=criterion_alone) for index in labelled])

        codes: list[int | float | None] = [None] * len(truths)
        reasons: list[str | None] = [None] * len(truths)
        lost: list[CriterionGrading] = []
        for index, case in zip(labelled, graded, strict=True):
            grading = case.item.criteria[0]
            codes[index] = verdict_code(grading)
            reasons[index] = grading.reason
            if codes[index] is None:
                lost.append(grading)

        if len(lost) > LOST * len(labelled):
            failures = (vote.failure for grading in lost for vote in grading.votes)
            why = next(failure.message for failure in failures if failure is not None)
            raise ImprovementStopped(f"the judges failed on {len(lost):,} of {plural(len(labelled), 'item')}: {why}")
        self._count(reply for case in graded for reply in case.replies)
        return WordingVerdicts(codes, reasons)

    def _count(self, replies: Iterable[Said]) -> None:
        """Count what replies used, once they are on the disk. A call counts once, also where the work was resumed.

        Raises:
            StoreError: The progress file cannot be written.
        """
        if self._run is not None:
            self._run.writer.flush()
        self._usages += [
            call.usage if self._payments.pay(call.id) else count_as_cached_call(call.usage)
            for call in reply_calls(replies)
            if call.usage is not None
        ]

    async def _grade_all(self, cases: Sequence[GradingCase]) -> list[GradedCase]:
        graded: dict[int, GradedCase] = {}

        async def grade(index: int) -> None:
            replies: list[Said] = []
            item = await script_result(self.grader.script(cases[index]), self._gateway.answers, replies)
            graded[index] = GradedCase(item, replies)
            self._tell(len(graded), len(cases))

        async with worker_pool(Stop()) as pool:
            await pool.for_each(range(len(cases)), grade, workers=min(WORKERS, len(cases)))

        in_order = [graded[index] for index in sorted(graded)]
        votes = (vote for case in in_order for criterion in case.item.criteria for vote in criterion.votes)
        if any(vote.failure is not None and vote.failure.cause == "not_run" for vote in votes):
            raise ImprovementStopped(self._halted)
        return in_order

    @property
    def _halted(self) -> str:
        return (self._gateway.exhausted or self._gateway.open_circuit or "models could not be asked").rstrip(".")

    def _tell(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(Progress(done, total, 0, self._gateway.spent, self._gateway.limiter_states()))

    async def propose(self, criterion: Criterion, number: int, *, tried: Sequence[str]) -> WordingProposal:
        """What the writer proposes.

        Args:
            criterion: What is reworded.
            number: Which of its proposals for the criterion this is, from 1.
            tried: Wordings that did not help.

        Raises:
            ImprovementStopped: The writer cannot be asked.
        """
        script = ask_rewording(
            criterion,
            await self._exemplars(criterion, number),
            role=self.settings.writer_role(self.grader),
            guidelines=self.rubric.guidelines,
            task=self.parts[TRAIN].task,
            tried=tried,
            seed=self.settings.seed,
        )
        replies: list[Said] = []
        try:
            rewording = (await script_result(script, self._gateway.answers, replies)).value
            proposal = WordingProposal(rewording.requirement, rewording.diagnosis)
        except NoAnswerError as error:
            if error.cause != "unreadable":
                raise ImprovementStopped(f"the writer failed: {error.message.rstrip('.')}") from None
            proposal = WordingProposal(message=error.message)
        self._count(replies)
        return proposal

    async def _exemplars(self, criterion: Criterion, number: int) -> list[Disagreement]:
        """Disagreements of the training part, others for each proposal as long as there are."""
        train = self.parts[TRAIN]
        column = self.rubric.names.index(criterion.name)
        truths = self.truths(column, TRAIN)
        verdicts = await self.verdicts(criterion, TRAIN)
        agreements = await self.agreements(criterion, TRAIN)

        wrong = [index for index, agreement in enumerate(agreements) if agreement is not None and agreement < 1]
        wrong.sort(key=lambda index: parts_digest(self.settings.seed, criterion.name, train.cases[index].id))
        start = (number - 1) * self.settings.exemplars % len(wrong)
        chosen = [*wrong[start:], *wrong[:start]][: self.settings.exemplars]
        return [
            Disagreement(
                train.cases[index].output,
                _label(criterion, truths[index]),
                _label(criterion, verdicts.codes[index]),
                verdicts.reasons[index],
                train.reasons[index][column] if train.reasons[index] else None,
            )
            for index in chosen
        ]


def verdict_code(graded: CriterionGrading) -> int | float | None:
    """The code of a verdict, or its number; a negative code where no reply could be read, None where the calls failed.

    Args:
        graded: What the votes on a criterion come to.
    """
    if graded.failed:
        readable = all(vote.failure is not None and vote.failure.category == "parse" for vote in graded.votes)
        return FAILED if readable else None
    return graded.code


def _label(criterion: Criterion, code: float | None) -> str:
    if isinstance(code, float):
        return f"{code:g}"
    return "nothing that could be read" if code is None or code < 0 else criterion.labels[code]
