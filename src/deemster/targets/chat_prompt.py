"""Prompts of a chat target: messages with placeholders for a sample's input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

from deemster.errors import ConfigurationError, Issue, did_you_mean, visible
from deemster.formats import Reading, missing_file, read_document
from deemster.formats.json_values import name_kind
from deemster.records import Invocation, Message
from deemster.targets._request_template import compile_template, is_fixed, template_issues, value_text

SPEAKERS: tuple[str, ...] = get_args(get_type_hints(Message)["role"])
TEMPLATE_FILE = ".j2"
TEXT_FILES = (".txt", ".md", ".prompt", TEMPLATE_FILE)
CHAT_FILES = (".yml", ".yaml", ".json")
# All that a prompt is given of a sample: what is expected is not among it.
_ROOTS = ("input",)
_CONVERSATION = ("{{input.messages}}", "{{ input.messages }}")


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
            value = compile_template(message.content, roots=_ROOTS)(invocation)
            if message.content in _CONVERSATION and not isinstance(value, str):
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
        return _parse(document.value, where=document.where())

    reading = Reading(str(path), error=ConfigurationError)
    text = reading.text(reading.content(path)).removesuffix("\n").removesuffix("\r")
    if path.suffix.lower() != TEMPLATE_FILE:
        return _parse(text, where=str(path))
    _jinja().template_names(text, where=str(path))
    return ChatPrompt((Message("user", text),), is_template=True)


def stored_prompt(identity: Any) -> ChatPrompt | None:
    """The prompt of a chat target by its stored identity; None where it is of another kind, or damaged."""
    plain = identity.get("prompt") if isinstance(identity, Mapping) and "chat" in identity else None
    is_template = isinstance(plain, Mapping)
    messages = plain.get("jinja2") if isinstance(plain, Mapping) else plain
    if not isinstance(messages, list) or any(_issues(messages)):
        return None
    return ChatPrompt(_messages(messages), is_template)


def _jinja() -> Any:
    # It loads Jinja2, an extra that few prompts need.
    from deemster.targets import _jinja_prompt  # noqa: PLC0415

    return _jinja_prompt


def _parse(written: Any, *, where: str | None = None) -> ChatPrompt:
    issues = [Issue(message, where) for message in _issues(written)]
    if issues:
        raise ConfigurationError(issues)

    prompt = ChatPrompt(_messages(written))
    issues = [
        Issue(message, where)
        for entry in prompt.messages
        for _, message in template_issues(entry.content, ("prompt",), roots=_ROOTS)
    ]
    if issues:
        raise ConfigurationError(issues)
    return prompt


def _messages(written: Any) -> tuple[Message, ...]:
    if isinstance(written, str):
        return (Message("user", written),)
    if isinstance(written, Mapping):
        return tuple(Message(role, written[role]) for role in ("system", "user") if role in written)
    return tuple(Message(entry["role"], entry["content"]) for entry in written)


def _issues(written: Any) -> Iterator[str]:
    """What is wrong with the shape of a prompt."""
    if isinstance(written, str):
        if not written.strip():
            yield "The prompt is empty."
    elif isinstance(written, Mapping):
        for key in written:
            if key not in ("system", "user"):
                yield f"`{visible(str(key), limit=80)}` is no key of a prompt. A prompt has `system` and `user`."
        if "user" not in written:
            yield "The prompt has no `user`, the message that the model answers."
        for key, text in written.items():
            if key in ("system", "user") and not isinstance(text, str):
                yield f"`{key}` of a prompt is text, not {name_kind(text)}."
    elif isinstance(written, Sequence):
        if not written:
            yield "The prompt has no message."
        for entry in written:
            yield from message_issues(entry)
    else:
        yield (
            "A prompt is text, a path, a map of `system` and `user`, or a list of messages "
            f"`{{role: user, content: ...}}`, not {name_kind(written)}."
        )


def message_issues(entry: Any) -> Iterator[str]:
    """What is wrong with one message of a chat."""
    if not isinstance(entry, Mapping) or not {"role", "content"} <= entry.keys():
        yield f"A message is a map with `role` and `content`, not {name_kind(entry)}."
    elif entry["role"] not in SPEAKERS:
        yield f"The role of a message is `system`, `user` or `assistant`, not {entry['role']!r:.80}."
    elif not isinstance(entry["content"], str):
        yield f"The content of a message is text, not {name_kind(entry['content'])}."


def _conversation(value: Any) -> list[Message]:
    """The messages that an input holds as its conversation so far.

    Raises:
        LookupError: They are none.
    """
    entries = value if isinstance(value, (list, tuple)) else [value]
    for entry in entries:
        for message in message_issues(entry):
            raise LookupError(f"`input.messages` is a list of messages. {message}")
    return [Message(entry["role"], entry["content"]) for entry in entries]
