"""Conditions on samples: which tags, keys and values they have. A metric's `where` is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from deemster.datasets.only_expression import value_text
from deemster.datasets.sample_selection import Selection, as_entries, has_one, has_tag, has_value
from deemster.errors import ConfigurationError, Issue, did_you_mean, show_value, visible
from deemster.records import Sample, Where, freeze

AUTO: Literal["auto"] = "auto"
GivenWhere: TypeAlias = Where | Literal["auto"]
_KEYS = ("tags", "has", "metadata")
_LONGEST = 60


def parse_condition(given: Any, *, called: str) -> GivenWhere:
    """The `where` of a metric as it is given: `auto`, or a map with `tags`, `has` or `metadata`.

    Args:
        given: What a suite or a program says.
        called: The metric, as messages name it.

    Raises:
        ConfigurationError: It is something else; every issue is given.

    >>> parse_condition({"tags": "policy", "metadata": {"lang": ["de", "fr"]}}, called="rouge-l")
    Where(tags=('policy',), has=(), metadata={'lang': ('de', 'fr')}, auto=False)
    """
    if isinstance(given, Where) or given == AUTO:
        return given  # type: ignore[no-any-return]
    own = f"`where` of `{called}`"
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"{own} is `auto` or a map with `tags`, `has` or `metadata`, not {show_value(given)}.")
    issues = [
        Issue(f"{own} has no key {show_value(key)}. {did_you_mean(key if isinstance(key, str) else '', _KEYS)}")
        for key in given
        if key not in _KEYS
    ]
    issues += _name_issues(given, own)
    metadata = given.get("metadata", {})
    if not isinstance(metadata, Mapping):
        issues.append(Issue(f"`metadata` in {own} is a map of keys to values, not {show_value(metadata)}."))
    else:
        issues += [
            Issue(f"`metadata` in {own} maps {show_value(key)} to a value or a list of values, not to a map.")
            for key, value in metadata.items()
            if not isinstance(key, str) or any(isinstance(each, (Mapping, list, tuple)) for each in as_entries(value))
        ]
    if not issues and not any(given.values()):
        issues.append(Issue(f"{own} is empty. Give `tags`, `has` or `metadata`, or leave it out."))
    if issues:
        raise ConfigurationError(issues)
    wanted = {key: as_entries(value) for key, value in metadata.items()}
    return Where(as_entries(given.get("tags", ())), as_entries(given.get("has", ())), freeze(wanted, path="where"))


def _name_issues(given: Mapping[str, Any], own: str) -> Iterator[Issue]:
    for key, example in (("tags", "policy"), ("has", "citations")):
        names = as_entries(given.get(key, ()))
        if not all(isinstance(name, str) and all(part.strip() for part in name.split("|")) for name in names):
            yield Issue(f"`{key}` in {own} is text or a list of texts, such as `{example}`.")


def applies(where: Where | None, sample: Sample) -> bool:
    """Whether a metric with this `where` applies to a sample; without one it applies to all.

    >>> applies(Where(has=("citations",)), Sample("s", {}, None, {"citations": ["[1]"]}))
    True
    """
    return where is None or (
        (not where.tags or has_tag(sample, where.tags))
        and all(has_one(sample, names.split("|")) for names in where.has)
        and all(has_value(sample, f"metadata.{key}", values) for key, values in where.metadata.items())
    )


def where_selection(where: Where) -> Selection:
    """The same condition as a selection of samples, which can say what no sample has."""
    wanted = {f"metadata.{key}": values for key, values in where.metadata.items()}
    return Selection(tags=where.tags, where=wanted, has=where.has)


def describe_where(where: Where) -> str:
    """A condition in words.

    >>> describe_where(Where(("policy", "faq"), ("citations|quotes",), {"lang": ("de",)}))
    'tag policy or faq; has citations or quotes; metadata.lang is de'
    """
    parts = [f"tag {_either(where.tags)}"] if where.tags else []
    parts += [f"has {_either(names.split('|'))}" for names in where.has]
    # Values may be left out on purpose.
    parts += [f"metadata.{visible(key)} is {_either(values) or '...'}" for key, values in where.metadata.items()]
    return "; ".join(parts)


def _either(values: Iterable[Any]) -> str:
    return " or ".join(visible(value_text(value), limit=_LONGEST) for value in values)
