"""Conversations and embedded files as people and judges read them: turns as lines, an image by its kind and size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+-]+=[\w.+-]+)*;base64,([A-Za-z0-9+/_-]+={0,2})")


def name_embedded_files(text: str) -> str:
    """A text in which each data URL is what it holds.

    >>> name_embedded_files("See data:image/png;base64,iVBORw0KGgo= there.")
    'See [image/png, 8 bytes] there.'
    """
    return _DATA_URL.sub(lambda match: f"[{match[1]}, {_size(match[2])}]", text)


def with_named_files(value: Any) -> Any:
    """A JSON value whose texts have each data URL as what it holds."""
    if isinstance(value, str):
        return name_embedded_files(value)
    if isinstance(value, Mapping):
        return {key: with_named_files(entry) for key, entry in value.items()}
    if isinstance(value, Sequence):
        return [with_named_files(entry) for entry in value]
    return value


def _size(base64: str) -> str:
    """How much a base64 text holds."""
    size = len(base64.rstrip("=")) * 3 // 4
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1_000:,.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:,.1f} MB"


def conversation_text(value: Any) -> str | None:
    r"""Messages with a role and a content as one line a turn; None where a value is something else.

    >>> conversation_text([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}])
    'user: Hello\nassistant: Hi'
    """
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return None
    if not all(isinstance(turn, Mapping) and turn.keys() == {"role", "content"} for turn in value):
        return None
    contents = [_content_text(turn["content"]) for turn in value]
    if any(content is None for content in contents):
        return None
    return "\n".join(f"{turn['role']}: {content}" for turn, content in zip(value, contents, strict=True))


def _content_text(content: Any) -> str | None:
    """A content that is text, or a list of texts and images; None for any other."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return None
    parts = [_part_text(part) for part in content]
    return None if None in parts else " ".join(map(str, parts))


def _part_text(part: Any) -> str | None:
    """A text, or the address of an image, of which a content consists."""
    match part:
        case {"type": "text", "text": str(text), **rest} if not rest:
            return text
        case {"type": "image_url", "image_url": {"url": str(address)}}:
            return address
    return None
