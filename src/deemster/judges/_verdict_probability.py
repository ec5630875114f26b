"""Probabilities of verdicts: what a judge wrote, beside what it might have written in the same place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from deemster.judges._grading_prompt import Exhibit
from deemster.records import Answer, Token
from deemster.rubrics.verdicts import VERDICTS

ALTERNATIVES = 20
_SLACK = 1e-6
# What follows a whole number that is not finished, or is none.
_GOES_ON = frozenset(".eE0123456789")


class Traces:
    """Where a reply gives its verdicts, in its tokens.

    In JSON a key stands nowhere but before a colon, whatever a reason says, so that the places of keys can be counted.

    Args:
        answer: A reply that was read.
    """

    def __init__(self, answer: Answer) -> None:
        self._tokens = answer.tokens or ()
        self._text = "".join(token.text for token in self._tokens)

    def probabilities(
        self, exhibit: Exhibit, code: int, *, entry: int = 0, entries: int = 1
    ) -> tuple[float, ...] | None:
        """P(MET), or one for every scored option; None where it cannot be told.

        Args:
            exhibit: What was judged.
            code: The verdict that was read.
            entry: Which entry of the reply it stands in, from 0.
            entries: How many entries the reply has.
        """
        criterion = exhibit.criterion
        if not self._tokens or code not in criterion.scored:
            return None
        places = [found.end() for found in _key("verdict|option").finditer(self._text)]
        if len(places) != entries:
            return None
        spelt = _numbers(len(exhibit.order)) if exhibit.order else _QUOTED
        codes = exhibit.order or range(len(VERDICTS))
        shares = dict.fromkeys(codes, 0.0)
        written = None
        for place, share, is_written in _continuations(self._tokens, places[entry], spelt):
            shares[codes[place]] += share
            if is_written:
                written = codes[place]
        mass = math.fsum(shares[each] for each in criterion.scored)
        if written != code or not 0.0 < mass <= 1.0 + _SLACK:
            return None
        found = tuple(shares[each] / mass for each in criterion.scored)
        return found if exhibit.order else found[:1]

    def entry_of(self, name: str, names: Sequence[str]) -> int | None:
        """Which entry of a reply about a whole rubric is about a criterion; None where it cannot be told.

        Args:
            name: The criterion's name.
            names: What the entries name, in order.
        """
        if len(_key("criterion").findall(self._text)) != len(names) or names.count(name) != 1:
            return None
        return names.index(name)


_QUOTED = tuple(f'"{verdict}"' for verdict in VERDICTS)


@lru_cache(maxsize=8)
def _key(names: str) -> re.Pattern[str]:
    return re.compile(rf'"(?:{names})"\s*:')


@lru_cache(maxsize=256)
def _numbers(count: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, count + 1))


def _continuations(tokens: Sequence[Token], start: int, spelt: Sequence[str]) -> Iterator[tuple[int, float, bool]]:
    """What the model might have written at a place: the place of a spelling, its probability, whether it did.

    Where a spelling has several tokens the alternatives of each are followed: P(UNMET) = P("UN")·P("MET"|"UN"). An
    alternative whose continuation nobody saw counts where only one spelling begins like it, or it is one as it stands.
    """
    at = place = 0
    while place < len(tokens) and at + len(tokens[place].text) <= start:
        at += len(tokens[place].text)
        place += 1
    written, weight, skip = "", 1.0, start - at
    for token in tokens[place:]:
        lead = token.text[:skip]
        likely = {token.text: token.logprob, **dict(token.alternatives)}
        for text, logprob in likely.items():
            if text != token.text and text.startswith(lead):
                found = _meant(written + text[skip:], spelt)
                if found is not None:
                    yield found, weight * _probability(logprob), False
        weight *= _probability(likely[token.text])
        written, skip = written + token.text[skip:], 0
        begun = _begun(written, spelt)
        if len(begun) < 2:
            yield from ((found, weight, True) for found in begun)
            return


def _begun(text: str, spelt: Sequence[str]) -> list[int]:
    """The spellings that a text begins, or goes beyond."""
    said = text.lstrip()
    return [
        place
        for place, spelling in enumerate(spelt)
        if spelling.startswith(said)
        or (said.startswith(spelling) and not (spelling.isdigit() and said[len(spelling)] in _GOES_ON))
    ]


def _meant(text: str, spelt: Sequence[str]) -> int | None:
    begun = _begun(text, spelt)
    if len(begun) == 1:
        return begun[0]
    said = text.lstrip()
    return spelt.index(said) if said in spelt else None


def _probability(logprob: float) -> float:
    try:
        return math.exp(logprob)
    except OverflowError:
        return math.inf
