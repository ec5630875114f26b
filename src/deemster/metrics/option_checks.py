"""Checks the values of options of metrics and judges by their declarations, before anything runs."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from deemster.errors import ConfigurationError, did_you_mean, list_names, show_value

# The largest number after `@` in a spec. It fits into an integer of 64 bits.
LARGEST = 10**18 - 1
# How types are called; None is said by the default, and `where` is the same of every metric.
_SIMPLE_TYPES: dict[Any, tuple[str, ...]] = {
    str: ("text",),
    int: ("whole number",),
    float: ("number",),
    bool: ("true or false",),
    NoneType: (),
}
_PLURALS = {str: "texts", float: "numbers"}
Amount: TypeAlias = Annotated[float, Meta(ge=0)]
PositiveNumber: TypeAlias = Annotated[float, Meta(gt=0)]
PositiveInteger: TypeAlias = Annotated[int, Meta(ge=1)]


class _Declared(NamedTuple):
    """An option that its declaration checks.

    Attributes:
        name: Its name.
        kind: A boolean, a `Literal` of words, or a number with its limits.
        may_lack: Whether it may be None.
    """

    name: str
    kind: Any
    may_lack: bool


def check_options(metric: msgspec.Struct, *, called: str) -> None:
    """Refuse options that are not as they are declared. An amount is kept as a float.

    Booleans, words (`Literal`) and numbers with limits (`Annotated`) are checked; a metric looks at others itself.

    Raises:
        ConfigurationError: An option is something else.
    """
    for option in _declared_options(type(metric)):
        value = getattr(metric, option.name)
        if value is None and option.may_lack:
            continue
        if option.kind is bool:
            _check_flag(value, option=option.name, metric=called)
        elif get_origin(option.kind) is Literal:
            check_choice(value, get_args(option.kind), option=option.name, metric=called)
        else:
            number, limits = get_args(option.kind)
            if number is int:
                check_whole_number(value, least=limits.ge, most=limits.le, option=option.name, metric=called)
            elif limits.gt is not None:
                _check_positive(value, option=option.name, metric=called)
            else:
                amount = _check_amount(value, option=option.name, metric=called)
                msgspec.structs.force_setattr(metric, option.name, amount)


@cache
def _declared_options(kind: type[msgspec.Struct]) -> Sequence[_Declared]:
    return tuple(_read_declarations(kind))


def _read_declarations(kind: type[msgspec.Struct]) -> Iterator[_Declared]:
    for field in msgspec.structs.fields(kind):
        known = get_args(field.type) if get_origin(field.type) in (Union, UnionType) else (field.type,)
        kinds = [each for each in known if each is not NoneType]
        if len(kinds) == 1 and (kinds[0] is bool or get_origin(kinds[0]) in (Annotated, Literal)):
            yield _Declared(field.name, kinds[0], NoneType in known)


def check_choice(value: Any, known: Sequence[str], *, option: str, metric: str) -> None:
    """Refuse a value that is none of the known words.

    Raises:
        ConfigurationError: It is another word, or no word.
    """
    if isinstance(value, str):
        if value in known:
            return
        raise ConfigurationError(f"`{option}` of {metric} knows no `{value}`. {did_you_mean(value, known)}")
    raise ConfigurationError(f"`{option}` of {metric} is one of {list_names(known)}, not {show_value(value)}.")


def describe_type(kind: Any) -> str:
    """The type of an option in words; that it may be left out is said by its default, and limits are left out.

    >>> describe_type(Literal["all", "fraction"]), describe_type(PositiveInteger | None)
    ('`all` or `fraction`', 'whole number')
    """
    return " or ".join(dict.fromkeys(_type_words(kind)))


def _type_words(kind: Any) -> Iterator[str]:
    """What each branch of a type is called."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        *words, last = (f"`{word}`" for word in parts)
        yield f"{', '.join(words)} or {last}" if words else last
    elif origin is Annotated:
        yield from _type_words(parts[0])
    elif origin in (Union, UnionType):
        for part in parts:
            yield from _type_words(part)
    elif origin is None:
        yield from _SIMPLE_TYPES.get(kind, (kind.__name__.lower(),))
    else:
        inner = _PLURALS.get(parts[-1])
        name = "map" if issubclass(origin, Mapping) else "list"
        yield f"{name} of {inner}" if inner else name


def _check_flag(value: Any, *, option: str, metric: str) -> None:
    if not isinstance(value, bool):
        raise ConfigurationError(f"`{option}` of {metric} is true or false, not {show_value(value)}.")


def check_whole_number(value: Any, *, least: int, most: int | None = None, option: str, metric: str) -> None:
    """Refuse a value that is no whole number within the limits.

    Raises:
        ConfigurationError: It is smaller, larger, or no whole number.
    """
    if type(value) is int and least <= value <= (LARGEST if most is None else most):
        return
    limits = f"of at least {least}" if most is None else f"from {least} to {most}"
    if most is None and type(value) is int and value > LARGEST:
        limits += f" and at most {LARGEST}"
    raise ConfigurationError(f"`{option}` of {metric} is a whole number {limits}, not {show_value(value)}.")


def _check_positive(value: Any, *, option: str, metric: str) -> None:
    if type(value) not in (int, float) or not 0 < value <= sys.float_info.max:
        raise ConfigurationError(f"`{option}` of {metric} is a number above 0, not {show_value(value)}.")


def _check_amount(value: Any, *, option: str, metric: str) -> float:
    if not is_amount(value):
        raise ConfigurationError(f"`{option}` of {metric} is a number of at least 0, not {show_value(value)}.")
    return float(value)


def is_amount(value: Any) -> bool:
    """Whether a value is a number of at least 0 that a float can hold.

    >>> is_amount(3), is_amount(-1), is_amount(True), is_amount(10**400)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return value >= 0 and math.isfinite(value)
    except OverflowError:
        return False
