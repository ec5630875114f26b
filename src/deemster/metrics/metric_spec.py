"""Parses and writes the spec of a metric, such as `ndcg(gain=exponential)@10`."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from deemster.errors import ConfigurationError

if TYPE_CHECKING:
    from deemster.metrics.builtin_metric import BuiltinScorer

_HEAD = re.compile(r"[A-Za-z0-9][\w.:\-]*")
_KEY = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*")
_WORD = re.compile(r"[A-Za-z_][\w\-]*")
_TAIL = re.compile(r"@(.*)", re.DOTALL)
_JSON_WORDS = frozenset({"true", "false", "null", "NaN", "Infinity"})


class Spec(NamedTuple):
    """A spec taken apart: a name and the options that follow it."""

    name: str
    options: dict[str, Any]


def format_spec(metric: BuiltinScorer) -> str:
    """The canonical spec of a metric: short name, options that differ from their defaults by key, `@k`.

    >>> from deemster.metrics.text_match import ExactMatch
    >>> format_spec(ExactMatch(threshold=0.7, name="strict"))
    'exact-match(name=strict,threshold=0.7)'
    """
    defaults = metric.defaults()
    given = {}
    for field in _fields(type(metric)):
        value = getattr(metric, field.name)
        default = defaults.get(field.name, _default(field))
        if field.name != "k" and value != default:
            given[field.name] = value
    k = getattr(metric, "k", None)
    return f"{metric.short or metric.alias}{format_options(given)}{'' if k is None else f'@{k}'}"


def format_options(options: Mapping[str, Any]) -> str:
    """Options as a spec has them, by key; nothing where there are none.

    >>> format_options({"threshold": 0.7, "name": "strict"})
    '(name=strict,threshold=0.7)'
    """
    return f"({','.join(f'{key}={_written(options[key])}' for key in sorted(options))})" if options else ""


def parse_spec(text: str) -> Spec:
    """Take a spec apart; the options come with it, `@k` as the option `k`.

    Raises:
        ConfigurationError: The text is no spec.

    >>> parse_spec("ndcg(gain=exponential)@10")
    Spec(name='ndcg', options={'gain': 'exponential', 'k': 10})
    """
    head = _HEAD.match(text)
    if head is None:
        raise _unreadable(text, "a spec begins with a metric's name")
    options: dict[str, Any] = {}
    at = head.end()
    if text[at : at + 1] == "(":
        at = _read_options(text, at + 1, options)
    tail = _TAIL.fullmatch(text, at)
    if tail is not None:
        if not re.fullmatch(r"[0-9]{1,18}", tail[1]) or int(tail[1]) < 1:
            raise _unreadable(text, "what follows `@` is a whole number of at least 1")
        if "k" in options:
            raise _unreadable(text, "`k` is given twice")
        options["k"] = int(tail[1])
    elif at != len(text):
        raise _unreadable(text, f"nothing was expected after `{text[:at]}`")
    return Spec(head[0], options)


def _read_options(text: str, at: int, options: dict[str, Any]) -> int:
    while True:
        key = _KEY.match(text, at)
        if key is None:
            raise _unreadable(text, "options are written `key=value`, separated by commas")
        if key[1] in options:
            raise _unreadable(text, f"`{key[1]}` is given twice")
        options[key[1]], at = _read_value(text, key.end())
        end = text[at : at + 1]
        at += 1
        if end == ")":
            return at
        if end != ",":
            raise _unreadable(text, "options end with `)`")


def _read_value(text: str, at: int) -> tuple[Any, int]:
    word = _WORD.match(text, at)
    if word is not None and word[0] not in _JSON_WORDS:
        return word[0], word.end()
    try:
        value, end = json.JSONDecoder(parse_constant=_no_constant).raw_decode(text, at)
    except ValueError:
        raise _unreadable(text, "a value is a bare word or JSON") from None
    return value, end


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _written(value: Any) -> str:
    if isinstance(value, str) and _WORD.fullmatch(value) and value not in _JSON_WORDS:
        return value
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@functools.cache
def _fields(kind: type[BuiltinScorer]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a metric's class; msgspec evaluates its annotations at each call."""
    return msgspec.structs.fields(kind)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _unreadable(text: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"`{text}` is no metric spec: {why}.")
