"""Reads a section of a file: replaces `${VAR}` by variables of the environment, then checks the declared shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from deemster.errors import Issue, visible
from deemster.formats.json_values import to_json_value
from deemster.formats.schema_validation import Places, shape_issues

Keys: TypeAlias = tuple[str | int, ...]
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class ExpandedSection(NamedTuple):
    """A section of a file with its variables replaced.

    Attributes:
        value: Plain data; `unset` stands for a variable that is unset and has no default.
        issues: What is wrong with its shape.
        unset: An issue for every variable that is unset and has no default.
        variables: The path of each text, and the name and the value of a variable in it.
    """

    value: Any
    issues: list[Issue]
    unset: list[Issue]
    variables: list[tuple[Keys, str, str]]


def read_section(
    value: Any, shape: Any, *, path: Keys, environ: Mapping[str, str], place: Callable[[Keys], str | None]
) -> ExpandedSection:
    """Replace `${VAR}` and `${VAR:-default}` in all texts of a section, keys apart, and check its shape.

    Args:
        value: The section; mappings and tuples are read as a file's maps and lists.
        shape: The type that declares it.
        path: The path to the section.
        environ: Where variables are looked up; an empty one counts as unset.
        place: Gives the place of a path.

    >>> read_section({"url": "${HOST:-localhost}/v1"}, dict, path=(), environ={}, place=str).value
    {'url': 'localhost/v1'}
    """
    unset: list[Issue] = []
    variables: list[tuple[Keys, str, str]] = []

    def replace(match: re.Match[str], path: Keys) -> str:
        name, default = match[1], match[2]
        if found := environ.get(name):
            variables.append((path, name, found))
            return found
        if default is None:
            message = f"The environment has no variable `{visible(name)}`; `${{{name}:-default}}` gives a default."
            unset.append(Issue(message, place(path)))
            return "unset"
        return default

    def expand(value: Any, path: Keys) -> Any:
        if isinstance(value, dict):
            return {key: expand(entry, (*path, key)) for key, entry in value.items()}
        if isinstance(value, list):
            return [expand(entry, (*path, index)) for index, entry in enumerate(value)]
        return _VARIABLE.sub(lambda match: replace(match, path), value) if isinstance(value, str) else value

    expanded = expand(to_json_value(value), path)
    issues = shape_issues(expanded, shape, document=Places(place), path=path)
    return ExpandedSection(expanded, issues, unset, variables)
