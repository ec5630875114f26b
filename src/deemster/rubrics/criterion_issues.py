"""What can be wrong with an option, a check or a criterion, before it is one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

from deemster.errors import did_you_mean, listing, nearest
from deemster.formats.json_values import SURROGATE, Path, kind_of, pointer, thawed, value_issues
from deemster.rubrics.verdicts import NOT_APPLICABLE, RULES, SCALES, VERDICTS, Kind, folded

OPTION_KEYS = ("label", "value", "na")
CHECK_KEYS = ("metric", "args", "threshold")
CRITERION_KEYS = (
    "name",
    "weight",
    "requirement",
    "scale_type",
    "options",
    "order",
    "aggregation",
    "fatal",
    "check",
)
_DEEPEST = 32
_RESERVED = frozenset(map(folded, VERDICTS))

Issues = Iterator[tuple[Path, str]]


def shown(value: Any) -> str:
    """What was found, for the end of a message."""
    if isinstance(value, str):
        return f"`{value[:79]}…`" if len(value) > 80 else f"`{value}`"
    if isinstance(value, Real) and not isinstance(value, bool):
        return repr(value)[:80]
    return kind_of(value) if value is not True and value is not False else str(value).lower()


def located(path: Sequence[str | int], message: str) -> str:
    """A message with the path of what it is about: in place of the bare key it begins with, else before it.

    >>> located(("criteria", 2, "weight"), "`weight` is a finite number, not `x`.")
    '`criteria[2].weight` is a finite number, not `x`.'
    >>> located(("criteria", 2), "`requirement` is missing.")
    'criteria[2]: `requirement` is missing.'
    """
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
    if path and message.startswith(f"`{path[-1]}` "):
        return f"`{steps}`{message.removeprefix(f'`{path[-1]}`')}"
    return f"{steps}: {message}" if steps else message


def is_number(value: Any) -> bool:
    """Whether a value is a number that a float can hold; booleans are none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def label_hint(word: Any, labels: Iterable[str]) -> str:
    """The label that a wrong one most likely meant, as the end of a message; nothing where none is near.

    >>> label_hint("MTE", ["MET", "UNMET"])
    ' Did you mean `MET`?'
    """
    known = {folded(label): label for label in labels}
    guess = nearest(folded(word), known) if isinstance(word, str) else None
    return f" Did you mean `{known[guess]}`?" if guess else ""


def text_issues(value: Any, key: str, *, blank: bool = False) -> Issues:
    """What is wrong with a text.

    Args:
        value: What was given.
        key: What it is called.
        blank: Whether it may be blank.
    """
    if not isinstance(value, str):
        quoted = f' Write it in quotes: "{value}".' if is_number(value) else ""
        yield (key,), f"`{key}` is text, not {shown(value)}.{quoted}"
    elif SURROGATE.search(value):
        yield (key,), f"`{key}` holds a lone surrogate, which is no character."
    elif not blank and not value.strip():
        yield (key,), f"`{key}` is blank."


def key_issues(fields: Mapping[Any, Any], known: Sequence[str], noun: str, *, need: Iterable[str] = ()) -> Issues:
    """The unknown keys of a map, each with the nearest known one, and the keys it lacks.

    Args:
        fields: The map.
        known: The keys it may have.
        noun: What the map is.
        need: The keys it must have.
    """
    for key in fields:
        if key not in known:
            step = key if isinstance(key, str) else str(key)
            yield (step,), f"`{key}` is no key of {noun}. {did_you_mean(step, known)}"
    for key in need:
        if key not in fields:
            yield (), f"`{key}` is missing: {noun} needs it."


def option_issues(fields: Any) -> Issues:
    """What is wrong with an option of a criterion, by its raw fields."""
    if not isinstance(fields, Mapping):
        yield (), f"An option is a map with `label` and `value`, not {shown(fields)}."
        return
    yield from key_issues(fields, OPTION_KEYS, "an option", need=("label",))
    if "label" in fields:
        yield from text_issues(fields["label"], "label")
    na = fields.get("na", False)
    if not isinstance(na, bool):
        yield ("na",), f"`na` is true or false, not {shown(na)}."
    value = fields.get("value")
    if value is None:
        if na is False:
            yield ("value",), "`value` is missing: an option that is not `na` has a value from 0 to 1."
    elif not is_number(value) or not 0 <= value <= 1:
        yield ("value",), f"`value` is a number from 0 to 1, not {shown(value)}."


def check_issues(fields: Any) -> Issues:
    """What is wrong with the check of a criterion, by its raw fields."""
    if not isinstance(fields, Mapping):
        yield (), f"`check` is a map with `metric`, `args` and `threshold`, not {shown(fields)}."
        return
    yield from key_issues(fields, CHECK_KEYS, "a check", need=("metric",))
    if "metric" in fields:
        yield from text_issues(fields["metric"], "metric")
    args = fields.get("args", {})
    if not isinstance(args, Mapping):
        yield ("args",), f"`args` is a map of the metric's arguments, not {shown(args)}."
    elif _is_deep(args, _DEEPEST):
        yield ("args",), f"`args` is nested deeper than {_DEEPEST} levels."
    else:
        for path, message in value_issues(thawed(args), ("args",)):
            yield path, f"`{path[-1]}`{message.removeprefix(pointer(path))}"
    threshold = fields.get("threshold", 1.0)
    if not is_number(threshold) or not 0 <= threshold <= 1:
        yield ("threshold",), f"`threshold` is a number from 0 to 1, not {shown(threshold)}."


def _is_deep(value: Any, room: int) -> bool:
    if isinstance(value, Mapping):
        return not room or any(_is_deep(entry, room - 1) for entry in value.values())
    return isinstance(value, (list, tuple)) and (not room or any(_is_deep(entry, room - 1) for entry in value))


def criterion_issues(fields: Any) -> Issues:
    """What is wrong with a criterion, by its raw fields; null is the same as absent where a field may be absent."""
    if not isinstance(fields, Mapping):
        yield (), f"A criterion is a map with `requirement`, not {shown(fields)}."
        return
    yield from key_issues(fields, CRITERION_KEYS, "a criterion", need=("requirement",))
    if "requirement" in fields:
        yield from text_issues(fields["requirement"], "requirement")
    weight = fields.get("weight", 10.0)
    if not is_number(weight):
        yield ("weight",), f"`weight` is a finite number, not {shown(weight)}."
    if fields.get("name") is not None:
        yield from text_issues(fields["name"], "name")
    if not isinstance(fields.get("fatal", False), bool):
        yield ("fatal",), f"`fatal` is true or false, not {shown(fields['fatal'])}."
    kind = _kind(fields)
    yield from _scale_issues(fields, kind)
    if fields.get("options") is not None:
        yield from _options_issues(fields, kind)
    if fields.get("aggregation") is not None and kind is not None:
        yield from rule_issues(fields["aggregation"], kind)
    if fields.get("check") is not None:
        for path, message in check_issues(fields["check"]):
            yield ("check", *path), message
        if kind == "nominal":
            yield (
                ("check",),
                "A nominal criterion takes no `check`: a score from 0 to 1 has no place among its options.",
            )


def _kind(fields: Mapping[str, Any]) -> Kind | None:
    if fields.get("options") is None:
        return "binary"
    scale = fields.get("scale_type")
    if scale is None or scale == "ordinal":
        return "ordinal"
    return "nominal" if scale == "nominal" else None


def _scale_issues(fields: Mapping[str, Any], kind: Kind | None) -> Issues:
    scale = fields.get("scale_type")
    if scale is not None:
        if kind == "binary":
            yield ("scale_type",), "`scale_type` stands only beside `options`; this criterion is binary."
        elif scale not in SCALES:
            hint = label_hint(scale, SCALES)
            yield ("scale_type",), f"`scale_type` is `ordinal` or `nominal`, not {shown(scale)}.{hint}"
    if fields.get("order") is not None and kind in {"binary", "nominal"}:
        yield ("order",), f"`order` stands only on an ordinal criterion; this one is {kind}."


def rule_issues(rule: Any, kind: Kind, key: str = "aggregation") -> Issues:
    """What is wrong with a rule of aggregation.

    Args:
        rule: What was given.
        kind: The kind of criterion it is for.
        key: What it is called.
    """
    if isinstance(rule, str) and rule in RULES[kind]:
        return
    others = [name for name, rules in RULES.items() if rule in rules]
    if others:
        message = f"`{rule}` is a rule of {' and '.join(others)} criteria, not of {kind} ones."
        yield (key,), f"{message} Known: {listing(RULES[kind])}."
    else:
        guess = did_you_mean(rule, RULES[kind]) if isinstance(rule, str) else f"Known: {listing(RULES[kind])}."
        yield (key,), f"`{key}` names no rule of {kind} criteria: {shown(rule)}. {guess}"


def _options_issues(fields: Mapping[str, Any], kind: Kind | None) -> Issues:
    options = fields["options"]
    if not isinstance(options, (list, tuple)):
        yield ("options",), f"`options` is a list of maps with `label` and `value`, not {shown(options)}."
        return
    issues = [
        (("options", index, *path), text) for index, one in enumerate(options) for path, text in option_issues(one)
    ]
    yield from issues
    labels = {index: one["label"] for index, one in enumerate(options) if _has_label(one)}
    scored = [index for index, one in enumerate(options) if not (isinstance(one, Mapping) and one.get("na") is True)]
    yield from _label_issues(labels, scored)
    if len(scored) < 2:
        yield ("options",), f"A choice has at least two options that are not `na`, not {len(scored)}."
    if kind != "ordinal":
        return
    if fields.get("order") is not None:
        yield from _order_issues(fields["order"], [labels[index] for index in scored if index in labels])
    elif not issues and not _is_monotone([options[index]["value"] for index in scored]):
        message = "The values of an ordinal criterion rise or fall from option to option; "
        yield ("options",), message + "otherwise `order` lists the labels, lowest first, or `scale_type` is `nominal`."


def _has_label(option: Any) -> bool:
    return isinstance(option, Mapping) and isinstance(option.get("label"), str) and bool(option["label"].strip())


def _label_issues(labels: Mapping[int, str], scored: Sequence[int]) -> Issues:
    seen: dict[str, int] = {}
    for index, label in labels.items():
        word = folded(label)
        first = seen.setdefault(word, index)
        if first != index:
            yield ("options", index, "label"), f"The label {shown(label)} is already that of options[{first}]."
        if index not in scored:
            continue
        if word in _RESERVED:
            message = f"{shown(label)} is a verdict of binary criteria and no label of an option with a value."
            yield ("options", index, "label"), message
        elif word == folded(NOT_APPLICABLE):
            yield ("options", index, "label"), f"{shown(label)} means an abstention: give this option `na: true`."


def _order_issues(order: Any, labels: Sequence[str]) -> Issues:
    if not isinstance(order, (list, tuple)):
        yield ("order",), f"`order` is a list of labels, lowest first, not {shown(order)}."
        return
    known = {folded(label): label for label in labels}
    named: set[str] = set()
    for index, label in enumerate(order):
        word = folded(label) if isinstance(label, str) else None
        if word is None or word not in known:
            hint = label_hint(label, labels) or f" Known: {listing(labels)}."
            yield ("order", index), f"{shown(label)} is no label of an option with a value.{hint}"
        elif word in named:
            yield ("order", index), f"`order` names {shown(label)} twice."
        else:
            named.add(word)
    left = [label for word, label in known.items() if word not in named]
    if left:
        yield ("order",), f"`order` leaves out {listing(left)}."


def _is_monotone(values: Sequence[float]) -> bool:
    steps = list(pairwise(values))
    return all(low < high for low, high in steps) or all(low > high for low, high in steps)
