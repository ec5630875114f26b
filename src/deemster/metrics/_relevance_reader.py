"""Reads rankings from outputs, and relevant ids with their gains from samples."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, count
from typing import Annotated, Any, TypeAlias

import msgspec

from deemster.errors import visible
from deemster.formats.json_values import name_kind
from deemster.metrics.builtin_metric import UnscoredError, invalid_sample, no_expected, output_text, unscorable_sample
from deemster.metrics.option_checks import LARGEST
from deemster.records import Output, Sample

DEFAULT_K = 5
_NUMBERS = frozenset({int, float})
_LARGEST = sys.float_info.max
_LONGEST = 4096
# Up to this many ids, a search one by one is faster than a map.
_FEW = 6


_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Gain: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=_LARGEST)]


class _Plain(msgspec.Struct, frozen=True, gc=False):
    """Gains as most samples give them; msgspec checks them at half the cost of a loop."""

    gains: list[Annotated[dict[_Name, _Gain], msgspec.Meta(min_length=1)]]


def retrieved_entries(output: Output) -> Sequence[Any]:
    """What was retrieved, best first, as the output holds it: `retrieved`, else the text as JSON.

    Raises:
        UnscoredError: There is no list.
    """
    retrieved = output.retrieved
    if retrieved is None:
        retrieved = _parsed(output_text(output))
        if isinstance(retrieved, dict) and "retrieved" in retrieved:
            retrieved = retrieved["retrieved"]
    if isinstance(retrieved, (list, tuple)):
        return retrieved
    raise UnscoredError(
        "bad_output", f"What was retrieved is a list of ids or of maps with an `id`, not {name_kind(retrieved)}."
    )


def entry_ids(entries: Sequence[Any]) -> Sequence[str]:
    """The ids of a ranking, in its order, repeated ones too.

    Raises:
        UnscoredError: An entry has no id.

    >>> entry_ids(["b", "a", "b", {"id": 7}])
    ['b', 'a', 'b', '7']
    """
    try:
        # The cheapest check that every entry is text. It also brings the texts into the processor's cache.
        "".join(entries)
    except TypeError:
        return [entry_id(entry, position) for position, entry in enumerate(entries)]
    if not all(entries):
        entry_id("", entries.index(""))
    return entries


def find_ranks(
    relevant: Mapping[str, float], ids: Sequence[str], *, depth: int, first: bool = False
) -> tuple[Mapping[str, int], int]:
    """Where relevant ids stand among the distinct ids of a ranking; a repeated id keeps its best rank.

    Args:
        relevant: The relevant ids.
        ids: The ranking.
        depth: How many distinct ids to look at.
        first: Whether to look for one relevant id further down where these hold none.

    Returns:
        The ranks from 1 of the relevant ids that were found, and how many distinct ids were looked at.

    >>> find_ranks({"c": 1, "d": 1}, ["b", "a", "b", "c", "d"], depth=3)
    ({'c': 3}, 3)
    >>> find_ranks({"c": 1, "d": 1}, ["a", "b", "c", "d"], depth=1, first=True)
    ({'c': 3}, 3)
    """
    place = next(compress(count(), map(relevant.__contains__, ids)), -1) if first else -1
    if place >= depth:
        if len(set(ids[:place])) == place:
            return {ids[place]: place + 1}, place + 1
    else:
        top = ids[:depth]
        distinct = set(top)
        if len(distinct) == len(top):
            found = relevant.keys() & distinct
            if len(found) > _FEW:
                return dict(zip(top, count(1))), len(top)
            return {each: top.index(each) + 1 for each in found}, len(top)
    return find_ranks(relevant, list(dict.fromkeys(ids)), depth=depth, first=first)


def entry_id(entry: Any, position: int) -> str:
    """The id of one entry of a ranking.

    Raises:
        UnscoredError: It has none, or one that is neither non-empty text nor a whole number.
    """
    value = entry
    if isinstance(entry, Mapping):
        if "id" not in entry:
            raise UnscoredError("bad_output", f"Entry {position} of what was retrieved is a map without an `id`.")
        value = entry["id"]
    found = _id(value)
    if found is None:
        raise UnscoredError("bad_output", f"Entry {position} of what was retrieved has no id: {_not_an_id(value)}.")
    return found


def simple_relevance(samples: Sequence[Sample]) -> Sequence[Mapping[str, float]] | None:
    """The relevant ids of samples with their gains, where all of them give a map of ids to gains above 0; or None."""
    try:
        return msgspec.convert({"gains": [sample.metadata.get("relevant") for sample in samples]}, _Plain).gains
    except msgspec.ValidationError:
        return None


def read_relevance(sample: Sample) -> Mapping[str, float]:
    """The relevant ids of a sample with their gains, all above 0: `metadata.relevant`, else `expected_output`.

    Raises:
        UnscoredError: There are none, or they are no list of ids and no map of ids to gains.
    """
    given = sample.metadata.get("relevant")
    place = "metadata.relevant"
    if given is None:
        given = sample.expected_output
        place = "expected_output"
        if given is None:
            raise no_expected()
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except (msgspec.DecodeError, RecursionError):
            lacking = "" if place == "metadata.relevant" else "The sample has no `metadata.relevant`, and its "
            wanted = "a list of ids or a map of ids to gains"
            raise unscorable_sample(f"{lacking}`{place}` is text that is not JSON; {wanted} is expected.") from None
    if isinstance(given, Mapping):
        gains = _gains(given, place)
    elif isinstance(given, (list, tuple)):
        gains = dict.fromkeys(_ids(given, place), 1)
    else:
        raise unscorable_sample(
            f"`{place}` is a list of relevant ids or a map of ids to gains, not {name_kind(given)}."
        )
    if not gains:
        raise unscorable_sample(f"`{place}` names nothing relevant.")
    return gains


def ranking_depth(sample: Sample) -> int:
    """How deep to look where the metric does not say: `metadata.k`, else 5.

    Raises:
        UnscoredError: `metadata.k` is no whole number of at least 1.
    """
    k = sample.metadata.get("k", DEFAULT_K)
    if type(k) is not int or not 1 <= k <= LARGEST:
        most = f" and at most {LARGEST}" if type(k) is int and k > 0 else ""
        raise invalid_sample(f"`metadata.k` is a whole number of at least 1{most}, not {_number(k)}.")
    return k


def _gains(given: Mapping[Any, Any], place: str) -> dict[str, float]:
    gains: dict[str, float] = {}
    for key, gain in given.items():
        if type(gain) not in _NUMBERS:
            raise invalid_sample(
                f"The gain of `{_shown(key)}` in `{place}` is a number of at least 0, not {name_kind(gain)}."
            )
        if not 0 <= gain <= _LARGEST:
            raise invalid_sample(
                f"The gain of `{_shown(key)}` in `{place}` is finite and at least 0, not {_number(gain)}."
            )
        name = _ids([key], place)[0]
        if name in gains:
            raise invalid_sample(f"`{place}` gives the id `{_shown(name)}` twice.")
        gains[name] = gain
    return {name: gain for name, gain in gains.items() if gain > 0}


def _ids(given: Iterable[Any], place: str) -> list[str]:
    ids = []
    for value in given:
        found = _id(value)
        if found is None:
            raise unscorable_sample(f"`{place}` holds something that is no id: {_not_an_id(value)}.")
        ids.append(found)
    return ids


def _id(value: Any) -> str | None:
    if isinstance(value, str):
        return value or None
    # Python refuses to write very long numbers in decimal.
    return str(value) if type(value) is int and value.bit_length() <= _LONGEST else None


def _number(value: Any) -> str:
    return (
        repr(value) if type(value) is float or (type(value) is int and value.bit_length() <= 64) else name_kind(value)
    )


def _not_an_id(value: Any) -> str:
    return f"an id is non-empty text or a whole number, not {'empty text' if value == '' else name_kind(value)}"


def _shown(key: Any) -> str:
    return visible(_id(key) or name_kind(key), limit=60)


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise UnscoredError(
            "bad_output", "The output has no `retrieved`, and its text is not JSON (a list, or a map with `retrieved`)."
        ) from None
