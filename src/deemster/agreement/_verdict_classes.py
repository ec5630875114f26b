"""Abstention modes: which class a verdict, CANNOT_ASSESS or N/A counts as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from deemster.agreement.result_models import AbstentionMode, CriterionType
from deemster.errors import InputError, did_you_mean, visible
from deemster.rubrics import Criterion

Codes: TypeAlias = NDArray[np.int16]
MODES: tuple[AbstentionMode, ...] = get_args(AbstentionMode)
_EXCLUDED = -1
# Stands for an abstention that takes the worst class of its own row.
_WORST_OF_ROW = -2


@dataclass(frozen=True, slots=True)
class AbstentionModes:
    """What an abstention counts as, on binary and on multi-choice criteria.

    Raises:
        InputError: There is no such mode.
    """

    cannot_assess: AbstentionMode = "exclude"
    na_mode: AbstentionMode = "exclude"

    def __post_init__(self) -> None:
        for name in ("cannot_assess", "na_mode"):
            mode = getattr(self, name)
            if mode not in MODES:
                raise InputError(
                    f"`{name}` has no mode {visible(str(mode), limit=60)!r}. {did_you_mean(str(mode), MODES)}"
                )

    def for_kind(self, kind: CriterionType) -> AbstentionMode:
        """The mode for a kind of criterion."""
        return self.cannot_assess if kind == "binary" else self.na_mode

    @property
    def exclude_all(self) -> bool:
        """Whether every abstention is left out. Only then is coverage reported."""
        return self.cannot_assess == self.na_mode == "exclude"


@dataclass(frozen=True, slots=True, eq=False)
class VerdictClasses:
    """The classes of one criterion: MET first on binary ones, lowest first on ordinal ones, else in author order.

    All numbers of a numeric criterion are one class: it only tells where there is a number.

    Attributes:
        kind: The kind of criterion.
        labels: The label of each class.
        values: The value of each class; None for an abstention.
        author_order: The classes in the order in which the author wrote the options.
        codes: The verdict code of each class.
        class_of_code: The class of each code, shifted by one: the first entry is a cell without a verdict.
    """

    kind: CriterionType
    labels: tuple[str, ...]
    values: tuple[float | None, ...]
    author_order: tuple[int, ...]
    codes: tuple[int, ...]
    class_of_code: Codes

    @property
    def size(self) -> int:
        """How many classes there are."""
        return len(self.labels)

    def from_codes(self, codes: Codes, worst_codes: Codes | int) -> Codes:
        """The class of each verdict code; -1 where there is no verdict, or one that is left out.

        Args:
            codes: Codes of verdicts.
            worst_codes: The code of the worst verdict, for all rows or one for each.
        """
        found: Codes = self.class_of_code[np.maximum(codes, -1) + 1]
        if _WORST_OF_ROW in self.class_of_code:
            worst = self.class_of_code[np.asarray(worst_codes) + 1]
            if worst.ndim and found.ndim > worst.ndim:
                worst = worst[:, None]
            found = np.where(found == _WORST_OF_ROW, worst, found)
        return found

    def count(self, classes: Codes) -> NDArray[np.int64]:
        """How many of each row fall on each class, ``[rows, K]``; -1 falls on none.

        Args:
            classes: Classes of verdicts, ``[rows, verdicts]``.
        """
        return np.asarray((classes[:, :, None] == np.arange(self.size)).sum(axis=1))


def build_classes(criterion: Criterion, mode: AbstentionMode) -> VerdictClasses:
    """Build the classes of a criterion; ``as_category`` must not come with an ordinal one."""
    codes = list(criterion.scored)
    if criterion.kind == "ordinal":
        codes.sort(key=lambda code: criterion.positions[code] or 0)
    elif mode == "as_category" and criterion.kind != "numeric":
        codes = list(range(len(criterion.labels)))
    class_of_code = np.full(len(criterion.labels) + 1, _EXCLUDED, dtype=np.int16)
    class_of_code[np.array(codes) + 1] = np.arange(len(codes))
    if mode == "as_unmet":
        # A binary abstention is UNMET with every weight. On a choice the sign of the weight decides what is worst.
        stand_in = 1 if criterion.kind == "binary" else _WORST_OF_ROW
        class_of_code[np.array(sorted(criterion.abstentions)) + 1] = stand_in
    return VerdictClasses(
        kind=criterion.kind,
        labels=tuple(criterion.labels[code] for code in codes),
        values=tuple(criterion.values[code] for code in codes),
        author_order=tuple(int(place) for place in np.argsort(codes)),
        codes=tuple(codes),
        class_of_code=class_of_code,
    )
