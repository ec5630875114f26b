"""The variants of a suite: prompts, models and settings side by side, each a name and a target of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from deemster.errors import ConfigurationError, Issue, did_you_mean, list_names
from deemster.evaluation.suite import Suite
from deemster.formats.schema_validation import shape_issues
from deemster.gate import Gate
from deemster.targets.target_section import TargetSection, read_target

# More than anyone reads side by side; a grid comes to it quickly.
MOST_VARIANTS = 200
_LONGEST_NAME = 60
_Keys: TypeAlias = Sequence[str | int]


class Variant(NamedTuple):
    """One of the targets that are compared.

    Attributes:
        name: Its name.
        levels: By factor of a grid, the level that it has; empty for one that has a name of its own.
        target: The target: as a suite declares it, or as a program gives it.
    """

    name: str
    levels: Mapping[str, str]
    target: Any

    def suite_of(self, suite: Suite) -> Suite:
        """The suite with this one as its target, and without any variants."""
        return suite._replace(target=self.target, variants=None)


class _Override(NamedTuple):
    """What a variant changes of the target, before they are joined.

    Attributes:
        name: The variant's name.
        levels: By factor, its level.
        section: The part of a target section that is its own.
        path: Where that stands in the suite.
    """

    name: str
    levels: Mapping[str, str]
    section: Mapping[str, Any]
    path: _Keys


def suite_variants(suite: Suite, *, calls_target: bool = True) -> list[Variant]:
    """The variants of a suite that has some, each with its target.

    Args:
        suite: The suite.
        calls_target: Whether targets are going to be called; otherwise the variables they name need not be set.

    Raises:
        ConfigurationError: Something in them cannot be used; all issues are listed.
    """
    variants: list[Variant] = []
    issues: list[Issue] = []

    for override in _overrides(suite):
        target, wrong = read_target(
            _joined_target(suite.document.value.get("target", {}), override.section),
            place=partial(_place, suite, override),
            environ=os.environ,
            folder=suite.folder or Path(),
            prompts=suite.prompts,
            calls=calls_target,
        )
        issues += wrong
        variants.append(Variant(override.name, override.levels, target))

    if issues:
        raise ConfigurationError(dict.fromkeys(issues))
    return variants


def given_variants(targets: Mapping[str, Any]) -> list[Variant]:
    """The variants that a program gives by name: targets, or saved outputs.

    Raises:
        ConfigurationError: They are none, or a name is no text of one line.
    """
    if not isinstance(targets, Mapping) or not targets:
        raise ConfigurationError("Variants are a map of at least one name to a target or saved outputs.")
    _check_names(list(targets), None)
    return [Variant(name, {}, target) for name, target in targets.items()]


def choose_variants(variants: Sequence[Variant], patterns: Sequence[str]) -> list[Variant]:
    """The variants that one of some names or globs fits, in their order; all without any.

    Raises:
        ConfigurationError: One of them fits none.
    """
    names = [variant.name for variant in variants]
    for pattern in patterns:
        if not any(_fits(name, pattern) for name in names):
            raise ConfigurationError(f"There is no variant `{pattern}`. {did_you_mean(pattern, names)}")
    return [variant for variant in variants if not patterns or any(_fits(variant.name, each) for each in patterns)]


class VariantGates:
    """The gates of the variants of a suite, in which variants do not occur.

    A gate that names variants holds for them alone. Where it compares with a variant, that one compares with nothing.

    Args:
        suite: The suite.
        variants: All its variants.
        run: The names of those that are run.

    Attributes:
        baseline: The variant that is run and with which the others are compared; None for none.

    Raises:
        ConfigurationError: The gate names a variant that there is not.
    """

    def __init__(self, suite: Suite, variants: Sequence[Variant], run: Sequence[str]) -> None:
        gate = msgspec.to_builtins(suite.gate) if isinstance(suite.gate, Gate) else suite.gate
        self._gate: Any = gate
        self._patterns: Sequence[str] | None = None
        self._compared: Any = None
        self.baseline: str | None = None
        if not isinstance(gate, Mapping) or shape_issues(gate, Gate):
            return

        self._gate = {key: value for key, value in gate.items() if key != "variants"}
        self._patterns = gate.get("variants")
        names = [variant.name for variant in variants]
        for pattern in self._patterns or ():
            if not any(_fits(name, pattern) for name in names):
                message = f"`gate.variants`: there is no variant `{pattern}`. {did_you_mean(pattern, names)}"
                raise ConfigurationError(Issue(message, suite.document.where(("gate", "variants"))))

        self._compared = gate.get("baseline", {}).get("compare")
        self.baseline = self._compared if self._compared in run else None

    def of(self, name: str, *, experiment: str) -> Any:
        """The gate of one variant, as a suite says it.

        Args:
            name: The variant.
            experiment: The id of the experiment, by which the run of another variant is found.
        """
        if self._patterns is not None and not any(_fits(name, pattern) for pattern in self._patterns):
            return {}
        if name == self._compared:
            return {key: value for key, value in self._gate.items() if key != "baseline"}
        if self.baseline is not None:
            return {**self._gate, "baseline": {**self._gate["baseline"], "compare": f"{experiment}/{self.baseline}"}}
        return self._gate


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def _overrides(suite: Suite) -> list[_Override]:
    """What each variant changes of the target.

    Raises:
        ConfigurationError: They are too many, share a name, overlap, or are neither a grid nor named.
    """
    section = suite.variants or {}
    where = suite.document.where
    lists = [key for key, value in section.items() if isinstance(value, list)]
    maps = [key for key in section if key not in lists]
    if lists and maps:
        message = (
            "Variants are a grid, where every key has a list, or named, where every name has a map. "
            f"With a list: {list_names(lists)}. Without: {list_names(maps)}."
        )
        raise ConfigurationError(Issue(message, where(("variants", maps[0]))))

    for key in lists:
        whole = next((other for other in lists if key.startswith(f"{other}.")), None)
        if whole is not None:
            message = f"`{key}` is a part of `{whole}`, and a grid has each of them once: give one of the two."
            raise ConfigurationError(Issue(message, where(("variants", key))))

    count = prod(len(section[key]) for key in lists) if lists else len(maps)
    if count > MOST_VARIANTS:
        message = f"These are {count:,} variants, more than {MOST_VARIANTS} at once: name fewer levels."
        raise ConfigurationError(Issue(message, where(("variants",))))

    overrides = list(_grid(section)) if lists else [_named(name, section[name]) for name in maps]
    _check_names([override.name for override in overrides], where(("variants",)))
    return overrides


def _named(name: str, section: Mapping[str, Any] | None) -> _Override:
    return _Override(name, {}, section or {}, ("variants", name))


def _grid(section: Mapping[str, Sequence[Any]]) -> Iterator[_Override]:
    """Every combination of the levels of a grid, the last factor changing fastest."""
    factors = [[_Level.of(key, index, value) for index, value in enumerate(levels)] for key, levels in section.items()]

    for levels in product(*factors):
        own: dict[str, Any] = {}
        for level in levels:
            own = _merged(own, _nested(level.factor.split("."), level.value))
        name = " / ".join(level.short_name for level in levels)
        yield _Override(name, {level.factor: level.name for level in levels}, own, ("variants",))


class _Level(NamedTuple):
    """A level of a factor of a grid.

    Attributes:
        factor: The factor: a key of the target, with dots between keys of maps in it.
        value: What the key has.
        name: What the level is called beside its factor.
        short_name: What it is called in the name of a variant, where the factor is not named.
    """

    factor: str
    value: Any
    name: str
    short_name: str

    @classmethod
    def of(cls, factor: str, index: int, value: Any) -> _Level:
        """A level with its names: a short text is its own, a number or a switch has its key before it, others a number.

        >>> _Level.of("prompt", 0, "polite").short_name, _Level.of("settings.skill", 1, False).short_name
        ('polite', 'skill=false')
        >>> _Level.of("prompt", 1, {"user": "{{input}}"}).short_name
        'prompt 2'
        """
        key = factor.rpartition(".")[2]
        if isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= _LONGEST_NAME:
            return cls(factor, value, value, value)
        if isinstance(value, (bool, int, float)):
            name = str(value).lower()
            return cls(factor, value, name, f"{key}={name}")
        return cls(factor, value, f"{key} {index + 1}", f"{key} {index + 1}")


def _nested(keys: Sequence[str], value: Any) -> Any:
    """A value below some keys.

    >>> _nested(["settings", "skill"], True)
    {'settings': {'skill': True}}
    """
    for key in reversed(keys):
        value = {key: value}
    return value


def _joined_target(base: Any, own: Mapping[str, Any]) -> Any:
    """A target section with what a variant changes of it; another kind of target takes the place of all of it."""
    if not isinstance(base, Mapping):
        return base
    kinds = [kind for kind in TargetSection.one_of if kind in own]
    if kinds and not any(kind in base for kind in kinds):
        return own
    return _merged(base, own)


def _merged(base: Any, own: Any) -> Any:
    """Maps joined key by key, at every depth; anything else is replaced.

    >>> _merged({"a": 1, "b": {"c": [1, 2]}}, {"b": {"c": [3], "d": 4}})
    {'a': 1, 'b': {'c': [3], 'd': 4}}
    """
    if not isinstance(base, Mapping) or not isinstance(own, Mapping):
        return own
    return {**base, **{key: _merged(base.get(key), value) for key, value in own.items()}}


def _place(suite: Suite, override: _Override, keys: _Keys) -> str | None:
    """Where a value of a joined target stands, by its keys: in the variant that says it, else in the target."""
    value: Any = override.section
    for key in keys[1:]:
        if not isinstance(value, Mapping):
            break
        if key not in value:
            return suite.document.where(keys)
        value = value[key]
    return suite.document.where(override.path)


def _check_names(names: Sequence[Any], where: str | None) -> None:
    """Refuse names that are not the name of one variant alone.

    Raises:
        ConfigurationError: There are such names.
    """
    twice = [name for index, name in enumerate(names) if name in names[:index]]
    if twice:
        raise ConfigurationError(Issue(f"Two variants are called {list_names(dict.fromkeys(twice))}.", where))

    issues = [
        Issue(f"The name of a variant is a text of one line, not {name!r:.60}.", where)
        for name in names
        if not isinstance(name, str) or not name.strip() or not name.isprintable()
    ]
    if issues:
        raise ConfigurationError(issues)
