"""Replaces `${VAR}` in the texts of a file by variables of the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from deemster.errors import visible

Keys: TypeAlias = tuple[str | int, ...]
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def expand_variables(
    value: Any,
    *,
    environ: Mapping[str, str],
    path: Keys = (),
    missing: Callable[[Keys, str], str],
    found: Callable[[str, str], object] | None = None,
) -> Any:
    """A value with `${VAR}` and `${VAR:-default}` replaced in all its texts; keys stay as they are.

    Args:
        value: Plain data.
        environ: Where variables are looked up; an empty one counts as unset.
        path: The path to the value.
        missing: Told the path and the name of a variable that is unset and has no default; gives what stands for it.
        found: Told the name and the value of each variable that is used.

    >>> expand_variables({"url": "${HOST:-localhost}/v1"}, environ={}, missing=lambda path, name: "")
    {'url': 'localhost/v1'}
    """

    def text(match: re.Match[str], path: Keys) -> str:
        name, default = match[1], match[2]
        if held := environ.get(name):
            if found is not None:
                found(name, held)
            return held
        return missing(path, name) if default is None else default

    def inside(value: Any, path: Keys) -> Any:
        if isinstance(value, Mapping):
            return {key: inside(entry, (*path, key)) for key, entry in value.items()}
        if isinstance(value, list):
            return [inside(entry, (*path, index)) for index, entry in enumerate(value)]
        return _VARIABLE.sub(lambda match: text(match, path), value) if isinstance(value, str) else value

    return inside(value, path)


def unset_variable_message(name: str) -> str:
    """What to say of a variable that is unset and has no default."""
    return f"The environment has no variable `{visible(name)}`; `${{{name}:-default}}` gives a default."
