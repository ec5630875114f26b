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
# What Jinja2 has under the same name with the same meaning.
_STATEMENTS = frozenset({"for", "endfor", "if", "elif", "else", "endif", "set", "raw", "endraw"})
_FILTERS = frozenset(
    {
        "abs",
        "capitalize",
        "default",
        "first",
        "float",
        "int",
        "join",
        "last",
        "length",
        "list",
        "lower",
        "replace",
        "reverse",
        "round",
        "safe",
        "sort",
        "string",
        "title",
        "trim",
        "upper",
    }
)
_WORDS = frozenset({"and", "or", "not", "in", "is", "defined", "if", "else", "true", "false", "none", "loop"})
_ONLY_NUNJUCKS = re.compile(r"===|!==|&&|\|\||\?|\.length\b|\.(?!index0?\b|first\b|last\b)\w+\(")
_QUOTED = re.compile(r'"[^"]*"|\'[^\']*\'')
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_FILTER = re.compile(r"\|\s*([A-Za-z_]\w*)")
# Variables that promptfoo sets itself.
_OF_PROMPTFOO = frozenset({"env", "_conversation"})


class PromptText(NamedTuple):
    """A text of a prompt, as a suite has it.

    Attributes:
        text: The text.
        variables: The variables that it names.
        is_jinja: Whether it is a template of Jinja2, and not a text with places.
    """

    text: str
    variables: frozenset[str]
    is_jinja: bool = False


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
    tags = _TAG.findall(text)
    if not all(_PLACE.fullmatch(tag) for tag in tags):
        return _jinja_prompt(text, tags)

    variables = {_STEP.findall(tag)[0] for tag in tags}
    _refuse_variables_of_promptfoo(variables)
    return PromptText(_PLACE.sub(lambda place: f"{{{{input.{dotted_path(place[1])}}}}}", text), frozenset(variables))


def dotted_path(path: str) -> str:
    """A path as a suite has it, with dots in place of brackets.

    >>> dotted_path("choices[0]['text']")
    'choices.0.text'
    """
    return _BRACKETS.sub(r".\1", path)


def _refuse_variables_of_promptfoo(variables: set[str]) -> None:
    for name in sorted(variables & _OF_PROMPTFOO):
        raise LeftOutError(f"it reads `{name}`, which promptfoo fills in")


def _jinja_prompt(text: str, tags: list[str]) -> PromptText:
    """A prompt with loops, conditions or filters, where Jinja2 means the same by them."""
    set_inside: set[str] = set()
    variables: set[str] = set()
    for tag in tags:
        if tag.startswith("{#"):
            continue
        body = tag[2:-2].strip("-").strip()
        code = _QUOTED.sub('""', body)
        if tag.startswith("{%"):
            keyword, _, code = code.partition(" ")
            if keyword not in _STATEMENTS:
                raise _untranslatable(tag)
            set_inside.update(_names_set_by(keyword, code))
        if _ONLY_NUNJUCKS.search(code) or not _FILTERS.issuperset(_FILTER.findall(code)):
            raise _untranslatable(tag)
        variables.update(_NAME.findall(_FILTER.sub("", code)))

    variables -= set_inside | _WORDS
    _refuse_variables_of_promptfoo(variables)
    header = "".join(f"{{%- set {name} = input['{name}'] -%}}\n" for name in sorted(variables))
    return PromptText(header + text, frozenset(variables), is_jinja=True)


def _names_set_by(keyword: str, code: str) -> list[str]:
    """The names that a statement gives a meaning to."""
    if keyword == "for":
        return _NAME.findall(code.partition(" in ")[0])
    return _NAME.findall(code.partition("=")[0]) if keyword == "set" else []


def _untranslatable(tag: str) -> LeftOutError:
    return LeftOutError(f"`{visible(tag, limit=60)}` has no counterpart here")


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
