"""Examines a rubric with judges: they grade its criteria by a built-in meta-rubric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.engine.model_access import ModelAccess
from deemster.engine.progress import Progress
from deemster.errors import visible
from deemster.formats import Document
from deemster.formats.json_values import Path, pointer
from deemster.grading.grade_dataset import run_grading
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.item_grading import CriterionGrading
from deemster.judges.judge_panel import Judge
from deemster.report.grading_result import Grading
from deemster.rubrics.meta_rubric import ADVICE, HINTS, MEANING, PREFIX, Exam, exams
from deemster.rubrics.rubric_check import RubricIssue, criteria_paths
from deemster.rubrics.rubric_definition import Rubric

_TASK = "Write a rubric by which judges who know nothing but its text grade submissions."
_REASON = 400


class RubricExamination(NamedTuple):
    """What judges say of a rubric.

    Attributes:
        issues: What is not as the meta-rubric wants it, in the order of the criteria.
        asked: How many questions there were.
        failed: How many of them have no answer.
        cost_usd: What the answers cost; None where it is unknown.
        halted: Why not everything was asked; None where everything was.
    """

    issues: tuple[RubricIssue, ...]
    asked: int
    failed: int
    cost_usd: Decimal | None
    halted: str | None


async def examine_rubric(
    rubric: Rubric,
    *,
    judges: Sequence[str],
    access: ModelAccess,
    warn: Callable[[str], None],
    document: Document | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> RubricExamination:
    """Let judges grade a rubric by the meta-rubric; several decide by majority.

    Args:
        rubric: What is examined.
        judges: The model roles of the judges.
        access: How models may be asked.
        warn: Gets each warning.
        document: The file the rubric was read from, for places.
        progress: Gets the progress.

    Raises:
        InputError: A judge is none, or a model cannot be used.
    """
    grader = CriterionGrader(tuple(Judge(role, role) for role in judges))
    shown = list(exams(rubric))
    if not shown:
        return RubricExamination((), 0, 0, Decimal(0), None)
    dataset = RubricDataset(
        (
            {"id": f"part-{number:04d}", "submission": exam.text, "rubric": exam.rubric.to_dict()}
            for number, exam in enumerate(shown, 1)
        ),
        name="rubric",
        prompt=_TASK,
    )
    grading = await run_grading(dataset, grader, access=access, warn=warn, progress=progress)
    every = [criterion for item in grading.items for criterion in item.criteria]
    return RubricExamination(
        issues=tuple(_issues(rubric, shown, grading, document)),
        asked=sum(len(exam.rubric.criteria) for exam in shown),
        failed=sum(criterion.failed for criterion in every),
        cost_usd=grading.cost_usd,
        halted=grading.halted,
    )


def merge_issues(
    first: Sequence[RubricIssue], second: Sequence[RubricIssue], paths: Sequence[str]
) -> tuple[RubricIssue, ...]:
    """Put issues of two kinds into the order of the criteria; those of the whole rubric come first.

    Args:
        first: Issues of one kind.
        second: Issues of the other, behind the first ones of the same criterion.
        paths: The path of every criterion, as issues write it.
    """

    def place(issue: RubricIssue) -> int:
        within = (at for at, path in enumerate(paths) if issue.path == path or issue.path.startswith(f"{path}."))
        return next(within, -1)

    return tuple(sorted((*first, *second), key=place))


def _issues(
    rubric: Rubric, shown: Sequence[Exam], grading: Grading, document: Document | None
) -> Iterator[RubricIssue]:
    paths = criteria_paths(rubric, document)
    for exam, item in zip(shown, grading.items, strict=True):
        path: Path = () if exam.place is None else (*paths[exam.place], "requirement")
        name = None if exam.place is None else rubric.names[exam.place]
        for criterion in item.criteria:
            if criterion.verdict == "UNMET":
                found = criterion.criterion
                yield RubricIssue(
                    code=f"{PREFIX}{found}",
                    severity="hint" if found in HINTS else "warning",
                    where=None if document is None else document.where(path),
                    path=pointer(path),
                    message=_message(name, criterion),
                    suggestion=ADVICE[found],
                )


def _message(name: str | None, criterion: CriterionGrading) -> str:
    """What was found, and what the judges that found it say."""
    about = "The rubric" if name is None else f"`{name}`"
    said = [vote for vote in criterion.votes if vote.verdict == criterion.verdict and vote.reason is not None]
    reasons = " ".join(f"`{vote.judge}` says: {visible(str(vote.reason), limit=_REASON)}" for vote in said)
    return f"{about}: {MEANING[criterion.criterion]}. {reasons}".rstrip()
