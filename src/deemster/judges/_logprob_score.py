"""A score from log-probabilities: what the judge wrote, weighed with what it might have written instead."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import msgspec

from deemster.records import Answer, Token

_DIGITS = re.compile(r"[0-9]+")
# What follows a whole number that is not finished, or is none.
_GOES_ON = frozenset(".eE")
_SLACK = 1e-6


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of a whole number over what the model might have written.

    Attributes:
        value: The mean over the allowed numbers, renormalised; None where it cannot be had.
        mass: The probability that the allowed numbers cover.
        probabilities: Each allowed number that was seen, with its share of the mass.
        missing: Why there is none.
    """

    value: float | None = None
    mass: float | None = None
    probabilities: dict[int, float] = {}
    missing: str | None = None


def expected_score(answer: Answer, *, low: int, high: int, key: str = "score") -> Expectation:
    """The expectation of the whole number that ends a reply.

    The number is found by its place: as the value of the last key of the JSON object, never by looking for digits.
    Where it has several tokens, as "1" and "0", the alternatives of each are followed: P(10) = P("1")·P("0"|"1"), and
    what ends the number after "1" counts for 1. An alternative whose continuation nobody saw is taken as it stands.
    E = Σ k·P(k) / Σ P(k) over low ≤ k ≤ high; the sum below is the mass.

    Args:
        answer: A reply that was read as JSON, with its tokens.
        low: The least number allowed.
        high: The greatest.
        key: The key whose value is the number.

    >>> import math
    >>> likely = (("1", math.log(0.75)), ("2", math.log(0.25)))
    >>> tokens = (Token('{"score":', 0.0), Token("1", math.log(0.75), likely), Token("}", 0.0))
    >>> expected_score(Answer(text='{"score":1}', tokens=tokens), low=0, high=10).value
    1.25
    """
    if not answer.tokens:
        return Expectation(missing="The model gave no log-probabilities.")
    ending = re.search(rf'"{re.escape(key)}"\s*:\s*(-?[0-9]+)\s*\}}\s*(?:```)?\s*\Z', answer.text)
    if ending is None:
        return Expectation(missing=f"The reply does not end with `{key}` as a whole number.")
    # Only the end of the reply must be there in tokens: servers write half a character in a reason their own way, and
    # some add the token that ends a message.
    place = "".join(token.text for token in answer.tokens).rfind(ending[0].rstrip())
    if place < 0:
        return Expectation(missing="The tokens do not make up the end of the reply.")
    shares: dict[int, float] = {}
    mass = 0.0
    for number, probability in _continuations(answer.tokens, place + ending.start(1) - ending.start()):
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


def _continuations(tokens: Sequence[Token], start: int) -> Iterator[tuple[int, float]]:
    """Whole numbers that the model might have written at a place, with their probabilities; some may come twice."""
    at = 0
    place = 0
    while at + len(tokens[place].text) <= start:
        at += len(tokens[place].text)
        place += 1
    lead = tokens[place].text[: start - at]
    written, weight = "", 1.0
    while place < len(tokens):
        token = tokens[place]
        for text, logprob in {token.text: token.logprob, **dict(token.alternatives)}.items():
            if text.startswith(lead) and text != token.text:
                yield from _ended(written, text[len(lead) :], weight * _probability(logprob))
        weight *= _probability(dict(token.alternatives).get(token.text, token.logprob))
        rest = token.text[len(lead) :]
        digits = _DIGITS.fullmatch(rest)
        if digits is None:
            yield from _ended(written, rest, weight)
            return
        written, lead = written + rest, ""
        place += 1
    yield from _ended(written, "", weight)


def _ended(written: str, text: str, probability: float) -> Iterator[tuple[int, float]]:
    digits = _DIGITS.match(text)
    whole = written + (digits[0] if digits else "")
    rest = text[digits.end() :] if digits else text
    # Longer ones are beyond every scale, and leading zeros are no JSON.
    if whole and len(whole) <= 9 and str(int(whole)) == whole and rest[:1] not in _GOES_ON:
        yield int(whole), probability


def _probability(logprob: float) -> float:
    try:
        return math.exp(logprob)
    except OverflowError:
        return math.inf
