"""Scores and verdicts from log-probabilities: what a judge wrote, weighed with what it might have written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from deemster.judges._grading_prompt import CriterionView
from deemster.judges.judge_panel import ScoreReply
from deemster.judges.reply_parser import integer_entry, reply_entries, text_entry
from deemster.records import Answer, Token
from deemster.rubrics.verdicts import VERDICTS

_DIGITS = re.compile(r"[0-9]+")
# A whole number that one of these follows is not finished, or is no whole number.
_GOES_ON = frozenset(".eE")
_SLACK = 1e-6
_QUOTED = tuple(f'"{verdict}"' for verdict in VERDICTS)


def read_integer_score(answer: Answer, *, low: int, high: int, logprobs: bool) -> ScoreReply:
    """The reason and the whole number that a reply gives as its score.

    Args:
        answer: The reply.
        low: The least number allowed.
        high: The greatest.
        logprobs: Whether the expectation over log-probabilities takes the place of the number, if there is one.

    Raises:
        UnreadableReplyError: The reply is not a reason and an allowed number.
    """
    entries = reply_entries(answer, ("reason", "score"))
    reason = text_entry(entries, "reason")
    value = integer_entry(entries, "score", low=low, high=high)
    if not logprobs:
        return ScoreReply(value, reason)
    expected = expected_score(answer, low=low, high=high)
    if expected.value is None:
        return ScoreReply(value, reason, fallback=expected.missing)
    return ScoreReply(expected.value, reason, mass=expected.mass)


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of a whole number over what the model might have written.

    Attributes:
        value: The mean over the allowed numbers, renormalised; None if there is none.
        mass: The probability that the allowed numbers cover.
        probabilities: Each allowed number that was seen, with its share of the mass.
        missing: Why there is no mean.
    """

    value: float | None = None
    mass: float | None = None
    probabilities: dict[int, float] = {}
    missing: str | None = None


def expected_score(answer: Answer, *, low: int, high: int) -> Expectation:
    """The expectation of the whole number that ends a reply.

    The number is found by its place: it is the value of the last key of the JSON object. If it has several tokens, as
    "1" and "0", the alternatives of each are followed: P(10) = P("1")·P("0"|"1"), and what ends the number after "1"
    counts for 1. An alternative whose continuation is unknown is taken as it stands.
    E = Σ k·P(k) / Σ P(k) over low ≤ k ≤ high; the sum below is the mass.

    Args:
        answer: A reply that was read as JSON, with its tokens.
        low: The least number allowed.
        high: The greatest.

    >>> import math
    >>> likely = (("1", math.log(0.75)), ("2", math.log(0.25)))
    >>> tokens = (Token('{"score":', 0.0), Token("1", math.log(0.75), likely), Token("}", 0.0))
    >>> expected_score(Answer(text='{"score":1}', tokens=tokens), low=0, high=10).value
    1.25
    """
    if not answer.tokens:
        return Expectation(missing="The model gave no log-probabilities.")
    ending = re.search(r'"score"\s*:\s*(-?[0-9]+)\s*\}\s*(?:```)?\s*\Z', answer.text)
    if ending is None:
        return Expectation(missing="The reply does not end with `score` as a whole number.")
    # Only the end of the reply is compared: servers differ in how they write half a character of a reason, and some
    # add the token that ends a message.
    place = "".join(token.text for token in answer.tokens).rfind(ending[0].rstrip())
    if place < 0:
        return Expectation(missing="The tokens do not make up the end of the reply.")
    shares: dict[int, float] = {}
    mass = 0.0
    for number, probability in _possible_numbers(answer.tokens, place + ending.start(1) - ending.start()):
        if low <= number <= high:
            shares[number] = shares.get(number, 0.0) + probability
            mass += probability
    if not (math.isfinite(mass) and 0.0 < mass <= 1.0 + _SLACK):
        return Expectation(missing="The log-probabilities give the allowed numbers no probability between 0 and 1.")
    return Expectation(
        value=math.fsum(number * share for number, share in shares.items()) / mass,
        mass=min(mass, 1.0),
        probabilities={number: shares[number] / mass for number in sorted(shares)},
    )


def _possible_numbers(tokens: Sequence[Token], start: int) -> Iterator[tuple[int, float]]:
    """Whole numbers that the model might have written at a place, with their probabilities; some may come twice."""
    place, skip = _token_at(tokens, start)
    written, weight = "", 1.0
    for token in tokens[place:]:
        lead, likely = token.text[:skip], _alternatives(token)
        for text, probability in likely.items():
            if text.startswith(lead) and text != token.text:
                yield from _ended(written, text[skip:], weight * probability)
        weight *= likely[token.text]
        rest = token.text[skip:]
        if _DIGITS.fullmatch(rest) is None:
            yield from _ended(written, rest, weight)
            return
        written, skip = written + rest, 0
    yield from _ended(written, "", weight)


def _ended(written: str, text: str, probability: float) -> Iterator[tuple[int, float]]:
    digits = _DIGITS.match(text)
    number = written + (digits[0] if digits else "")
    rest = text[digits.end() :] if digits else text
    # A longer number is beyond every scale, and JSON has no leading zeros.
    if number and len(number) <= 9 and str(int(number)) == number and rest[:1] not in _GOES_ON:
        yield int(number), probability


class VerdictProbabilities:
    """Finds the verdicts of a reply among its tokens, and how likely each was.

    In JSON only a key is followed by a colon, whatever a reason says. So the places of keys can be counted.

    Args:
        answer: A reply that was read.
    """

    def __init__(self, answer: Answer) -> None:
        self._tokens = answer.tokens or ()
        self._text = "".join(token.text for token in self._tokens)

    def probabilities(
        self, view: CriterionView, code: int, *, entry: int = 0, entries: int = 1
    ) -> tuple[float, ...] | None:
        """P(MET), or one for every scored option; None if that is unknown.

        Args:
            view: What was judged.
            code: The verdict that was read.
            entry: Which entry of the reply it stands in, from 0.
            entries: How many entries the reply has.
        """
        criterion = view.criterion
        if not self._tokens or code not in criterion.scored:
            return None
        places = [found.end() for found in _key("verdict|option").finditer(self._text)]
        if len(places) != entries:
            return None
        spellings = _numbers(len(view.order)) if view.order else _QUOTED
        codes = view.order or range(len(VERDICTS))
        shares = dict.fromkeys(codes, 0.0)
        written = None
        for place, share, is_written in _possible_spellings(self._tokens, places[entry], spellings):
            shares[codes[place]] += share
            if is_written:
                written = codes[place]
        mass = math.fsum(shares[each] for each in criterion.scored)
        if written != code or not 0.0 < mass <= 1.0 + _SLACK:
            return None
        found = tuple(shares[each] / mass for each in criterion.scored)
        return found if view.order else found[:1]

    def entry_of(self, name: str, names: Sequence[str]) -> int | None:
        """Which entry of a reply about a whole rubric is about a criterion; None if that is unknown.

        Args:
            name: The criterion's name.
            names: What the entries name, in order.
        """
        if len(_key("criterion").findall(self._text)) != len(names) or names.count(name) != 1:
            return None
        return names.index(name)


@lru_cache(maxsize=8)
def _key(names: str) -> re.Pattern[str]:
    return re.compile(rf'"(?:{names})"\s*:')


@lru_cache(maxsize=256)
def _numbers(count: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, count + 1))


def _possible_spellings(
    tokens: Sequence[Token], start: int, spellings: Sequence[str]
) -> Iterator[tuple[int, float, bool]]:
    """What the model might have written at a place: the index of a spelling, its probability, whether it did.

    If a spelling has several tokens, the alternatives of each are followed: P(UNMET) = P("UN")·P("MET"|"UN"). An
    alternative whose continuation is unknown counts if only one spelling begins like it, or if it is a spelling as it
    stands.
    """
    place, skip = _token_at(tokens, start)
    written, weight = "", 1.0
    for token in tokens[place:]:
        lead, likely = token.text[:skip], _alternatives(token)
        for text, probability in likely.items():
            if text != token.text and text.startswith(lead):
                found = _only_match(written + text[skip:], spellings)
                if found is not None:
                    yield found, weight * probability, False
        weight *= likely[token.text]
        written, skip = written + token.text[skip:], 0
        matching = _matches(written, spellings)
        if len(matching) < 2:
            yield from ((found, weight, True) for found in matching)
            return


def _matches(text: str, spellings: Sequence[str]) -> list[int]:
    """The spellings that a text is a beginning of, or that it begins with."""
    said = text.lstrip()
    return [
        place
        for place, spelling in enumerate(spellings)
        if spelling.startswith(said)
        or (said.startswith(spelling) and not (spelling.isdigit() and _goes_on(said[len(spelling)])))
    ]


def _only_match(text: str, spellings: Sequence[str]) -> int | None:
    matching = _matches(text, spellings)
    if len(matching) == 1:
        return matching[0]
    said = text.lstrip()
    return spellings.index(said) if said in spellings else None


def _goes_on(character: str) -> bool:
    return character in _GOES_ON or character in "0123456789"


def _token_at(tokens: Sequence[Token], start: int) -> tuple[int, int]:
    """The token that holds a character, and how many characters of that token come before it."""
    at = place = 0
    while place < len(tokens) and at + len(tokens[place].text) <= start:
        at += len(tokens[place].text)
        place += 1
    return place, start - at


def _alternatives(token: Token) -> dict[str, float]:
    """What the model might have written in place of a token, and the token itself, with their probabilities."""
    likely = {token.text: token.logprob, **dict(token.alternatives)}
    return {text: _probability(logprob) for text, logprob in likely.items()}


def _probability(logprob: float) -> float:
    try:
        return math.exp(logprob)
    except OverflowError:
        return math.inf
