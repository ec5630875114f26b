"""Asking judges, and reading what they reply: exactly what was asked for, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from deemster.errors import listing, visible
from deemster.judges._grading_prompt import Exhibit
from deemster.judges._verdict_probability import Traces
from deemster.judges.grading_result import Vote
from deemster.judges.judge_script import Asking
from deemster.judges.reply_parser import Unreadable, choice, cut, entries_of, whole_number, words
from deemster.records import Answer, Ask, Call, NoAnswer, Reply
from deemster.records.shared_call_cost import reply_calls
from deemster.rubrics.verdicts import VERDICTS

ENTRIES = "verdicts"
# By criterion, judge and repeat.
Tries: TypeAlias = Mapping[tuple[int, str, int], int]


class Question(NamedTuple):
    """What one judge is asked once.

    Attributes:
        ask: The request.
        judge: The place of the judge among the judges.
        repeat: How often it was asked before.
        exhibits: What it is asked about.
        whole: Whether it is asked about the whole rubric in one reply.
    """

    ask: Ask
    judge: int
    repeat: int
    exhibits: tuple[Exhibit, ...]
    whole: bool


class Heard(NamedTuple):
    """What a reply says about one criterion.

    Attributes:
        code: The verdict.
        reason: Why.
        thinking: The model's reasoning, where it is told apart from the answer.
        probabilities: P(MET), or one for every scored option, where the reply tells.
    """

    code: int
    reason: str
    thinking: str | None
    probabilities: tuple[float, ...] | None = None


class Said(NamedTuple):
    """What came of one question.

    Attributes:
        found: For each of its criteria what was heard, or why nothing was.
        calls: The calls that the replies come from, with what each used.
    """

    found: list[Heard | NoAnswer]
    calls: list[Call]


def tries_of(known: Sequence[Sequence[Vote]]) -> Tries:
    """How often each question was put whose replies could not be read.

    Args:
        known: Votes on each criterion that were cast before.
    """
    return {
        (place, vote.judge, vote.repeat): vote.failure.tries
        for place, votes in enumerate(known)
        for vote in votes
        if vote.failure is not None and vote.failure.tries
    }


def heard_all(questions: Sequence[Question]) -> Asking[list[Said]]:
    """Ask all in one round, and in a second round once more those whose reply cannot be read as a whole.

    What could be read of a first reply stands; the second one is read for the rest.

    Args:
        questions: What is asked.
    """
    first = yield [question.ask for question in questions]
    found = [_read(question, reply) for question, reply in zip(questions, first, strict=True)]
    spent = [[*reply_calls([reply])] for reply in first]
    # The gateway has already asked again, as often as makes sense, where it says that no answer came.
    again = [
        place
        for place, reply in enumerate(first)
        if isinstance(reply, Answer) and any(isinstance(each, NoAnswer) for each in found[place])
    ]
    if again:
        asks = [questions[place].ask for place in again]
        second = yield [msgspec.structs.replace(ask, again=ask.again + 1) for ask in asks]
        for place, reply in zip(again, second, strict=True):
            fresh = _read(questions[place], reply)
            found[place] = [
                new if isinstance(old, NoAnswer) else old for old, new in zip(found[place], fresh, strict=True)
            ]
            spent[place] += reply_calls([reply])
    return [Said(each, calls) for each, calls in zip(found, spent, strict=True)]


def _read(question: Question, reply: Reply) -> list[Heard | NoAnswer]:
    if isinstance(reply, NoAnswer):
        return [reply] * len(question.exhibits)
    if not isinstance(reply, Answer):
        message = "The model sent vectors where an answer was expected."
        return [NoAnswer(cause="unreadable", message=message)] * len(question.exhibits)
    try:
        if not question.whole:
            (exhibit,) = question.exhibits
            key = "option" if exhibit.order else "verdict"
            heard = _verdict(entries_of(reply, ("reason", key)), exhibit, reply)
            if not reply.tokens:
                return [heard]
            return [heard._replace(probabilities=Traces(reply).probabilities(exhibit, heard.code))]
        return _verdicts(reply, question.exhibits)
    except Unreadable as error:
        return [_unread(error.message)] * len(question.exhibits)


def _verdicts(answer: Answer, exhibits: Sequence[Exhibit]) -> list[Heard | NoAnswer]:
    """What a reply says about every criterion of a rubric.

    Raises:
        Unreadable: It is no list of entries.
    """
    entries = entries_of(answer, (ENTRIES,))[ENTRIES]
    if not isinstance(entries, list):
        raise Unreadable(f"`{ENTRIES}` is a list with an entry for each criterion.")
    said: dict[str, list[Any]] = {}
    names: list[str] = []
    known = {exhibit.criterion.name for exhibit in exhibits}
    strange = []
    for entry in entries:
        name = entry.get("criterion") if isinstance(entry, dict) else None
        names.append(str(name))
        if isinstance(name, str) and name in known:
            said.setdefault(name, []).append(entry)
        else:
            strange.append(visible(str(name), limit=40))
    found = [_entry(said.get(exhibit.criterion.name, []), exhibit, answer, strange) for exhibit in exhibits]
    return _weighed(found, exhibits, answer, names) if answer.tokens else found


def _weighed(
    found: Sequence[Heard | NoAnswer], exhibits: Sequence[Exhibit], answer: Answer, names: Sequence[str]
) -> list[Heard | NoAnswer]:
    """What was heard, with how likely each verdict was."""
    traces = Traces(answer)
    weighed: list[Heard | NoAnswer] = []
    for exhibit, heard in zip(exhibits, found, strict=True):
        entry = traces.entry_of(exhibit.criterion.name, names)
        if isinstance(heard, Heard) and entry is not None:
            p = traces.probabilities(exhibit, heard.code, entry=entry, entries=len(names))
            weighed.append(heard._replace(probabilities=p))
        else:
            weighed.append(heard)
    return weighed


def _entry(entries: Sequence[Any], exhibit: Exhibit, answer: Answer, strange: Sequence[str]) -> Heard | NoAnswer:
    name = visible(exhibit.criterion.name, limit=60)
    if len(entries) != 1:
        count = f"{len(entries)} entries" if entries else "no entry"
        hint = f" It names what is no criterion: {listing(strange, limit=3)}." if strange and not entries else ""
        return _unread(f"The reply has {count} for `{name}`; one was expected.{hint}")
    keys = ("criterion", "reason", "option" if exhibit.order else "verdict")
    (entry,) = entries
    if entry.keys() != set(keys):
        odd = [visible(key, limit=40) for key in entry if key not in keys]
        found = f"unknown keys: {listing(odd, limit=5)}" if odd else "not all keys"
        return _unread(f"The entry for `{name}` has {found}. Expected are {listing(keys)}.")
    try:
        return _verdict(entry, exhibit, answer)
    except Unreadable as error:
        return _unread(f"The entry for `{name}`: {error.message}")


def _verdict(entries: dict[str, Any], exhibit: Exhibit, answer: Answer) -> Heard:
    """What the entries of a reply say about one criterion.

    Raises:
        Unreadable: The reason is blank, or the verdict is none that was offered.
    """
    reason = words(entries, "reason")
    if exhibit.order:
        code = exhibit.order[whole_number(entries, "option", low=1, high=len(exhibit.order)) - 1]
    else:
        code = VERDICTS.index(choice(entries, "verdict", VERDICTS))
    return Heard(code, _storable(reason), None if answer.thinking is None else _storable(cut(answer.thinking)))


def _unread(message: str) -> NoAnswer:
    return NoAnswer(cause="unreadable", message=message)


def _storable(text: str) -> str:
    """The text without lone surrogates, which no file can hold."""
    return text.encode("utf-8", "replace").decode()
