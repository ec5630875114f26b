"""Templates of promptfoo, which are written in Nunjucks: filled in, or as prompts of a suite."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from deemster.errors import visible
from deemster.integrations.promptfoo.config_files import LeftOutError

_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_PATH = r"[A-Za-z_]\w*(?:\.\w+|\[\d+\]|\[\"\w+\"\]|\['\w+'\])*"
_PLACE = re.compile(rf"\{{\{{-?\s*({_PATH})\s*-?\}}\}}")
_BRACKETS = re.compile(r"""\.?\[["']?(\w+)["']?\]""")
_STEP = re.compile(r"\w+")
# Variables that promptfoo sets itself.
_OF_PROMPTFOO = frozenset({"env", "_conversation"})


class PromptText(NamedTuple):
    """A text of a prompt, as a suite has it.

    Attributes:
        text: The text.
        variables: The variables that it names.
    """

    text: str
    variables: frozenset[str]


def has_template(text: str) -> bool:
    """Whether a text holds anything to be filled in."""
    return _TAG.search(text) is not None


def prompt_text(text: str) -> PromptText:
    """A text of a prompt with places of a suite: `{{name}}` is `{{input.name}}` there.

    Raises:
        LeftOutError: It holds what has no counterpart.

    >>> prompt_text("Tell me about {{topic}}.").text
    'Tell me about {{input.topic}}.'
    """
    variables = set()
    for tag in _TAG.findall(text):
        if _PLACE.fullmatch(tag) is None:
            raise LeftOutError(f"`{visible(tag, limit=60)}` has no counterpart here")
        variables.add(_STEP.findall(tag)[0])
    for name in sorted(variables & _OF_PROMPTFOO):
        raise LeftOutError(f"it reads `{name}`, which promptfoo fills in")
    return PromptText(_PLACE.sub(lambda place: f"{{{{input.{dotted_path(place[1])}}}}}", text), frozenset(variables))


def dotted_path(path: str) -> str:
    """A path as a suite has it, with dots in place of brackets.

    >>> dotted_path("choices[0]['text']")
    'choices.0.text'
    """
    return _BRACKETS.sub(r".\1", path)


def fill_in(value: Any, variables: Mapping[str, Any]) -> Any:
    """A value with `{{name}}` and `{{name.key[0]}}` replaced by the variable, once.

    Raises:
        LeftOutError: It holds a template of another kind, or names no variable.
    """
    if isinstance(value, list):
        return [fill_in(part, variables) for part in value]
    if isinstance(value, dict):
        return {key: fill_in(part, variables) for key, part in value.items()}
    return _TAG.sub(lambda tag: _variable_text(tag[0], variables), value) if isinstance(value, str) else value


def _variable_text(tag: str, variables: Mapping[str, Any]) -> str:
    place = _PLACE.fullmatch(tag)
    steps = _STEP.findall(place[1]) if place else []
    value: Any = variables if steps else None
    for step in steps:
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            value = None
    if not isinstance(value, (str, int, float)):
        raise LeftOutError(f"the template `{visible(tag, limit=60)}` is not filled in")
    return json.dumps(value) if isinstance(value, bool) else str(value)
