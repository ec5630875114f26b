"""The judges of a grader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from deemster.datasets.votes import CHECK
from deemster.errors import ConfigurationError, Issue, show_value
from deemster.formats.schema_validation import Id, check_shape


class Judge(msgspec.Struct, frozen=True):
    """One judge of a panel.

    Attributes:
        id: How its votes are told from those of others.
        model: The model role it asks.
        weight: How much its vote counts where a rule weighs votes.

    Raises:
        ConfigurationError: The id or the role is no name, or the weight is not a finite number above 0.
    """

    id: str
    model: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        issues = list(self._issues())
        if issues:
            raise ConfigurationError(issues)
        force_setattr(self, "weight", float(self.weight))

    def _issues(self) -> Iterator[Issue]:
        if wrong := check_shape(self.id, Id, path=("judge", "id")):
            yield from wrong
        elif self.id.startswith(CHECK):
            yield Issue(f"`{self.id}` is no id of a judge: `{CHECK}` is for criteria that a metric answers.")
        if not isinstance(self.model, str) or not self.model.strip():
            yield Issue(f"`model` of a judge is the name of a model role, not {show_value(self.model)}.")
        if isinstance(self.weight, bool) or not isinstance(self.weight, (int, float)):
            yield Issue(f"`weight` of a judge is a finite number above 0, not {show_value(self.weight)}.")
        elif not (math.isfinite(self.weight) and self.weight > 0):
            yield Issue(f"`weight` of a judge is a finite number above 0, not {self.weight}.")


def jury_of(judges: Any) -> tuple[Judge, ...]:
    """The judges that a caller gave, one or several.

    Raises:
        ConfigurationError: There is none, one is no judge, or two have one id.
    """
    given = (judges,) if isinstance(judges, Judge) else judges
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigurationError(f"`judges` is one or more `Judge(id, model)`, not {show_value(judges)}.")
    every = tuple(given)
    issues = [
        Issue(f"A judge is a `Judge(id, model)`, not {show_value(each)}.") for each in every if type(each) is not Judge
    ]
    ids = [each.id for each in every if type(each) is Judge]
    issues += [Issue(f"Two judges have the id `{name}`.") for name in dict.fromkeys(ids) if ids.count(name) > 1]
    if not every:
        issues.append(Issue("`judges` is empty: a grader needs at least one judge."))
    if issues:
        raise ConfigurationError(issues)
    return every
