"""Saved answers that are kept in memory, and how those of one sample are joined."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from deemster.errors import Issue, OutputsError
from deemster.formats.document import sort_issues
from deemster.records import Output
from deemster.targets.saved_output_format import Answer, SavedAnswer


class AnswersInMemory:
    """Answers by sample id and repetition.

    Attributes:
        repetitions: How many are recorded for every sample.
    """

    def __init__(self, answers: dict[str, list[Answer]]) -> None:
        self._answers = answers
        self.repetitions = len(next(iter(answers.values())))

    def __len__(self) -> int:
        return len(self._answers)

    def digest(self) -> str:
        """The SHA-256 of all answers, whatever order they came in."""
        digest = hashlib.sha256()
        for name in sorted(self._answers):
            # A lone surrogate, which JSON cannot hold, must not keep answers from having a name.
            digest.update(repr((name, self._answers[name])).encode("utf-8", "backslashreplace"))
        return digest.hexdigest()

    def compare(self, ids: Collection[str]) -> tuple[list[str], list[str]]:
        """Ids that are not recorded, and recorded ids that are not asked for."""
        asked = set(ids)
        missing = [name for name in ids if name not in self._answers]
        return missing, [name for name in self._answers if name not in asked]

    def answers(self, ids: Sequence[str], repetition: int) -> list[Answer]:
        """Answers in the order asked for.

        Raises:
            OutputsError: Nothing is recorded for an id, or not so often.
        """
        try:
            return [self._answers[name][repetition] for name in ids]
        except KeyError as error:
            raise OutputsError(Issue("No output is saved.", sample=str(error.args[0]))) from None
        except IndexError:
            message = f"Repetition {repetition} is not recorded; there are {self.repetitions}."
            raise OutputsError(Issue(message)) from None

    def excerpt(self, ids: list[str]) -> AnswersInMemory:
        """The answers of some samples."""
        return AnswersInMemory({name: self._answers[name] for name in ids})


def answers_from_texts(outputs: Any) -> AnswersInMemory | None:
    """The answers of a map of ids to texts, the commonest form; None where it is another or something is wrong."""
    if not isinstance(outputs, dict) or not outputs or set(map(type, outputs.values())) != {str}:
        return None
    if not all(type(name) is str and name.strip() for name in outputs):
        return None
    return AnswersInMemory({name: [Output(text)] for name, text in outputs.items()})


def join_answers(entries: Iterable[SavedAnswer | Issue], *, file: str | None) -> dict[str, list[Answer]]:
    """Join the answers to each sample, in the order of their repetitions.

    Args:
        entries: Answers in any order, and what is wrong.
        file: How messages name the file.

    Raises:
        OutputsError: Something is wrong; every issue is given.
    """
    joined = _JoinedAnswers()
    for entry in entries:
        if isinstance(entry, Issue):
            joined.issues.append(entry)
        else:
            joined.add(entry)

    joined.check_repetitions()
    if not joined.by_id and not joined.issues:
        joined.issues.append(Issue("There are no outputs.", file))
    if joined.issues:
        raise OutputsError(sort_issues(joined.issues))

    return {name: [answers[repetition] for repetition in range(len(answers))] for name, answers in joined.by_id.items()}


class _JoinedAnswers:
    """Answers by sample id, then repetition, and what is wrong with them."""

    def __init__(self) -> None:
        self.by_id: dict[str, dict[int, Answer]] = {}
        self.issues: list[Issue] = []
        # Where the first answer to each sample stands.
        self._where: dict[str, str | None] = {}

    def add(self, saved: SavedAnswer) -> None:
        answers = self.by_id.setdefault(saved.sample_id, {})
        self._where.setdefault(saved.sample_id, saved.where)
        if saved.repetition in answers:
            message = f"Repetition {saved.repetition} is given twice."
            self.issues.append(Issue(message, saved.where, saved.sample_id))
        answers[saved.repetition] = saved.answer

    def check_repetitions(self) -> None:
        """Every sample needs the same number of repetitions, with no gap."""
        most = max(map(len, self.by_id.values()), default=0)
        for name, answers in self.by_id.items():
            gap = next((repetition for repetition in range(len(answers)) if repetition not in answers), None)
            if gap is not None:
                self.issues.append(Issue(f"Repetition {gap} is missing.", self._where[name], name))
            elif len(answers) != most:
                message = f"{len(answers)} of {most} repetitions are recorded; every sample needs the same number."
                self.issues.append(Issue(message, self._where[name], name))
