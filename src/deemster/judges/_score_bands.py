"""The rubric of G-Eval: bands of whole numbers without overlap or gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from deemster.errors import ConfigurationError, did_you_mean, show_value
from deemster.judges.prompt_templates import check_unicode

HIGHEST = 1000
KEYS = ("range", "outcome")
EXAMPLE = "Write `{range: [1, 3], outcome: what earns it}`."


class Band(msgspec.Struct, frozen=True):
    """Neighbouring scores with one meaning.

    Attributes:
        range: The least and the greatest of them.
        outcome: What earns one of them.
    """

    range: tuple[int, int]
    outcome: str

    @property
    def numbers(self) -> str:
        """The scores, as a judge reads them.

        >>> Band((1, 3), "poor").numbers, Band((4, 4), "good").numbers
        ('1 to 3', '4')
        """
        low, high = self.range
        return str(low) if low == high else f"{low} to {high}"


# The bands say how much of a quality is there, so they serve qualities of either polarity.
TENTHS = (
    Band((0, 0), "The quality is not there at all."),
    Band((1, 3), "There is a little of it; most of the answer lacks it."),
    Band((4, 6), "It is there in part."),
    Band((7, 9), "It is there almost throughout, with a small lapse."),
    Band((10, 10), "It is there throughout, without a lapse."),
)


def parse_bands(rubric: Any, *, metric: str) -> tuple[Band, ...]:
    """The bands of a rubric, lowest first.

    Args:
        rubric: A list of maps with a `range` of two whole numbers and an `outcome`.
        metric: The metric it is for.

    Raises:
        ConfigurationError: A band cannot be read, two overlap, a number between two is in none, or there is one number.

    >>> parse_bands([{"range": [2, 3], "outcome": "good"}, {"range": [1, 1], "outcome": "bad"}], metric="m")[0].outcome
    'bad'
    """
    if isinstance(rubric, (str, Mapping)) or not isinstance(rubric, Sequence) or not rubric:
        raise ConfigurationError(f"`rubric` of {metric} is a list of bands, not {show_value(rubric)}. {EXAMPLE}")
    found = sorted((_band(entry, place, metric) for place, entry in enumerate(rubric)), key=lambda band: band.range)
    for lower, upper in pairwise(found):
        gap = upper.range[0] - lower.range[1]
        if gap < 1:
            raise ConfigurationError(
                f"Two bands of `rubric` of {metric} overlap: {lower.numbers} and {upper.numbers} both hold "
                f"{upper.range[0]}."
            )
        if gap > 1:
            raise ConfigurationError(f"`rubric` of {metric} has no band for {lower.range[1] + 1}.")
    if found[0].range[0] == found[-1].range[1]:
        raise ConfigurationError(f"`rubric` of {metric} has the one score {found[0].numbers}; two are the least.")
    return tuple(found)


def format_bands(rubric: Sequence[Band]) -> str:
    r"""Bands as a judge reads them, one a line.

    >>> format_bands([Band((0, 1), "bad"), Band((2, 2), "good")])
    '- 0 to 1: bad\n- 2: good'
    """
    return "\n".join(f"- {band.numbers}: {band.outcome}" for band in rubric)


def _band(entry: Any, place: int, metric: str) -> Band:
    called = f"`rubric[{place}]` of {metric}"
    if isinstance(entry, Band):
        entry = {"range": entry.range, "outcome": entry.outcome}
    if not isinstance(entry, Mapping):
        raise ConfigurationError(f"{called} is a map, not {show_value(entry)}. {EXAMPLE}")
    for key in entry:
        if key not in KEYS:
            raise ConfigurationError(f"{called} has no key {show_value(key)}. {did_you_mean(str(key), KEYS)}")
    ends = entry.get("range")
    if not isinstance(ends, (list, tuple)) or len(ends) != 2 or not all(type(end) is int for end in ends):
        raise ConfigurationError(f"`range` of {called} is two whole numbers, not {show_value(ends)}. {EXAMPLE}")
    if not 0 <= ends[0] <= ends[1] <= HIGHEST:
        wanted = f"two whole numbers from 0 to {HIGHEST}, the lower one first"
        raise ConfigurationError(f"`range` of {called} is {wanted}, not {show_value(ends)}.")
    outcome = entry.get("outcome")
    if not isinstance(outcome, str) or not outcome.strip():
        raise ConfigurationError(f"`outcome` of {called} is text that is not blank, not {show_value(outcome)}.")
    return Band((ends[0], ends[1]), check_unicode(outcome, called=f"`outcome` of {called}").strip())
