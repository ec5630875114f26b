"""Writes the plain data of a rubric as YAML, always in the same form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from deemster.formats.canonical_json import flow

_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9_ .,;()/'-]*[A-Za-z0-9_.,;()/'])?\Z")
# Words that some reader of YAML takes for a boolean or nothing.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def yaml_lines(fields: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a map in the block style of YAML; an option or the arguments of a check take one line."""
    for key, value in fields.items():
        if key in {"criteria", "sections"}:
            yield f"{key}:"
            for entry in value:
                yield from _indented(yaml_lines(entry), "- ")
        elif key == "options":
            yield f"{key}:"
            for entry in value:
                yield f"  - {{{', '.join(f'{name}: {_inline(one)}' for name, one in entry.items())}}}"
        elif key == "check":
            yield f"{key}:"
            yield from _indented((f"{name}: {_scalar(one)}" for name, one in value.items()), "")
        else:
            yield f"{key}: {_scalar(value)}"


def _indented(lines: Iterator[str], mark: str) -> Iterator[str]:
    first = True
    for line in lines:
        yield f"  {mark if first else ' ' * len(mark)}{line}"
        first = False


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.match(value) and value.casefold() not in _WORDS:
        return value
    return flow(value)


def _inline(value: Any) -> str:
    # Inside braces a comma ends a plain scalar.
    return flow(value) if isinstance(value, str) and "," in value else _scalar(value)
