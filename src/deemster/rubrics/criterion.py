"""One requirement of a rubric, the verdicts on it, and the small integers that stand for them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, NoReturn

import msgspec
from msgspec.structs import force_setattr

from deemster.errors import Issue, RubricError, list_names, show_value
from deemster.formats.json_values import pointer
from deemster.formats.schema_validation import decode_struct
from deemster.records import FrozenDict, freeze
from deemster.rubrics.rubric_format import (
    CheckEntry,
    CriterionEntry,
    Kind,
    OptionEntry,
    PathMessages,
    criterion_issues,
    criterion_kind,
    suggest_label,
)
from deemster.rubrics.verdicts import (
    CANNOT_ASSESS,
    FAILED,
    FAILED_WORST,
    MISSING,
    NOT_APPLICABLE,
    NUMBER,
    VERDICTS,
    fold_label,
)

__all__ = ["FAILED", "FAILED_WORST", "MISSING", "NUMBER", "Check", "Criterion", "Option"]


def refuse_issues(issues: PathMessages) -> None:
    """Raise what was found wrong, if anything was.

    Raises:
        RubricError: There is at least one issue; all are listed.
    """
    found = [Issue(f"{pointer(path)}: {message}" if path else message) for path, message in issues]
    if found:
        raise RubricError(found)


class Option(OptionEntry, frozen=True):
    """One answer of a multi-choice criterion.

    Attributes:
        label: What it is called.
        value: What it is worth, from 0 to 1; an abstention and the options of a nominal criterion may have none.
        na: Whether choosing it is an abstention.

    Raises:
        RubricError: The label is blank, or the value is outside [0, 1].
    """

    def __post_init__(self) -> None:
        decode_struct(self, OptionEntry, error=RubricError)
        if self.value is not None:
            force_setattr(self, "value", float(self.value) + 0.0)


class Check(CheckEntry, frozen=True):
    """A metric that answers a criterion in place of a judge.

    Attributes:
        metric: The metric's name in the catalog.
        args: Its arguments.
        threshold: The score from which on a binary criterion is met.

    Raises:
        RubricError: The name is blank, an argument is not JSON, or the threshold is outside [0, 1].
    """

    args: Mapping[str, Any] = FrozenDict()

    def __post_init__(self) -> None:
        decode_struct(self, CheckEntry, error=RubricError)
        force_setattr(self, "args", freeze(self.args, path="args"))
        force_setattr(self, "threshold", float(self.threshold) + 0.0)

    def __hash__(self) -> int:
        # Equal arguments have equal keys; their values may be lists and maps, which have no hash.
        return hash((self.metric, frozenset(self.args), self.threshold))


_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NUMBER_OPTIONS = (Option("a number"), Option("CANNOT_ASSESS", na=True))
# What people write for a verdict, in lower case.
_BINARY_WORDS = {"yes": 0, "true": 0, "1": 0, "no": 1, "false": 1, "0": 1}
_BOOLEAN_WORDS = {True: ("true", "yes"), False: ("false", "no")}
_BINARY_OPTIONS = (Option("MET", 1.0), Option("UNMET", 0.0), Option("CANNOT_ASSESS", None, na=True))


def _read_number(label: Any) -> float | None:
    """A number, or a text that is one; None for everything else."""
    if isinstance(label, bool):
        return None
    if isinstance(label, (int, float)) or (isinstance(label, str) and _NUMBER.fullmatch(label.strip())):
        try:
            found = float(label)
        except OverflowError:
            return None
        return found + 0.0 if math.isfinite(found) else None
    return None


class Criterion(CriterionEntry, frozen=True, dict=True):
    """One requirement of a rubric.

    A verdict on it is a code: an index into `labels`. `MISSING`, `FAILED` and `FAILED_WORST` are codes that are no
    verdict. A number on a numeric criterion has the code `NUMBER` and is kept beside it.

    Attributes:
        requirement: What is asked of the submission.
        weight: What meeting it is worth; negative for a fault, 0 for what is reported and not scored.
        name: Its key everywhere; a rubric names the nameless `Criterion 1`, `Criterion 2` and so on.
        options: The answers there are; none makes the criterion binary, unless it has a range.
        scale_type: `ordinal` or `nominal` where there are options, `numeric` where there is a range.
        order: The labels of an ordinal criterion, lowest first, where values do not give the order.
        aggregation: The rule that makes several votes one, where it is not the panel's.
        fatal: Whether failing it makes the score 0.
        check: The metric that answers it in place of a judge.
        minimum: The lowest number of a numeric criterion; worth 0.
        maximum: Its highest number; worth 1.
        step: The distance between the numbers that a judge may answer; None for any number of the range. Labels of
            people may lie between, as means of several do.

    Raises:
        RubricError: Something is not as spec/rubrics.md section 1.1 wants it; all issues are listed.
    """

    name: str = ""
    options: tuple[Option, ...] = ()
    check: Check | None = None

    def __post_init__(self) -> None:
        changes: dict[str, Any] = {"name": self.name if self.name != "" else None, "options": self.options or None}
        refuse_issues(criterion_issues(decode_struct(self, CriterionEntry, error=RubricError, changes=changes)))
        force_setattr(self, "weight", float(self.weight) + 0.0)
        options = (one if isinstance(one, Option) else Option(**one) for one in self.options or ())
        force_setattr(self, "options", tuple(options))
        if isinstance(self.check, Mapping):
            force_setattr(self, "check", Check(**self.check))
        if self.scale_type is None and self.kind != "binary":
            force_setattr(self, "scale_type", self.kind)
        for key in ("minimum", "maximum", "step"):
            if (number := getattr(self, key)) is not None:
                force_setattr(self, key, float(number) + 0.0)
        if self.order is not None:
            known = {fold_label(option.label): option.label for option in self.options}
            force_setattr(self, "order", tuple(known[fold_label(label)] for label in self.order))

    @cached_property
    def kind(self) -> Kind:
        """`binary`, `ordinal`, `nominal` or `numeric`."""
        return criterion_kind(self)

    @cached_property
    def is_scored(self) -> bool:
        """Whether its verdicts have a value, so that it can count in a score."""
        return self.kind == "numeric" or any(value is not None for value in self.values)

    @cached_property
    def _answers(self) -> tuple[Option, ...]:
        if not self.options:
            return _NUMBER_OPTIONS if self.kind == "numeric" else _BINARY_OPTIONS
        return self.with_guaranteed_na_option().options

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Every verdict by code; the last one is an abstention where the author gave none."""
        return tuple(answer.label for answer in self._answers)

    @cached_property
    def abstentions(self) -> frozenset[int]:
        """The codes that abstain."""
        return frozenset(code for code, answer in enumerate(self._answers) if answer.na)

    @cached_property
    def abstention(self) -> int:
        """The code that `CANNOT_ASSESS` means."""
        return self._codes.get(fold_label(CANNOT_ASSESS), min(self.abstentions))

    @cached_property
    def scored(self) -> tuple[int, ...]:
        """The codes that do not abstain, in the order of the labels."""
        return tuple(code for code, answer in enumerate(self._answers) if not answer.na)

    @cached_property
    def values(self) -> tuple[float | None, ...]:
        """What each code is worth; None for an abstention."""
        return tuple(None if answer.na else answer.value for answer in self._answers)

    @cached_property
    def positions(self) -> tuple[int | None, ...]:
        """The place of each code on the ordinal scale, lowest first; None for what has none."""
        if self.kind != "ordinal":
            return (None,) * len(self._answers)
        if self.order is not None:
            places = {label: place for place, label in enumerate(self.order)}
            return tuple(None if answer.na else places[answer.label] for answer in self._answers)
        ranked = list(self.scored)
        if not self.is_in_listed_order:
            ranked.sort(key=lambda code: self._answers[code].value or 0.0)
        return tuple(None if answer.na else ranked.index(code) for code, answer in enumerate(self._answers))

    @cached_property
    def is_in_listed_order(self) -> bool:
        """Whether the options of an ordinal criterion have no order but that in which they are listed.

        Their values neither rise nor fall from option to option, and there is no `order`.
        """
        if self.kind != "ordinal" or self.order is not None:
            return False
        steps = list(pairwise(self._answers[code].value or 0.0 for code in self.scored))
        return not (all(low < high for low, high in steps) or all(low > high for low, high in steps))

    @cached_property
    def worst(self) -> int:
        """The code of the worst case."""
        return self.worst_among(self.scored)

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {fold_label(label): code for code, label in enumerate(self.labels)} | {
            label: code for code, label in enumerate(self.labels)
        }

    def code(self, label: str | float) -> int:
        """The code of a verdict or option; `CANNOT_ASSESS` is known to every kind.

        Case and white space around a label do not count. On a binary criterion yes, true and 1 are MET, and no, false
        and 0 are UNMET. On a choice a number is a label where some label is a number, else the value of an option.

        Raises:
            RubricError: There is no such verdict, or several could be meant.

        >>> Criterion("Is it right?").code(" unmet "), Criterion("Is it right?").code(True)
        (1, 0)
        """
        if self.kind == "numeric":
            return self.abstention if self._abstains(label) else NUMBER if self.number(label) is not None else MISSING
        found = self._codes.get(label) if isinstance(label, str) else None
        if found is None and isinstance(label, str):
            found = self._codes.get(fold_label(label))
            if found is None and self._abstains(label):
                found = self.abstention
        if found is None:
            found = self._code_of_other_spelling(label)
        if found is None:
            self._unknown(label, self.labels)
        return found

    def cell(self, label: str | float) -> int | float:
        """The code of a verdict, or the number itself on a numeric criterion.

        Raises:
            RubricError: There is no such verdict.

        >>> Criterion("How good is it?", minimum=1, maximum=5).cell("3.5")
        3.5
        """
        return self.number(label) if self.kind == "numeric" and not self._abstains(label) else self.code(label)

    def number(self, label: str | float) -> float:
        """A number within the range of a numeric criterion.

        Raises:
            RubricError: It is no number, or lies outside the range.
        """
        found = _read_number(label)
        if found is None or self.minimum is None or self.maximum is None or not self.minimum <= found <= self.maximum:
            self._unknown(label, ())
        return found

    def share(self, number: float) -> float:
        """What a number on a numeric criterion is worth: 0 at the minimum, 1 at the maximum.

        >>> Criterion("How good is it?", minimum=1, maximum=5).share(4)
        0.75
        """
        low, high = self.minimum or 0.0, self.maximum or 0.0
        return (number - low) / (high - low)

    @property
    def worst_number(self) -> float | None:
        """The worst end of the range of a numeric criterion; None for any other."""
        return self.maximum if self.weight < 0 else self.minimum

    @staticmethod
    def _abstains(label: Any) -> bool:
        return isinstance(label, str) and fold_label(label) == fold_label(CANNOT_ASSESS)

    def _code_of_other_spelling(self, label: Any) -> int | None:
        """The code that a yes, a no or a number stands for; None where it stands for nothing.

        Raises:
            RubricError: Two options have that value.
        """
        if isinstance(label, bool) and self.options:
            return next((self._codes[word] for word in _BOOLEAN_WORDS[label] if word in self._codes), None)
        number = _read_number(label)
        if not self.options:
            words = (str(label).lower() if isinstance(label, bool) else f"{number:g}" if number is not None else label,)
            return next((_BINARY_WORDS.get(fold_label(word)) for word in words if isinstance(word, str)), None)
        if number is None:
            return None
        found = self._codes_by_number.get(number, ())
        if len(found) > 1:
            names = list_names([self.labels[code] for code in found])
            name = f" of `{self.name}`" if self.name else ""
            raise RubricError(f"{number:g} is the value of several options{name}: {names}. Write the label.")
        return found[0] if found else None

    @cached_property
    def _codes_by_number(self) -> dict[float, tuple[int, ...]]:
        """The options that a number may mean, by number."""
        labels = {code: _read_number(self.labels[code]) for code in self.scored}
        known = labels if any(number is not None for number in labels.values()) else dict(enumerate(self.values))
        found: dict[float, tuple[int, ...]] = {}
        for code, number in known.items():
            if number is not None:
                found[number] = (*found.get(number, ()), code)
        return found

    def find(self, label: str) -> int:
        """The index of an option, or of a verdict where the criterion is binary.

        Raises:
            RubricError: There is no such option.
        """
        known = [option.label for option in self.options] or VERDICTS
        found = self._codes.get(fold_label(label)) if isinstance(label, str) else None
        if found is None or found >= len(known):
            self._unknown(label, known)
        return found

    def _unknown(self, label: Any, known: Iterable[str]) -> NoReturn:
        names = list(known)
        name = f" of `{self.name}`" if self.name else ""
        given = f"`{label[:80]}`" if isinstance(label, str) else show_value(label)[:80]
        expected = f"It has {list_names(names)}."
        if self.kind == "numeric":
            expected = f"It takes a number from {self.minimum:g} to {self.maximum:g}, or `{CANNOT_ASSESS}`."
        raise RubricError(f"{given} is no verdict{name}. {expected}{suggest_label(label, names)}")

    @property
    def na_option_index(self) -> int | None:
        """The index of the first option that abstains, or None."""
        return next((index for index, option in enumerate(self.options) if option.na), None)

    def worst_among(self, indices: Iterable[int]) -> int:
        """The index of the lowest value, of the highest where the weight is negative; of equal ones the first.

        Raises:
            RubricError: None of the indices is that of an option with a value.
        """
        sign = -1.0 if self.weight < 0 else 1.0
        scored = frozenset(self.scored)
        ranked = [(sign * (self.values[index] or 0.0), index) for index in indices if index in scored]
        if not ranked:
            raise RubricError("The worst case is one of at least one option that is not `na`, and none was given.")
        return min(ranked)[1]

    def worst_scored_option(self) -> tuple[int, Option]:
        """The index of the worst case, and the option; `UNMET` or `MET` where the criterion is binary."""
        return self.worst, self._answers[self.worst]

    def with_guaranteed_na_option(self) -> Criterion:
        """Itself where it is binary or has an option that abstains, else a copy with one appended last."""
        if not self.options or self.na_option_index is not None:
            return self
        return msgspec.structs.replace(self, options=(*self.options, Option(NOT_APPLICABLE, None, na=True)))
