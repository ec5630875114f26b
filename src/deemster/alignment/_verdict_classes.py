"""From verdicts to classes: what an abstention counts as."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

import numpy as np

from deemster.alignment._labelled_votes import Codes, Column
from deemster.alignment.metrics_result import CriterionType, Mode
from deemster.errors import InputError, Issue, did_you_mean, visible
from deemster.rubrics import Criterion

MODES: tuple[Mode, ...] = get_args(Mode)
_OUT = -1
# The class of an abstention that takes the worst case of its own row.
_WORST = -2


@dataclass(frozen=True, slots=True)
class Modes:
    """What an abstention counts as, on binary and on multi-choice criteria.

    Raises:
        InputError: There is no such mode.
    """

    cannot_assess: Mode = "exclude"
    na_mode: Mode = "exclude"

    def __post_init__(self) -> None:
        for name in ("cannot_assess", "na_mode"):
            mode = getattr(self, name)
            if mode not in MODES:
                raise InputError(
                    f"`{name}` has no mode {visible(str(mode), limit=60)!r}. {did_you_mean(str(mode), MODES)}"
                )

    def of(self, kind: CriterionType) -> Mode:
        """The mode of a kind of criterion."""
        return self.cannot_assess if kind == "binary" else self.na_mode

    @property
    def exclude(self) -> bool:
        """Whether every abstention is left out, so that coverage means something."""
        return self.cannot_assess == self.na_mode == "exclude"


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The classes of one criterion: MET first on binary ones, lowest first on ordinal ones, else in author order.

    Attributes:
        kind: The kind of criterion.
        labels: The label of each class.
        values: What each class is worth; None for an abstention.
        shown: Classes in the author's order.
        codes: The code behind each class.
        table: The class of each code, shifted by one: the first entry is a cell without a judgement.
    """

    kind: CriterionType
    labels: tuple[str, ...]
    values: tuple[float | None, ...]
    shown: tuple[int, ...]
    codes: tuple[int, ...]
    table: Codes

    @property
    def size(self) -> int:
        """How many classes there are."""
        return len(self.labels)

    def of(self, codes: Codes, worst: Codes | int) -> Codes:
        """The class of each code; -1 where there is no judgement, or one that is left out.

        Args:
            codes: Codes of verdicts.
            worst: The code that stands for the worst case, for all or along the first axis.
        """
        found: Codes = self.table[np.maximum(codes, -1) + 1]
        if _WORST in self.table:
            stand_in = self.table[np.asarray(worst) + 1]
            if stand_in.ndim and found.ndim > stand_in.ndim:
                stand_in = stand_in[:, None]
            found = np.where(found == _WORST, stand_in, found)
        return found


def classes_of(criterion: Criterion, mode: Mode) -> Classes:
    """The classes of a criterion under a mode.

    Raises:
        InputError: An abstention shall be a class of an ordinal scale.
    """
    codes = list(criterion.scored)
    if criterion.kind == "ordinal":
        if mode == "as_category":
            raise InputError(_placeless(criterion.name))
        codes.sort(key=lambda code: criterion.positions[code] or 0)
    elif mode == "as_category":
        codes = list(range(len(criterion.labels)))
    table = np.full(len(criterion.labels) + 1, _OUT, dtype=np.int16)
    table[np.array(codes) + 1] = np.arange(len(codes))
    if mode == "as_unmet":
        # A binary abstention is UNMET whatever the weight; a choice takes the worst option by the sign of the weight.
        stand_in = 1 if criterion.kind == "binary" else _WORST
        table[np.array(sorted(criterion.abstentions)) + 1] = stand_in
    return Classes(
        kind=criterion.kind,
        labels=tuple(criterion.labels[code] for code in codes),
        values=tuple(criterion.values[code] for code in codes),
        shown=tuple(int(place) for place in np.argsort(codes)),
        codes=tuple(codes),
        table=table,
    )


def classes_by_column(columns: Iterable[Column], modes: Modes) -> tuple[Classes, ...]:
    """The classes of every column.

    Raises:
        InputError: ``as_category`` meets an ordinal criterion that has an abstention, or on which somebody abstained.
    """
    found, issues = [], []
    for column in columns:
        mode = modes.of(column.criterion.kind)
        if column.criterion.kind == "ordinal" and mode == "as_category":
            if _abstained(column):
                issues.append(Issue(_placeless(column.name)))
                continue
            mode = "exclude"
        found.append(classes_of(column.criterion, mode))
    if issues:
        raise InputError(issues)
    return tuple(found)


def _abstained(column: Column) -> bool:
    """Whether the author offers an abstention, or one was used that nobody offered."""
    if column.criterion.na_option_index is not None:
        return True
    codes = list(column.criterion.abstentions)
    return any(bool(np.isin(cells, codes).any()) for cells in (column.truth, column.final, column.votes))


def _placeless(name: str) -> str:
    return (
        f"`na_mode='as_category'` does not fit the ordinal criterion `{visible(name, limit=60)}`: an abstention has no "
        "place on its scale. Use `exclude` or `as_unmet`."
    )
