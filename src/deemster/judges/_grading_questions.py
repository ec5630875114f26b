"""The questions that a grader asks its judges, and how their replies are read: complete or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from deemster.errors import list_names, visible
from deemster.judges._grading_prompt import CriterionView
from deemster.judges._log_probabilities import VerdictProbabilities
from deemster.judges.judge_panel import Seat
from deemster.judges.judge_script import Asking, QuestionOutcome, ask_with_retry, unreadable_reply
from deemster.judges.reply_parser import (
    UnreadableReplyError,
    choice_entry,
    integer_entry,
    number_entry,
    reply_entries,
    text_entry,
    truncate_text,
)
from deemster.judges.vote import Vote
from deemster.records import Answer, Ask, NoAnswer
from deemster.rubrics.verdicts import VERDICTS

ENTRIES = "verdicts"
# By criterion, judge and repeat.
Tries: TypeAlias = Mapping[tuple[int, str, int], int]


class Question(NamedTuple):
    """What one judge is asked once.

    Attributes:
        ask: The request.
        seat: The judge, and how often it was asked before.
        views: The criteria that it is asked about.
        per_item: Whether it is asked about the whole rubric in one reply.
    """

    ask: Ask
    seat: Seat
    views: tuple[CriterionView, ...]
    per_item: bool


class CriterionReply(NamedTuple):
    """What a reply says about one criterion.

    Attributes:
        code: The verdict; a float is a number on a numeric criterion.
        reason: Why.
        thinking: The model's reasoning, if the provider reports it apart from the answer.
        probabilities: P(MET), or one for every scored option, if the reply tells.
    """

    code: int | float
    reason: str
    thinking: str | None
    probabilities: tuple[float, ...] | None = None


def count_tries(known: Sequence[Sequence[Vote]]) -> Tries:
    """How often each question was asked whose replies could not be read.

    Args:
        known: Votes on each criterion that were cast before.
    """
    return {
        (place, vote.judge, vote.repeat): vote.failure.tries
        for place, votes in enumerate(known)
        for vote in votes
        if vote.failure is not None and vote.failure.tries
    }


def ask_questions(questions: Sequence[Question]) -> Asking[list[QuestionOutcome[CriterionReply]]]:
    """Ask all questions in one round, and once more those whose reply cannot be read completely.

    Args:
        questions: What is asked.
    """
    asks = [question.ask for question in questions]
    parts = [len(question.views) for question in questions]
    return (yield from ask_with_retry(asks, lambda place, answer: _read(questions[place], answer), parts=parts))


def _read(question: Question, answer: Answer) -> list[CriterionReply | NoAnswer]:
    """What an answer says about each criterion of a question.

    Raises:
        UnreadableReplyError: It says nothing about any of them.
    """
    if question.per_item:
        return _verdicts(answer, question.views)
    (view,) = question.views
    reply = _verdict(reply_entries(answer, ("reason", view.key)), view, answer)
    if not answer.tokens or view.key == "number":
        return [reply]
    return [reply._replace(probabilities=VerdictProbabilities(answer).probabilities(view, int(reply.code)))]


def _verdicts(answer: Answer, views: Sequence[CriterionView]) -> list[CriterionReply | NoAnswer]:
    """What a reply says about every criterion of a rubric.

    Raises:
        UnreadableReplyError: It is no list of entries.
    """
    entries = reply_entries(answer, (ENTRIES,))[ENTRIES]
    if not isinstance(entries, list):
        raise UnreadableReplyError(f"`{ENTRIES}` is a list with an entry for each criterion.")
    said: dict[str, list[Any]] = {}
    names: list[str] = []
    known = {view.criterion.name for view in views}
    strange = []
    for entry in entries:
        name = entry.get("criterion") if isinstance(entry, dict) else None
        names.append(str(name))
        if isinstance(name, str) and name in known:
            said.setdefault(name, []).append(entry)
        else:
            strange.append(visible(str(name), limit=40))
    found = [_entry(said.get(view.criterion.name, []), view, answer, strange) for view in views]
    return _with_probabilities(found, views, answer, names) if answer.tokens else found


def _with_probabilities(
    found: Sequence[CriterionReply | NoAnswer], views: Sequence[CriterionView], answer: Answer, names: Sequence[str]
) -> list[CriterionReply | NoAnswer]:
    """The verdicts that were read, with how likely each was."""
    likely = VerdictProbabilities(answer)
    weighed: list[CriterionReply | NoAnswer] = []
    for view, reply in zip(views, found, strict=True):
        entry = likely.entry_of(view.criterion.name, names)
        if isinstance(reply, CriterionReply) and isinstance(reply.code, int) and entry is not None:
            p = likely.probabilities(view, reply.code, entry=entry, entries=len(names))
            weighed.append(reply._replace(probabilities=p))
        else:
            weighed.append(reply)
    return weighed


def _entry(
    entries: Sequence[Any], view: CriterionView, answer: Answer, strange: Sequence[str]
) -> CriterionReply | NoAnswer:
    name = visible(view.criterion.name, limit=60)
    if len(entries) != 1:
        count = f"{len(entries)} entries" if entries else "no entry"
        hint = f" It names what is no criterion: {list_names(strange, limit=3)}." if strange and not entries else ""
        return unreadable_reply(f"The reply has {count} for `{name}`; one was expected.{hint}")
    keys = ("criterion", "reason", view.key)
    (entry,) = entries
    if entry.keys() != set(keys):
        unknown = [visible(key, limit=40) for key in entry if key not in keys]
        found = f"unknown keys: {list_names(unknown, limit=5)}" if unknown else "not all keys"
        return unreadable_reply(f"The entry for `{name}` has {found}. Expected are {list_names(keys)}.")
    try:
        return _verdict(entry, view, answer)
    except UnreadableReplyError as error:
        return unreadable_reply(f"The entry for `{name}`: {error.message}")


def _verdict(entries: dict[str, Any], view: CriterionView, answer: Answer) -> CriterionReply:
    """What the entries of a reply say about one criterion.

    Raises:
        UnreadableReplyError: The reason is blank, or the verdict is none that was offered.
    """
    reason = text_entry(entries, "reason")
    code: int | float
    if view.key == "number":
        criterion = view.criterion
        low, high = criterion.minimum or 0.0, criterion.maximum or 0.0
        if entries["number"] is None and view.may_abstain:
            code = criterion.abstention
        else:
            code = number_entry(entries, "number", low=low, high=high, step=criterion.step)
    elif view.order:
        code = view.order[integer_entry(entries, "option", low=1, high=len(view.order)) - 1]
    else:
        code = VERDICTS.index(choice_entry(entries, "verdict", VERDICTS))
    return CriterionReply(
        code, _storable(reason), None if answer.thinking is None else _storable(truncate_text(answer.thinking))
    )


def _storable(text: str) -> str:
    """The text without lone surrogates, which no file can hold."""
    return text.encode("utf-8", "replace").decode()
