"""Whether a judge that chooses among shuffled options prefers a place in the list to an option."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from deemster.agreement.estimate import Estimate, estimate_with
from deemster.stats.bounded_mean import bounded_units
from deemster.stats.means import unit_sums


class ShownOption(NamedTuple):
    """Where the option that a judge chose stood in the list that it saw.

    Attributes:
        place: Its place, from 1.
        options: How many options the list has.
        text: The text that was judged. Lists are shuffled by it, so equal texts have equal lists.
    """

    place: int
    options: int
    text: str


class OptionOrderBias(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a judge that chooses among options prefers a place in the list to an option.

    Options are shuffled for every output. So a judge that does not look at places chooses each of them equally often.

    Attributes:
        n: Votes for an option of a shuffled list.
        mean_place: The mean place of the chosen option: 0 for the first of the list, 1 for the last; 0.5 without bias.
        first: Votes for the first option of the list.
        last: Votes for the last one.
        expected: How many votes the first one gets without bias, and so does the last.
        p_value: Against a mean place of 0.5, of its interval: the smallest level at which it leaves out 0.5.
    """

    n: int
    mean_place: Estimate
    first: int
    last: int
    expected: float
    p_value: float | None


def option_order_bias(shown: Sequence[ShownOption], *, confidence: float = 0.95) -> OptionOrderBias | None:
    """Whether a judge that chooses among shuffled options prefers a place to an option.

    The order of a list is as likely as its reverse. So the place of the chosen option, counted from the middle of the
    list, is 0 on average where the judge does not look at places. The votes on equal texts are one unit.

    Args:
        shown: Where each chosen option stood.
        confidence: The level of the interval.

    Returns:
        The bias; None without a vote among two options or more.
    """
    lists = [one for one in shown if one.options > 1]
    places = np.array([(one.place - 1) / (one.options - 1) for one in lists])
    _, units = np.unique([one.text for one in lists], return_inverse=True)
    found = bounded_units(*unit_sums(places, units))
    if found is None:
        return None
    return OptionOrderBias(
        n=len(lists),
        mean_place=estimate_with(found.mean, found.interval(confidence), len(lists)),
        first=sum(one.place == 1 for one in lists),
        last=sum(one.place == one.options for one in lists),
        expected=math.fsum(1 / one.options for one in lists),
        p_value=found.two_sided_p(0.5),
    )
