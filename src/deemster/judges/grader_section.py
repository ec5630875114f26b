"""A grader as a suite, a settings file or flags declare it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.errors import ConfigurationError, InputError, Issue, did_you_mean
from deemster.formats.json_values import kind_of
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.few_shot import FewShot
from deemster.judges.judge_cascade import Cascade
from deemster.judges.judge_panel import Judge
from deemster.rubrics.length_penalty import LengthPenalty

# Arguments of a grader that plain data can give as they are.
PLAIN = (
    "calls",
    "aggregation",
    "ordinal_aggregation",
    "nominal_aggregation",
    "abstention",
    "partial_credit",
    "normalize",
    "shuffle_options",
    "auto_na",
    "repeats",
    "seed",
    "system_prompt",
    "temperature",
    "max_tokens",
    "probabilities",
)
KEYS = ("judges", *PLAIN, "length_penalty", "few_shot", "cascade")
_JUDGE = Judge.__struct_fields__
_CASCADE = ("unsure_below", "by", "repeats")


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
    issues = [
        Issue(f"`{key}` is no setting of a grader. {did_you_mean(str(key), KEYS)}") for key in given if key not in KEYS
    ]
    parts = _Parts(issues)
    settings: dict[str, Any] = {key: given[key] for key in PLAIN if key in given}
    if given.get("length_penalty") is not None:
        settings["length_penalty"] = parts.made("length_penalty", given["length_penalty"], LengthPenalty)
    if given.get("few_shot") is not None:
        settings["few_shot"] = parts.few_shot(given["few_shot"], folder or Path())
    judges = parts.judges(given.get("judges", ()))
    if given.get("cascade") is not None and len(judges) > 1:
        judges = parts.cascade(given["cascade"], judges)
    elif given.get("cascade") is not None:
        issues.append(Issue("`cascade` needs two judges or more: the first is asked first, the others where unsure."))
    if issues:
        raise ConfigurationError(issues)
    return CriterionGrader(judges, **settings)


class _Parts:
    """Makes the parts of a grader and collects what is wrong with them."""

    def __init__(self, issues: list[Issue]) -> None:
        self._issues = issues

    def judges(self, given: Any) -> Any:
        """The judges, one by one: a role, or a map."""
        entries = [given] if isinstance(given, (str, Mapping)) else given
        if not isinstance(entries, Sequence):
            self._issues.append(Issue(f"`judges` is a list of roles, not {kind_of(given)}."))
            return ()
        return [judge for entry in entries if (judge := self._judge(entry)) is not None]

    def _judge(self, entry: Any) -> Judge | None:
        if isinstance(entry, Judge):
            return entry
        if isinstance(entry, str):
            entry = {"id": entry, "model": entry}
        if isinstance(entry, Mapping) and "model" in entry:
            entry = {"id": entry["model"], **entry}
        found: Judge | None = self.made("judges", entry, Judge)
        return found

    def cascade(self, given: Any, judges: Sequence[Judge]) -> Any:
        """The cascade whose first judge is the cheap one."""
        fields = self._fields("cascade", given, _CASCADE)
        try:
            return None if fields is None else Cascade(judges[0], tuple(judges[1:]), **fields)
        except ConfigurationError as error:
            self._issues += error.issues
            return None

    def few_shot(self, given: Any, folder: Path) -> FewShot | None:
        """Examples from a training split, which is read from its file."""
        fields = self._fields("few_shot", given, FewShot.__struct_fields__)
        if fields is None:
            return None
        train = fields.get("train")
        if not isinstance(train, str):
            self._issues.append(Issue("`few_shot` needs `train`, the path of a rubric dataset with labels."))
            return None
        try:
            return FewShot(**{**fields, "train": RubricDataset.load(folder / train)})
        except InputError as error:
            self._issues += error.issues
            return None

    def made(self, key: str, given: Any, kind: Any) -> Any:
        """A part made from a map of its arguments."""
        fields = self._fields(key, given, kind.__struct_fields__)
        if fields is None:
            return None
        lacking = [field.name for field in msgspec.structs.fields(kind) if field.required and field.name not in fields]
        if lacking:
            self._issues.append(Issue(f"`{key}` needs `{lacking[0]}`."))
            return None
        try:
            return kind(**fields)
        except ConfigurationError as error:
            self._issues += error.issues
            return None

    def _fields(self, key: str, given: Any, known: Sequence[str]) -> dict[str, Any] | None:
        if not isinstance(given, Mapping):
            self._issues.append(Issue(f"`{key}` is a map with keys such as `{known[0]}`, not {kind_of(given)}."))
            return None
        wrong = list(_unknown(key, given, known))
        self._issues += wrong
        return None if wrong else dict(given)


def _unknown(key: str, given: Mapping[str, Any], known: Sequence[str]) -> Iterator[Issue]:
    for name in given:
        if name not in known:
            yield Issue(f"`{name}` is no key of `{key}`. {did_you_mean(str(name), known)}")
