"""The prompts of a promptfoo config, as the files of prompts that a suite names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from deemster.errors import InputError
from deemster.formats import Reading
from deemster.formats.strict_json import json_value
from deemster.formats.strict_yaml import yaml_document
from deemster.formats.yaml_flow import yaml_flow
from deemster.integrations.promptfoo.config_files import FILE, ConfigFiles, LeftOut, LeftOutError
from deemster.integrations.promptfoo.nunjucks import PromptText, prompt_text
from deemster.integrations.run_builder import as_map, as_text
from deemster.integrations.source_file import SourceFile

# What promptfoo asks where a config has no prompts.
_DEFAULT = "{{prompt}}"
_SEPARATOR = re.compile(r"^[ \t]*---[ \t]*\r?$", re.MULTILINE)
_LOOKS_LIKE_PATH = re.compile(r"\S+\.(?:txt|md|j2|json|jsonl|ya?ml|csv|[cm]?[jt]s|py)(?::\w+)?")
_BEGINS_A_CHAT = re.compile(r"\s*(?:\[\s*\{(?!\{)|- +['\"]?(?:role|content)['\"]?\s*:)")
_PROMPT_KEYS = frozenset({"id", "label", "raw", "content", "display"})
_TEXT_KEYS = frozenset({"raw", "content"})
_MESSAGE_KEYS = frozenset({"role", "content"})
# The roles of messages, and what they are here: that of a developer is another name of the system's.
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_NAME_LENGTH = 60


class SuitePrompt(NamedTuple):
    """A prompt of the suite.

    Attributes:
        name: Its name in `prompts`.
        labels: What the config calls it: a provider may name the prompts that it is asked.
        ending: The ending of its file: `txt`, `j2`, or `yml` for a list of messages.
        text: What stands in the file.
        plain: The prompt as one text with places, for a request that has it inside; None for a template of Jinja2.
        variables: The variables that it names.
    """

    name: str
    labels: frozenset[str]
    ending: str
    text: str
    plain: str | None
    variables: frozenset[str]

    @property
    def path(self) -> str:
        """Its file, relative to the suite."""
        return f"prompts/{self.name}.{self.ending}"


class _RawPrompt(NamedTuple):
    """A prompt as promptfoo reads it: its text, or its messages; and what it is called."""

    raw: Any
    label: str | None
    called: str


def read_prompts(config: Mapping[str, Any], files: ConfigFiles, left_out: LeftOut) -> list[SuitePrompt]:
    """The prompts that can be asked here; what cannot is noted."""
    entries = config.get("prompts")
    if entries is None:
        entries = [_DEFAULT]

    prompts: list[SuitePrompt] = []
    for index, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        path = ("prompts", index) if isinstance(config.get("prompts"), list) else ("prompts",)
        try:
            raw_prompts = list(_raw_prompts(entry, files))
        except LeftOutError as error:
            left_out.note(f"a prompt: {error}", path)
            continue
        for raw in raw_prompts:
            name = unique_name(raw.label or raw.called, [prompt.name for prompt in prompts], "prompt")
            try:
                prompts.append(_suite_prompt(raw, name))
            except LeftOutError as error:
                left_out.note(f"a prompt: {error}", path)
        # Beside a text and a label, the id says nothing more.
        is_named = isinstance(entry, dict) and "label" in entry and not _TEXT_KEYS.isdisjoint(entry)
        left_out.note_keys(as_map(entry), _PROMPT_KEYS - {"id"} if is_named else _PROMPT_KEYS, path, of="a prompt")
    return prompts


def unique_name(wanted: str, taken: list[str], otherwise: str) -> str:
    """A name of letters, digits and dashes, as no other has it."""
    name = re.sub(r"[^a-z0-9.]+", "-", wanted.lower())[:_NAME_LENGTH].strip("-.") or otherwise
    number = 1
    while (unique := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    return unique


def _raw_prompts(entry: Any, files: ConfigFiles) -> Iterator[_RawPrompt]:
    """The prompts of an entry: a text, a reference to files, or a map with either."""
    described = as_map(entry)
    label = as_text(described.get("label")) or as_text(described.get("display"))
    if isinstance(entry, dict):
        label = label or (None if _TEXT_KEYS.isdisjoint(entry) else as_text(entry.get("id")))
        entry = described.get("content") or described.get("raw") or described.get("id")
    if not isinstance(entry, str):
        raise LeftOutError("it is no text and no list of messages")

    if entry.startswith(FILE) or _LOOKS_LIKE_PATH.fullmatch(entry.strip()):
        for source in files.find(entry.strip()):
            yield from _prompts_of_file(source, label)
    else:
        yield _RawPrompt(entry, label, "prompt")


def _prompts_of_file(source: SourceFile, label: str | None) -> Iterator[_RawPrompt]:
    called = PurePosixPath(source.name).stem
    ending = source.path.suffix.lower()
    try:
        if ending == ".csv":
            for row in source.table:
                yield _RawPrompt(row.get("prompt", ""), row.get("label") or label, called)
            return
        if ending in (".yaml", ".yml"):
            yield _RawPrompt(source.document.value, label, called)
            return
        text = source.reading.text(source.data)
    except InputError as error:
        raise LeftOutError(f"`{source.name}` cannot be read: {error.issues[0].message}") from None

    parts = [text]
    if ending == ".txt":
        parts = _SEPARATOR.split(text)
    elif ending == ".jsonl":
        parts = text.splitlines()
    for part in parts:
        if part.strip():
            yield _RawPrompt(part.strip(), label, called)


def _suite_prompt(raw: _RawPrompt, name: str) -> SuitePrompt:
    labels = frozenset(label for label in (raw.label, raw.called) if label is not None)
    value = _as_chat(raw.raw)
    if not isinstance(value, list):
        text = prompt_text(str(value).strip())
        ending = "j2" if text.is_jinja else "txt"
        plain = None if text.is_jinja else text.text
        return SuitePrompt(name, labels, ending, text.text + "\n", plain, text.variables)

    contents = [_content(message) for message in value]
    if any(content.is_jinja for content in contents):
        raise LeftOutError("its messages hold more than places to be filled in")
    messages = [
        {"role": _ROLES[message["role"]], "content": content.text}
        for message, content in zip(value, contents, strict=True)
    ]
    lines = "".join(f"- {yaml_flow(message)}\n" for message in messages)
    variables = frozenset().union(*(content.variables for content in contents))
    return SuitePrompt(name, labels, "yml", lines, json.dumps(messages, ensure_ascii=False), variables)


def _as_chat(raw: Any) -> Any:
    """The messages of a prompt that is a conversation, as promptfoo finds them in its text; else the text."""
    if isinstance(raw, dict):
        raise LeftOutError("it is a map, not a text and not a list of messages")
    if isinstance(raw, list) or not _BEGINS_A_CHAT.match(raw):
        return raw
    try:
        if raw.lstrip().startswith("["):
            return json_value(raw.encode())
        return yaml_document(raw, Reading("prompt", error=InputError)).value
    except (ValueError, InputError):
        raise LeftOutError("it is a list of messages only after its variables are filled in") from None


def _content(message: Any) -> PromptText:
    parts = message.get("content") if isinstance(message, dict) else None
    if isinstance(parts, list) and len(parts) == 1:
        parts = as_map(parts[0]).get("text")
    if not isinstance(message, dict) or message.get("role") not in _ROLES or not isinstance(parts, str):
        raise LeftOutError("a message in it is not a role with a text")
    if not _MESSAGE_KEYS.issuperset(message):
        raise LeftOutError("a message in it has more than a role and a text")
    return prompt_text(parts)
