"""Prompts of a chat target: messages with placeholders for a sample's input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deemster.errors import ConfigurationError, Issue, did_you_mean, visible
from deemster.formats import NO_DOCUMENT, Reading, missing_file, read_document
from deemster.formats.json_values import name_kind
from deemster.formats.schema_validation import Located, NonBlank, Places, any_shape, shape_issues
from deemster.records import Invocation, Message
from deemster.targets._request_template import compile_template, is_fixed, template_issues, value_text

TEMPLATE_FILE = ".j2"
TEXT_FILES = (".txt", ".md", ".prompt", TEMPLATE_FILE)
CHAT_FILES = (".yml", ".yaml", ".json")
# All that a prompt is given of a sample: what is expected is not among it.
_ROOTS = ("input",)
_CONVERSATION = re.compile(r"\s*\{\{\s*input\.messages\s*\}\}\s*")


class ChatMessage(msgspec.Struct, forbid_unknown_fields=True):
    """A message."""

    role: Literal["system", "user", "assistant"]
    content: str


class SystemAndUser(msgspec.Struct, forbid_unknown_fields=True):
    """A prompt."""

    user: NonBlank
    system: str | UnsetType = UNSET


Messages: TypeAlias = Annotated[list[ChatMessage], Meta(min_length=1)]
# A prompt as a suite holds it.
WrittenPrompt: TypeAlias = Annotated[
    Any, any_shape(str, SystemAndUser, Messages, title="a text, a path, a map of `system` and `user`, or messages")
]


class ChatPrompt(NamedTuple):
    """The messages of a chat, with placeholders such as `{{input.question}}`.

    Attributes:
        messages: The messages as they are written.
        is_template: Whether they are Jinja2 templates.
    """

    messages: tuple[Message, ...]
    is_template: bool = False

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same for every sample."""
        if self.is_template:
            return not any("input" in _jinja().template_names(entry.content, where=None) for entry in self.messages)
        return all(is_fixed(message.content) for message in self.messages)

    def fill(self, sample_input: Mapping[str, Any]) -> tuple[Message, ...]:
        """The messages for one sample.

        Args:
            sample_input: What the sample gives the target.

        Raises:
            LookupError: The input lacks something that a placeholder names.
        """
        if self.is_template:
            fill = _jinja().fill_template
            return tuple(entry._replace(content=fill(entry.content, sample_input)) for entry in self.messages)

        invocation = Invocation("", sample_input)
        messages: list[Message] = []
        for message in self.messages:
            is_conversation = _CONVERSATION.fullmatch(message.content) is not None
            written = message.content.strip() if is_conversation else message.content
            value = compile_template(written, roots=_ROOTS)(invocation)
            if is_conversation and not isinstance(value, str):
                messages += _conversation(value)
            else:
                messages.append(message._replace(content=value_text(value)))
        return tuple(messages)

    def to_json(self) -> Any:
        """It as plain data, from which `stored_prompt` makes it again."""
        messages = [message._asdict() for message in self.messages]
        return {"jinja2": messages} if self.is_template else messages


class PromptSource(NamedTuple):
    """Where a prompt is looked up.

    Attributes:
        prompts: The prompts that a suite names.
        folder: What paths are relative to.
    """

    prompts: Mapping[str, Any] = {}
    folder: Path = Path()


NO_SOURCE = PromptSource()


def read_prompt(written: Any, source: PromptSource = NO_SOURCE) -> ChatPrompt:
    """A prompt: the name of one of the suite's prompts, a path, a text, a map of `system` and `user`, or messages.

    Args:
        written: What stands in a suite or is given in a program.
        source: Where names and paths are looked up.

    Raises:
        ConfigurationError: It is none of these, or a placeholder names what no target is given.
    """
    if isinstance(written, str) and written in source.prompts:
        written = source.prompts[written]
    elif isinstance(written, str) and source.prompts and _looks_like_name(written):
        raise ConfigurationError(f"There is no prompt `{visible(written)}`. {did_you_mean(written, source.prompts)}")

    if isinstance(written, Path):
        return _read_file(str(written), source.folder)
    if isinstance(written, str) and _looks_like_path(written):
        return _read_file(written, source.folder)
    return _parse(written)


def _looks_like_name(text: str) -> bool:
    return not any(character.isspace() or character in "{./" for character in text)


def _looks_like_path(text: str) -> bool:
    return "\n" not in text and is_fixed(text) and text.lower().endswith(TEXT_FILES + CHAT_FILES)


def _read_file(written: str, folder: Path) -> ChatPrompt:
    path = folder / written
    if missing := missing_file(written, folder=folder):
        raise ConfigurationError(missing)
    if path.suffix.lower() in CHAT_FILES:
        document = read_document(path, error=ConfigurationError)
        return _parse(document.value, document)

    reading = Reading(str(path), error=ConfigurationError)
    text = reading.text(reading.content(path)).removesuffix("\n").removesuffix("\r")
    if path.suffix.lower() != TEMPLATE_FILE:
        return _parse(text, Places(lambda _: str(path)))
    _jinja().template_names(text, where=str(path))
    return ChatPrompt((Message("user", text),), is_template=True)


def stored_prompt(identity: Any) -> ChatPrompt | None:
    """The prompt of a chat target by its stored identity; None where it is of another kind, or damaged."""
    plain = identity.get("prompt") if isinstance(identity, Mapping) and "chat" in identity else None
    is_template = isinstance(plain, Mapping)
    messages: Any = plain.get("jinja2") if isinstance(plain, Mapping) else plain
    return None if shape_issues(messages, Messages) else ChatPrompt(_as_messages(messages), is_template)


def _jinja() -> Any:
    # It loads Jinja2, an extra that few prompts need.
    from deemster.targets import _jinja_prompt  # noqa: PLC0415

    return _jinja_prompt


def _parse(written: Any, document: Located = NO_DOCUMENT) -> ChatPrompt:
    where = document.where(())
    inside = Places(lambda path: document.where(path[1:]))
    if isinstance(written, str):
        issues = [] if written.strip() else [Issue("The prompt is empty.", where)]
        messages: Any = [{"role": "user", "content": written}]
    elif isinstance(written, Mapping):
        issues = shape_issues(written, SystemAndUser, document=inside, path=("prompt",))
        messages = [{"role": role, "content": written[role]} for role in ("system", "user") if role in written]
    elif isinstance(written, Sequence):
        issues = shape_issues(written, Messages, document=inside, path=("prompt",))
        messages = written
    else:
        what = "text, a path, a map of `system` and `user`, or a list of messages `{role: user, content: ...}`"
        raise ConfigurationError(Issue(f"A prompt is {what}, not {name_kind(written)}.", where))
    if issues:
        raise ConfigurationError(issues)

    prompt = ChatPrompt(_as_messages(messages))
    found = [template_issues(entry.content, ("prompt",), roots=_ROOTS) for entry in prompt.messages]
    if issues := [Issue(message, where) for _, message in chain.from_iterable(found)]:
        raise ConfigurationError(issues)
    return prompt


def _as_messages(entries: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
    return tuple(Message(entry["role"], entry["content"]) for entry in entries)


def _conversation(value: Any) -> tuple[Message, ...]:
    """The messages that an input holds as its conversation so far.

    Raises:
        LookupError: They are none.
    """
    for issue in shape_issues(value, Messages, path=("input", "messages")):
        raise LookupError(issue.message)
    return _as_messages(value)
