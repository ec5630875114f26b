"""JSON values that cannot be changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

_SCALARS = frozenset({str, int, bool, type(None)})


class FrozenDict(dict[str, Any]):
    """A dict that refuses every change; equal to a dict with the same entries."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("This mapping is part of a record and cannot be changed. Copy it with dict(...).")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        return FrozenDict, (dict(self),)


def freeze(value: Any, *, path: str = "details") -> Any:
    """Check that a value is finite JSON and return it with maps and lists made immutable.

    Args:
        value: Maps, lists, tuples, strings, numbers, booleans, None; numpy scalars become numbers. A `FrozenDict` is
            taken as checked.
        path: How messages name the value.

    Raises:
        ValueError: A number is not finite, a key is not a string, a value is not JSON, or it is nested without end.
    """
    try:
        return _frozen(value, path)
    except RecursionError:
        deep = path
    raise ValueError(f"{deep} is nested too deep.")


def _frozen(value: Any, path: str) -> Any:
    kind = type(value)
    if kind in _SCALARS or kind is FrozenDict:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise ValueError(f"{path} holds {value}, which is not a finite number.")
        return value
    if kind is dict and _is_flat(value):
        return FrozenDict(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{path} has the key {key!r}; keys are strings.")  # noqa: TRY004 - impossible value
        return FrozenDict({key: _frozen(entry, f"{path}.{key}") for key, entry in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(entry, f"{path}[{index}]") for index, entry in enumerate(value))
    if isinstance(value, (bool, str, int)):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return _frozen(value.item(), path)
    if isinstance(value, float):
        return _frozen(float(value), path)
    raise ValueError(f"{path} holds a {kind.__name__}, which is not a JSON value.")


def _is_flat(value: dict[Any, Any]) -> bool:
    for key, entry in value.items():
        if type(key) is not str or (
            type(entry) not in _SCALARS and not (type(entry) is float and math.isfinite(entry))
        ):
            return False
    return True
