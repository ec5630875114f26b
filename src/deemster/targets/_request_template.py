"""Request templates: data with placeholders for a sample's input, such as `{{input.question}}`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from deemster.errors import ConfigurationError, Issue, did_you_mean, list_names, visible
from deemster.formats.json_values import name_kind, pointer, value_issues
from deemster.records import Invocation
from deemster.targets._json_path import parse_path, value_at

ROOTS = ("input", "id", "repetition", "settings")
# What has parts.
_MAPS = ("input", "settings")
_PLACE = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
# One that begins, and does not end before the next brace.
_UNCLOSED = re.compile(r"\{\{\s*(input\b[^{}]*)(?!\}\}|[^{}])")
_NEVER_GIVEN = ("expected_output", "expected", "metadata", "tags")
Path: TypeAlias = tuple[str | int, ...]
TemplateFiller: TypeAlias = Callable[[Invocation], Any]


def template_issues(value: Any, path: Path = ("body",), *, roots: Sequence[str] = ROOTS) -> Iterator[tuple[Path, str]]:
    """Everything that is wrong with a template, each with the path to it.

    Args:
        value: Plain data.
        path: The path to it.
        roots: What its placeholders may begin with.
    """
    yield from value_issues(value, path)
    yield from _place_issues(value, path, roots)


def _place_issues(value: Any, path: Path, roots: Sequence[str]) -> Iterator[tuple[Path, str]]:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if "{{" in str(key):
                yield (*path, key), f"`{pointer(path)}` has a placeholder in a key; they stand in values."
            yield from _place_issues(entry, (*path, key), roots)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _place_issues(entry, (*path, index), roots)
    elif isinstance(value, str):
        for place in _UNCLOSED.findall(value):
            yield path, f"`{{{{{visible(place.strip(), limit=80)}` is not closed: a placeholder ends with `}}}}`."
        for place in _PLACE.findall(value):
            if (message := _placeholder_issue(place, roots)) is not None:
                yield path, message


def _placeholder_issue(place: str, roots: Sequence[str]) -> str | None:
    """What is wrong with the path inside a placeholder; None where it is right."""
    try:
        root, *steps = parse_path(place)
    except ValueError as error:
        return f"`{{{{{visible(place, limit=80)}}}}}` is no placeholder: {error}"
    if root in _NEVER_GIVEN:
        there = list_names([f"{{{{{name}}}}}" for name in roots])
        return f"`{{{{{place}}}}}` is never given to a target. There is {there}."
    if root not in roots:
        near = did_you_mean(str(root), roots)
        inside = f" An entry of the input is `{{{{input.{visible(place, limit=80)}}}}}`." if not steps else ""
        return f"`{{{{{visible(place, limit=80)}}}}}` names nothing a target is given. {near}{inside}"
    return f"`{{{{{place}}}}}`: only the input has parts." if steps and root not in _MAPS else None


def compile_template(template: Any, *, roots: Sequence[str] = ROOTS) -> TemplateFiller:
    """A function that fills a template for an invocation, in one pass: filled-in text is not filled again.

    A text that is one placeholder and nothing else becomes the value with its type; in a longer text, text stays as it
    is and other values are written as compact JSON.

    Args:
        template: Plain data with placeholders such as `{{input.question}}`.
        roots: What its placeholders may begin with.

    Raises:
        ConfigurationError: A placeholder names nothing a target is given.

    >>> fill = compile_template({"q": "Capital of {{input.country}}?", "n": "{{repetition}}"})
    >>> fill(Invocation("a", {"country": "France"}, 1))
    {'q': 'Capital of France?', 'n': 1}
    """
    issues = [Issue(message) for _, message in template_issues(template, roots=roots)]
    if issues:
        raise ConfigurationError(issues)
    return _compile(template)


def is_fixed(value: str) -> bool:
    """Whether a text has no placeholder."""
    return _PLACE.search(value) is None


def _compile(template: Any) -> TemplateFiller:
    if isinstance(template, Mapping):
        entries = [(key, _compile(entry)) for key, entry in template.items()]
        return lambda invocation: {key: make(invocation) for key, make in entries}
    if isinstance(template, list):
        parts = [_compile(entry) for entry in template]
        return lambda invocation: [make(invocation) for make in parts]
    if not isinstance(template, str) or is_fixed(template):
        return lambda _: template
    only = _PLACE.fullmatch(template)
    # `{{a}} and {{b}}` is a full match of the pattern too, with the braces between inside.
    if only is not None and "{{" not in only[1]:
        return _value(only[1])
    texts = _PLACE.split(template)
    pieces = [_value(text) if number % 2 else text for number, text in enumerate(texts)]
    return lambda invocation: "".join(
        part if isinstance(part, str) else value_text(part(invocation)) for part in pieces
    )


def _value(place: str) -> TemplateFiller:
    root, *steps = parse_path(place)
    if root == "id":
        return lambda invocation: invocation.id
    if root == "repetition":
        return lambda invocation: invocation.repetition
    whole = "settings" if root == "settings" else "input"
    return lambda invocation: _part(getattr(invocation, whole), steps, whole)


def _part(given: Any, steps: list[str | int], whole: str) -> Any:
    """A part of the input or of the settings.

    Raises:
        LookupError: There is no such part.
    """
    try:
        return value_at(given, steps)
    except LookupError:
        names = [name for name in given if isinstance(name, str)]
        near = f" {did_you_mean(str(steps[0]), names)}" if names and steps[0] not in given else ""
        verb = "have" if whole == "settings" else "has"
        raise LookupError(f"The {whole} {verb} no `{pointer((whole, *steps))}`.{near}") from None


def value_text(value: Any) -> str:
    """A value inside a longer text: text as it is, anything else as compact JSON.

    Raises:
        LookupError: It is not JSON.
    """
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except TypeError:
        raise LookupError(f"The input holds {name_kind(value)}, which is not JSON.") from None
