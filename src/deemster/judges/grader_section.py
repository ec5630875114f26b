"""A grader as a suite, a settings file or flags declare it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.errors import ConfigurationError, InputError, Issue
from deemster.formats import missing_file
from deemster.formats.schema_validation import Id, NonBlank, decode_shape, plain_value
from deemster.judges.criterion_grader import CriterionGrader, GraderSettings, QuestionSettings
from deemster.judges.few_shot import FewShot, FewShotEntry
from deemster.judges.judge_cascade import Cascade, CascadeEntry
from deemster.judges.judge_panel import Judge, Weight
from deemster.rubrics.length_penalty import LengthPenalty, LengthPenaltyEntry
from deemster.rubrics.rubric_scoring import Scoring
from deemster.rubrics.vote_aggregation import Rules

T = TypeVar("T")


class JudgeEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A judge."""

    model: NonBlank
    id: Id | None = None
    weight: Weight = 1.0


_Entry: TypeAlias = str | JudgeEntry


class GraderEntry(GraderSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A grader."""

    judges: Annotated[_Entry | tuple[_Entry, ...], Meta(title="a list of roles")] = ()
    length_penalty: LengthPenaltyEntry | None = None
    few_shot: FewShotEntry | None = None
    cascade: CascadeEntry | None = None


KEYS = GraderEntry.__struct_fields__
# The arguments of a grader that are one object of several keys.
_OBJECTS: dict[str, Any] = {"rules": Rules, "scoring": Scoring, "questions": QuestionSettings}


def build_grader(given: Mapping[str, Any], *, folder: Path | None = None) -> CriterionGrader:
    """The grader that plain data declares.

    Args:
        given: By argument. `judges` are roles, or maps of `id`, `model` and `weight`; `length_penalty` and `few_shot`
            are maps, and `train` of the latter is a path; `cascade` is a map of `unsure_below`, `by` and `repeats`, and
            asks the first judge first.
        folder: What paths are relative to.

    Raises:
        ConfigurationError: Something in it cannot be used; all issues are listed.
    """
    plain = plain_value(given)
    decode_shape(plain, GraderEntry, error=ConfigurationError)
    issues: list[Issue] = []

    def collect(make: Callable[[], T]) -> T | None:
        try:
            return make()
        except InputError as error:
            issues.extend(error.issues)
            return None

    settings: dict[str, Any] = {key: plain[key] for key in GraderSettings.__struct_fields__ if key in plain}
    for name, kind in _OBJECTS.items():
        settings[name] = kind(**{key: settings.pop(key) for key in kind.__match_args__ if key in settings})
    if (penalty := plain.get("length_penalty")) is not None:
        settings["length_penalty"] = collect(lambda: LengthPenalty(**penalty))
    if (few := plain.get("few_shot")) is not None:
        settings["few_shot"] = collect(lambda: _few_shot(few, folder or Path()))
    judges = collect(lambda: _judges(plain.get("judges", ())))
    seats: tuple[Judge, ...] | Cascade | None = judges
    if judges is not None and (cascade := plain.get("cascade")) is not None:
        seats = collect(lambda: _cascade(judges, cascade))
    if issues:
        raise ConfigurationError(issues)
    return CriterionGrader(seats or (), **settings)


def _few_shot(given: Mapping[str, Any], folder: Path) -> FewShot:
    if message := missing_file(given["train"], folder=folder):
        raise ConfigurationError(message)
    return FewShot(**{**given, "train": RubricDataset.load(folder / given["train"])})


def _judges(given: Any) -> tuple[Judge, ...]:
    entries = given if isinstance(given, list) else [given]
    maps = [{"model": entry} if isinstance(entry, str) else entry for entry in entries]
    return tuple(Judge(**{**entry, "id": entry.get("id") or entry["model"]}) for entry in maps)


def _cascade(judges: tuple[Judge, ...], settings: Mapping[str, Any]) -> Cascade:
    if len(judges) < 2:
        raise ConfigurationError(
            "`cascade` needs two judges or more: the first is asked first, the others where unsure."
        )
    return Cascade(judges[0], judges[1:], **settings)
