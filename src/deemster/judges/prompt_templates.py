"""Prompt templates: the files under `prompts/`, filled in one pass and identified by their hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Container, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from deemster.errors import ConfigurationError, did_you_mean, list_names, show_value
from deemster.records import Message

# The line between the system message and the user message in a prompt file.
DIVIDER = "\n=====\n"
_PLACE = re.compile(r"\{\{[ \t]*([A-Za-z_]\w*)[ \t]*\}\}")


class Prompt(msgspec.Struct, frozen=True):
    """A prompt with places for what changes from call to call.

    Attributes:
        system: The judge's task, the form of its reply, and the rule about data blocks.
        user: The case, with a place for each block.
        hash: The first sixteen digits of the SHA-256 of both.
    """

    system: str
    user: str
    hash: str = ""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "hash", text_hash(self.text))

    @property
    def text(self) -> str:
        """The whole prompt, as a person reads it."""
        return f"{self.system}{DIVIDER}{self.user}"

    def messages(self, values: Mapping[str, str], *, nonce: str) -> tuple[Message, Message]:
        """The two messages of one call.

        Args:
            values: What goes into each place: blocks, and words of ours.
            nonce: The digits of the blocks' marker lines.
        """
        every = {**values, "nonce": nonce}
        alone: Container[str] = ()
        if not (_has_own_lines(self.system) and _has_own_lines(self.user)):
            alone = {label for label, value in values.items() if value.startswith("<<< ") and value.endswith(nonce)}
        return (
            Message("system", fill_template(self.system, every, alone=alone)),
            Message("user", fill_template(self.user, every, alone=alone)),
        )


@lru_cache(maxsize=256)
def text_hash(text: str) -> str:
    """The first sixteen digits of the SHA-256 of a text.

    >>> text_hash("")
    'e3b0c44298fc1c14'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def fill_template(template: str, values: Mapping[str, str], *, alone: Container[str] = ()) -> str:
    r"""A template with its places filled in one pass: places within a value are not filled.

    A place without a value stays as it is.

    Args:
        template: A text with places.
        values: What goes into them, by name.
        alone: The names whose values get lines of their own, wherever their place stands.

    >>> fill_template("{{a}} and {{ b }}", {"a": "{{b}}", "b": "x"})
    '{{b}} and x'
    >>> fill_template("Is {{a}}?", {"a": "x"}, alone=("a",))
    'Is \nx\n?'
    """
    pieces, gaps = _split_template(template)
    parts = list(pieces)
    for at, name, before, after in gaps:
        value = values.get(name)
        if value is not None:
            parts[at] = f"{before}{value}{after}" if name in alone else value
    return "".join(parts)


class _Gap(NamedTuple):
    """A place in a template: which of its pieces it is, its name, and the line ends that set a block there apart."""

    at: int
    name: str
    before: str
    after: str


@lru_cache(maxsize=256)
def _split_template(template: str) -> tuple[list[str], list[_Gap]]:
    """The pieces of a template, with its places among them as they are written, and the places."""
    pieces: list[str] = []
    gaps: list[_Gap] = []
    last = 0
    for place in _PLACE.finditer(template):
        start, end = place.span()
        before = "" if not start or template[start - 1] == "\n" else "\n"
        after = "" if template.startswith("\n", end) or end == len(template) else "\n"
        gaps.append(_Gap(len(pieces) + 1, place[1], before, after))
        pieces += (template[last:start], place[0])
        last = end
    return [*pieces, template[last:]], gaps


@lru_cache(maxsize=256)
def _has_own_lines(template: str) -> bool:
    """Whether every place of a template but the nonce's has its own lines, so that a block needs none added."""
    return not any((gap.before or gap.after) and gap.name != "nonce" for gap in _split_template(template)[1])


def template_places(template: str) -> list[str]:
    """The names of a template's places, distinct, in order.

    >>> template_places("{{a}} {{b}} {{a}}")
    ['a', 'b']
    """
    return list(dict.fromkeys(_PLACE.findall(template)))


@lru_cache(maxsize=256)
def load_prompt(name: str, *, template: str | None = None) -> Prompt:
    """A prompt of this package.

    Args:
        name: The file under `prompts/`, without its extension.
        template: Replaces the user message; the system message, with the form of the reply and the rule about data
            blocks, stays.
    """
    system, _, user = prompt_file_text(name).partition(DIVIDER)
    return Prompt(
        f"{system.strip()}\n\n{prompt_file_text('blocks').strip()}", user.strip() if template is None else template
    )


@cache
def prompt_file_text(name: str) -> str:
    """The text of one file under `prompts/`."""
    return files(__package__).joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8")


def check_template(template: Any, *, known: Collection[str], needed: Collection[str], metric: str) -> str | None:
    """Refuse a user's template that does not fit its metric.

    Args:
        template: The value of the option.
        known: Every place it may have.
        needed: Places it must have.
        metric: The metric it is for.

    Raises:
        ConfigurationError: It is no text, names an unknown place, or lacks a needed one.
    """
    if template is None:
        return None
    if not isinstance(template, str) or not template.strip():
        raise ConfigurationError(f"`template` of {metric} is text, not {show_value(template)}.")
    check_unicode(template, called=f"`template` of {metric}")
    found = template_places(template)
    for name in found:
        if name not in known:
            raise ConfigurationError(
                f"`template` of {metric} has a place `{{{{{name}}}}}` that nothing fills. {did_you_mean(name, known)}"
            )
    lacking = [name for name in needed if name not in found]
    if lacking:
        hint = f"Write `{{{{{lacking[0]}}}}}` where it belongs."
        raise ConfigurationError(f"`template` of {metric} has no place for {list_names(lacking)}. {hint}")
    return template


def check_text(text: Any, *, option: str, metric: str) -> str:
    """Refuse a blank text; else the text without white space around it.

    Raises:
        ConfigurationError: It is blank, no text, or not valid Unicode.
    """
    if not isinstance(text, str) or not text.strip():
        raise ConfigurationError(f"`{option}` of {metric} is text that is not blank, not {show_value(text)}.")
    return check_unicode(text, called=f"`{option}` of {metric}").strip()


def check_unicode(text: str, *, called: str) -> str:
    """Refuse a text that cannot be sent.

    Raises:
        ConfigurationError: It holds a lone surrogate.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"{called} is not valid Unicode at character {error.start}.") from None
    return text
