"""The declared shape of `deemster.rubric.v1`, and the rules across fields that a shape cannot say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

import msgspec
from msgspec import Meta

from deemster.errors import did_you_mean, list_names, nearest
from deemster.formats.json_values import Path, pointer
from deemster.formats.schema_validation import NonBlank, Share
from deemster.rubrics.verdicts import NOT_APPLICABLE, VERDICTS, fold_label

SCHEMA: Final = "deemster.rubric.v1"
Kind = Literal["binary", "ordinal", "nominal", "numeric"]
BinaryRule = Literal["majority", "weighted", "unanimous", "any"]
OrdinalRule = Literal["mean", "median", "weighted_mean", "mode", "min", "max"]
NominalRule = Literal["mode", "weighted_mode", "unanimous"]
NumericRule = Literal["mean", "median", "weighted_mean", "min", "max"]
AnyRule = Literal[BinaryRule, OrdinalRule, NominalRule, NumericRule]
RULES: Final[dict[Kind, tuple[str, ...]]] = {
    "binary": get_args(BinaryRule),
    "ordinal": get_args(OrdinalRule),
    "nominal": get_args(NominalRule),
    "numeric": get_args(NumericRule),
}
_VERDICTS = frozenset(map(fold_label, VERDICTS))
_NOT_APPLICABLE = fold_label(NOT_APPLICABLE)

# What is wrong in a rubric: where in it, and the message.
PathMessages = Iterator[tuple[Path, str]]


class OptionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An option: one answer of a multi-choice criterion."""

    label: NonBlank
    value: Share | None = None
    na: bool = False


class CheckEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A check: a metric that answers a criterion in place of a judge."""

    metric: NonBlank
    args: Mapping[str, Any] = {}
    threshold: Share = 1.0


class CriterionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A criterion: one requirement of a rubric."""

    requirement: NonBlank
    weight: float = 10.0
    name: NonBlank | None = None
    options: Annotated[tuple[OptionEntry, ...], Meta(min_length=2)] | None = None
    scale_type: Literal["ordinal", "nominal", "numeric"] | None = None
    order: tuple[str, ...] | None = None
    aggregation: AnyRule | None = None
    fatal: bool = False
    check: CheckEntry | None = None
    minimum: float | None = None
    maximum: float | None = None
    step: Annotated[float, Meta(gt=0)] | None = None


class SectionHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands beside the criteria of a section."""

    name: NonBlank | None = None
    description: str | None = None


class SectionEntry(SectionHead, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A section: a group of criteria."""

    criteria: Annotated[tuple[CriterionEntry, ...], Meta(min_length=1)]


class RubricHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands beside the criteria of a rubric."""

    name: NonBlank | None = None
    version: NonBlank | None = None
    guidelines: str | None = None


class RubricFile(RubricHead, frozen=True, forbid_unknown_fields=True):
    """A rubric: one of `criteria`, `sections` and `rubric`."""

    one_of: ClassVar = ("criteria", "sections", "rubric")

    criteria: Annotated[tuple[CriterionEntry, ...], Meta(min_length=1)] = ()
    sections: Annotated[tuple[SectionEntry, ...], Meta(min_length=1)] = ()
    rubric: Any = None
    schema_version: Literal["deemster.rubric.v1"] | None = None


def add_rubric_shapes(parts: dict[str, Any]) -> None:
    """Add to the definitions of a schema what a struct cannot say: a rubric may be a list, or stand inside a rubric.

    Args:
        parts: The definitions of a schema that has `RubricFile`; `Rubric` is added to them.
    """
    entry = {"anyOf": [{"$ref": "#/$defs/CriterionEntry"}, {"$ref": "#/$defs/SectionEntry"}]}
    listed = {"type": "array", "items": entry, "minItems": 1}
    parts["Rubric"] = {"anyOf": [{"$ref": "#/$defs/RubricFile"}, listed]}
    parts["RubricFile"]["properties"]["rubric"] = {"$ref": "#/$defs/Rubric"}


def suggest_label(word: Any, labels: Iterable[str]) -> str:
    """The label that a wrong one most likely meant, as the end of a message; nothing where none is near.

    >>> suggest_label("MTE", ["MET", "UNMET"])
    ' Did you mean `MET`?'
    """
    label_by_folded = {fold_label(label): label for label in labels}
    guess = nearest(fold_label(word), label_by_folded) if isinstance(word, str) else None
    return f" Did you mean `{label_by_folded[guess]}`?" if guess else ""


def criterion_kind(criterion: CriterionEntry) -> Kind:
    """The kind of a criterion: numeric with a range, binary without options, else what its scale says."""
    if criterion.minimum is not None or criterion.maximum is not None or criterion.scale_type == "numeric":
        return "numeric"
    return "binary" if not criterion.options else criterion.scale_type or "ordinal"


def criterion_issues(criterion: CriterionEntry) -> PathMessages:
    """Check a criterion across its fields."""
    kind = criterion_kind(criterion)
    if not math.isfinite(criterion.weight):
        yield ("weight",), "A weight is a finite number."

    if kind == "numeric":
        yield from _range_issues(criterion)
    elif criterion.step is not None:
        yield ("step",), "Only a criterion with `minimum` and `maximum` has one."

    if kind == "binary" and criterion.scale_type is not None:
        yield ("scale_type",), "Only a criterion with `options` has one."
    if kind != "ordinal" and criterion.order is not None:
        yield ("order",), f"Only an ordinal criterion has one; this one is {kind}."
    if criterion.options and kind != "numeric":
        yield from _options_issues(criterion, kind)

    if criterion.aggregation is not None:
        for message in rule_issues(criterion.aggregation, kind):
            yield ("aggregation",), message
    if criterion.check is not None and kind == "nominal":
        yield ("check",), "A nominal criterion has none: a score from 0 to 1 has no place among its options."


def _range_issues(criterion: CriterionEntry) -> PathMessages:
    """Check the range of a numeric criterion."""
    if criterion.options:
        yield ("options",), "A numeric criterion has a range in their place: leave out `minimum`, `maximum` or these."
    if criterion.scale_type not in (None, "numeric"):
        yield ("scale_type",), f"A criterion with a range is numeric, not {criterion.scale_type}."

    low = criterion.minimum
    high = criterion.maximum
    for key, end in (("minimum", low), ("maximum", high)):
        if end is None:
            yield (key,), "A numeric criterion has a `minimum` and a `maximum`; this one is missing."
    if low is None or high is None:
        return

    if not math.isfinite(high - low):
        yield ("maximum",), "The range is wider than a number can hold."
    elif low >= high:
        yield ("maximum",), f"The maximum lies above the minimum, {low:g}; this one is {high:g}."
    elif criterion.step is not None and not is_on_grid(high, low, criterion.step):
        yield ("step",), f"Steps of {criterion.step:g} from {low:g} do not lead to {high:g}."


def is_on_grid(number: float, low: float, step: float) -> bool:
    """Whether whole steps lead from the low end to a number.

    >>> is_on_grid(3.5, 1.0, 0.5), is_on_grid(0.3, 0.0, 0.1), is_on_grid(3.25, 1.0, 0.5)
    (True, True, False)
    """
    steps = (number - low) / step
    return abs(steps - round(steps)) <= 1e-9 * max(1.0, abs(steps))


def rule_issues(rule: Any, kind: Kind) -> Iterator[str]:
    """Check that a rule of aggregation belongs to a kind of criterion."""
    if isinstance(rule, str) and rule in RULES[kind]:
        return
    other_kinds = [name for name, rules in RULES.items() if rule in rules]
    if other_kinds:
        message = f"`{rule}` is a rule of {' and '.join(other_kinds)} criteria, not of {kind} ones."
        yield f"{message} Known: {list_names(RULES[kind])}."
    else:
        yield f"No rule of {kind} criteria is called `{rule}`. {did_you_mean(str(rule), RULES[kind])}"


def _options_issues(criterion: CriterionEntry, kind: Kind) -> PathMessages:
    """Check the options of a criterion.

    Each option that is not `na` has a value. Those of a nominal criterion may all have none, since nothing orders them;
    but values of some only would say what nobody meant.
    """
    options = criterion.options or ()
    scored = [option for option in options if not option.na]
    without_value = [index for index, option in enumerate(options) if option.value is None and not option.na]
    if kind != "nominal" or len(without_value) < len(scored):
        for index in without_value:
            yield ("options", index, "value"), "An option that is not `na` has a value from 0 to 1; this one has none."
    elif criterion.fatal:
        yield ("fatal",), "A fatal criterion has options with values, which say what failing it is."

    yield from _label_issues(options)
    if len(scored) < 2:
        yield ("options",), f"A choice has at least two options that are not `na`, not {len(scored)}."
    if kind == "ordinal" and criterion.order is not None:
        yield from _order_issues(criterion.order, [option.label for option in scored])


def _label_issues(options: Sequence[OptionEntry]) -> PathMessages:
    first_index: dict[str, int] = {}
    for index, option in enumerate(options):
        path = ("options", index, "label")
        folded = fold_label(option.label)
        first = first_index.setdefault(folded, index)
        if first != index:
            yield path, f"`{option.label}` is already the label of options[{first}]."

        if not option.na and folded in _VERDICTS:
            yield path, f"`{option.label}` is a verdict of binary criteria and no label of an option with a value."
        elif not option.na and folded == _NOT_APPLICABLE:
            yield path, f"`{option.label}` means an abstention: give this option `na: true`."


def _order_issues(order: Sequence[str], labels: Sequence[str]) -> PathMessages:
    label_by_folded = {fold_label(label): label for label in labels}
    named: set[str] = set()
    for index, label in enumerate(order):
        folded = fold_label(label)
        if folded not in label_by_folded:
            hint = suggest_label(label, labels) or f" Known: {list_names(labels)}."
            yield ("order", index), f"`{label}` is no label of an option with a value.{hint}"
        elif folded in named:
            yield ("order", index), f"`{label}` stands twice."
        named.add(folded)

    missing = [label for folded, label in label_by_folded.items() if folded not in named]
    if missing:
        yield ("order",), f"The order leaves out {list_names(missing)}."


def name_issues(names: Iterable[tuple[Path, str]]) -> PathMessages:
    """Find names that stand twice, by the path and name of every criterion."""
    first_path: dict[str, Path] = {}
    for path, name in names:
        first = first_path.setdefault(fold_label(name), path)
        if first != path:
            yield (*path, "name"), f"`{name}` is already the name of {pointer(first)}."


def default_name(index: int) -> str:
    """The name of a criterion that has none, by its place in the rubric.

    >>> default_name(0)
    'Criterion 1'
    """
    return f"Criterion {index + 1}"
