"""Encodes labels and clusters as whole numbers; None and NaN are missing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deemster.errors import list_names, visible

Codes = NDArray[np.int64]
Labels = tuple[Hashable, ...]
MISSING = -1
_NUMBERS = frozenset({int, float, bool, type(None)})
# Beyond this, two whole numbers can become one float and so one label.
_EXACT = 2.0**53
# Whole numbers within a range this wide are counted in place of being sorted.
_NARROW = 4096


def encode(
    *sides: Sequence[Hashable] | NDArray[Any], labels: Iterable[Hashable] | None = None
) -> tuple[list[Codes], Labels]:
    """Each side's labels as positions in one common list of labels, and that list.

    Without ``labels`` the list is what occurs, sorted (in order of appearance where labels cannot be compared).
    Missing is -1.

    Args:
        sides: Sequences of labels.
        labels: The full scale, in order.

    Raises:
        ValueError: A label is not hashable, is none of ``labels``, or stands there twice.

    >>> encode(["b", "a", None], ["a", "a", "b"])
    ([array([ 1,  0, -1]), array([0, 0, 1])], ('a', 'b'))
    """
    sides = tuple(map(_unbox_side, sides))
    numeric = [_numbers(side) for side in sides]
    if all(side is not None for side in numeric):
        return _encode_numbers([side for side in numeric if side is not None], labels)
    plain = [side.tolist() if isinstance(side, np.ndarray) else list(side) for side in sides]
    seen: dict[Hashable, None] = {}
    try:
        for side in plain:
            seen.update(dict.fromkeys(side))
    except TypeError:
        raise ValueError("A label is a word or a number, nothing that can change, such as a list.") from None
    scale = _scale([label for label in seen if not is_missing(label)], labels)
    places: dict[Any, int] = {label: place for place, label in enumerate(scale)}
    places.update((label, MISSING) for label in seen if is_missing(label))
    return [np.array([places[label] for label in side], dtype=np.int64) for side in plain], scale


def pair_table(
    a: Sequence[Hashable] | NDArray[Any],
    b: Sequence[Hashable] | NDArray[Any],
    *,
    labels: Iterable[Hashable] | None = None,
) -> tuple[NDArray[np.float64], Labels, int]:
    """The table of two raters' pairs (rows the first), its labels, and how many pairs miss a side.

    Raises:
        ValueError: The sequences differ in length, or a label is none of ``labels``.

    >>> pair_table([1, 0, 1], [1, 1, None])
    (array([[0., 1.],
           [0., 1.]]), (0, 1), 1)
    """
    if len(a) != len(b):
        raise ValueError(f"The two raters are paired, but gave {len(a)} and {len(b)} labels.")
    (first, second), scale = encode(a, b, labels=labels)
    both = (first >= 0) & (second >= 0)
    size = len(scale)
    cells = np.bincount(first[both] * size + second[both], minlength=size * size)
    return cells.reshape(size, size).astype(np.float64), scale, int(len(both) - both.sum())


def cluster_codes(clusters: Sequence[Hashable] | NDArray[np.generic], n: int) -> tuple[NDArray[np.int64], int]:
    """Clusters as numbers in order of first appearance, and how many there are.

    Raises:
        ValueError: There is not exactly one cluster for each of the n values, or one is missing.

    >>> cluster_codes(["b", "a", "b"], 3)
    (array([0, 1, 0]), 2)
    """
    if len(clusters) != n:
        raise ValueError(f"Each value has one cluster; there are {n} values and {len(clusters)} clusters.")
    names = clusters.tolist() if isinstance(clusters, np.ndarray) else clusters
    if any(map(is_missing, names)):
        raise ValueError("Each value has one cluster; None and NaN are none. Give single values clusters of their own.")
    places: dict[Hashable, int] = {}
    codes = np.fromiter((places.setdefault(name, len(places)) for name in names), dtype=np.int64, count=n)
    return codes, len(places)


def _numbers(side: Sequence[Hashable] | NDArray[Any]) -> NDArray[Any] | None:
    """The side as an array of numbers where it is one or can be one without a change of meaning."""
    if isinstance(side, np.ndarray):
        return side if side.dtype.kind in "biuf" and side.ndim == 1 else None
    # An array of mixed types would turn numbers into text.
    kinds = set(map(type, side))
    # Whole numbers beside None are not converted: as floats they would print as other labels.
    if not kinds <= _NUMBERS or (type(None) in kinds and float not in kinds):
        return None
    if kinds <= {int, bool}:
        array = np.asarray(side) if len(side) else np.zeros(0, dtype=np.int64)
        return array if array.dtype.kind in "biu" else None
    try:
        array = np.asarray(side, dtype=np.float64)
    except OverflowError:
        return None
    return None if int in kinds and (np.abs(array) > _EXACT).any() else array


def _encode_numbers(sides: list[NDArray[Any]], labels: Iterable[Hashable] | None) -> tuple[list[Codes], Labels]:
    every = np.concatenate(sides) if sides else np.zeros(0)
    present = ~np.isnan(every) if every.dtype.kind == "f" else np.ones(len(every), dtype=bool)
    distinct, places = _find_distinct(every[present])
    scale = _scale(distinct.tolist(), labels)
    index: Mapping[Any, int] = {label: place for place, label in enumerate(scale)}
    where = np.array([index[label] for label in distinct.tolist()], dtype=np.int64)
    codes = np.full(len(every), MISSING, dtype=np.int64)
    codes[present] = where[places]
    return np.split(codes, np.cumsum([len(side) for side in sides])[:-1]) if sides else [], scale


def _find_distinct(values: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """The distinct values in order, and the place of each value among them."""
    if len(values) and values.dtype.kind != "b":
        lowest, highest = values.min().item(), values.max().item()
        if lowest > -_EXACT and highest < _EXACT and highest - lowest < _NARROW:
            # Widened first, since the difference of two bytes may not fit a byte.
            wide = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
            steps = (wide - lowest).astype(np.int64)
            if values.dtype.kind != "f" or (steps == wide - lowest).all():
                present = np.bincount(steps) > 0
                return lowest + np.flatnonzero(present), (np.cumsum(present) - 1)[steps]
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, places.astype(np.int64)


def _scale(seen: list[Any], labels: Iterable[Hashable] | None) -> Labels:
    if labels is None:
        try:
            return tuple(sorted(seen))
        except TypeError:
            return tuple(seen)
    scale = tuple(labels.tolist() if isinstance(labels, np.ndarray) else labels)
    known = set(scale)
    if len(known) < len(scale):
        raise ValueError("`labels` names a label twice.")
    if any(map(is_missing, scale)):
        raise ValueError("`labels` holds None or NaN, which mean that a label is missing.")
    unknown = [label for label in seen if label not in known]
    if unknown:
        named = list_names(visible(str(label), limit=60) for label in unknown)
        raise ValueError(
            f"{named} occurs but is none of `labels`: {list_names(visible(str(k), limit=60) for k in scale)}."
        )
    return scale


def is_missing(label: Any) -> bool:
    """Whether something stands for a label that is not there: None, NaN of any type, or pandas' NA.

    >>> is_missing(None), is_missing(np.float32("nan")), is_missing("nan")
    (True, True, False)
    """
    try:
        return label is None or not label == label  # noqa: PLR0124, SIM201 - only what is missing differs from itself
    except TypeError:
        # Comparing pandas' NA with itself raises.
        return True


def unbox(label: Any) -> Any:
    """A label as Python has it, where numpy holds it as a scalar of its own.

    >>> unbox(np.int64(3)), unbox("a")
    (3, 'a')
    """
    return label.item() if isinstance(label, np.generic) else label


def _unbox_side(side: Sequence[Hashable] | NDArray[Any]) -> Sequence[Hashable] | NDArray[Any]:
    if isinstance(side, np.ndarray) or not any(issubclass(kind, np.generic) for kind in set(map(type, side))):
        return side
    return list(map(unbox, side))
