"""One requirement of a rubric, the verdicts on it, and the small integers that stand for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
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
    Issues,
    Kind,
    OptionEntry,
    criterion_issues,
    option_issues,
    suggest_label,
)
from deemster.rubrics.verdicts import (
    CANNOT_ASSESS,
    FAILED,
    FAILED_WORST,
    MISSING,
    NOT_APPLICABLE,
    VERDICTS,
    fold_label,
)

__all__ = ["FAILED", "FAILED_WORST", "MISSING", "Check", "Criterion", "Option"]


def refuse_issues(issues: Issues) -> None:
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
        value: What it is worth, from 0 to 1; an abstention may have none.
        na: Whether choosing it is an abstention.

    Raises:
        RubricError: The label is blank, or the value is missing or outside [0, 1].
    """

    def __post_init__(self) -> None:
        refuse_issues(option_issues(decode_struct(self, OptionEntry, error=RubricError)))
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


_BINARY_OPTIONS = (Option("MET", 1.0), Option("UNMET", 0.0), Option("CANNOT_ASSESS", None, na=True))


class Criterion(CriterionEntry, frozen=True, dict=True):
    """One requirement of a rubric.

    A verdict on it is a code: an index into `labels`. `MISSING`, `FAILED` and `FAILED_WORST` are codes that are no
    verdict.

    Attributes:
        requirement: What is asked of the submission.
        weight: What meeting it is worth; negative for a fault, 0 for what is reported and not scored.
        name: Its key everywhere; a rubric names the nameless `Criterion 1`, `Criterion 2` and so on.
        options: The answers there are; none makes the criterion binary.
        scale_type: `ordinal` or `nominal` where there are options.
        order: The labels of an ordinal criterion, lowest first, where values do not give the order.
        aggregation: The rule that makes several votes one, where it is not the panel's.
        fatal: Whether failing it makes the score 0.
        check: The metric that answers it in place of a judge.

    Raises:
        RubricError: Something is not as spec/rubrics.md section 1.1 wants it; all issues are listed.
    """

    name: str = ""
    options: tuple[Option, ...] = ()
    check: Check | None = None

    def __post_init__(self) -> None:
        changes: dict[str, Any] = {"name": self.name if self.name != "" else None, "options": self.options or None}
        refuse_issues(criterion_issues(decode_struct(self, CriterionEntry, error=RubricError, **changes)))
        force_setattr(self, "weight", float(self.weight) + 0.0)
        options = (one if isinstance(one, Option) else Option(**one) for one in self.options or ())
        force_setattr(self, "options", tuple(options))
        if isinstance(self.check, Mapping):
            force_setattr(self, "check", Check(**self.check))
        if self.options and self.scale_type is None:
            force_setattr(self, "scale_type", "ordinal")
        if self.order is not None:
            known = {fold_label(option.label): option.label for option in self.options}
            force_setattr(self, "order", tuple(known[fold_label(label)] for label in self.order))

    @property
    def kind(self) -> Kind:
        """`binary`, `ordinal` or `nominal`."""
        if not self.options:
            return "binary"
        return "nominal" if self.scale_type == "nominal" else "ordinal"

    @cached_property
    def _answers(self) -> tuple[Option, ...]:
        if not self.options:
            return _BINARY_OPTIONS
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
        ranked = sorted(self.scored, key=lambda code: self._answers[code].value or 0.0)
        return tuple(None if answer.na else ranked.index(code) for code, answer in enumerate(self._answers))

    @cached_property
    def worst(self) -> int:
        """The code of the worst case."""
        return self.worst_among(self.scored)

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {fold_label(label): code for code, label in enumerate(self.labels)} | {
            label: code for code, label in enumerate(self.labels)
        }

    def code(self, label: str) -> int:
        """The code of a verdict or option; `CANNOT_ASSESS` is known to every kind.

        Raises:
            RubricError: There is no such verdict.

        >>> Criterion("Is it right?").code(" unmet ")
        1
        """
        found = self._codes.get(label) if isinstance(label, str) else None
        if found is None and isinstance(label, str):
            found = self._codes.get(fold_label(label))
            if found is None and fold_label(label) == fold_label(CANNOT_ASSESS):
                found = self.abstention
        if found is None:
            self._unknown(label, self.labels)
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
        message = f"{given} is no verdict{name}. It has {list_names(names)}.{suggest_label(label, names)}"
        raise RubricError(message)

    @property
    def na_option_index(self) -> int | None:
        """The index of the first option that abstains, or None."""
        return next((index for index, option in enumerate(self.options) if option.na), None)

    def position(self, index: int) -> int | None:
        """The place of an option on the ordinal scale, from 0, lowest value first or by `order`; None without one.

        Raises:
            RubricError: There is no such option.
        """
        if not 0 <= index < len(self.positions):
            raise RubricError(f"There is no option {index}; they are numbered from 0 to {len(self.positions) - 1}.")
        return self.positions[index]

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
