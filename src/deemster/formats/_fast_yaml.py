"""Reads YAML datasets fast with `ryaml`, where that is certainly the same as `strict_yaml`.

`strict_yaml` decides whatever this reader does not recognise, and every failure. `ryaml` is a Rust port of libyaml.
It reads only what a dataset looks like, a map that ends with a block list called `samples`, and hands the list over in
small pieces, each a run of whole entries. A piece is bounded because libyaml needs time that grows with depth times
length. Where two readers of the same grammar give scalars another meaning, the bytes are looked for beforehand.
See docs/decisions/0002-yaml-fast-path.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from deemster.errors import DatasetError
from deemster.formats.document import Reading
from deemster.formats.strict_yaml import yaml_document

PIECE = 8_192
EFFORT = 200_000_000
_SAMPLES = re.compile(rb"^samples:[ ]*(?:#[^\n]*)?\r?\n", re.MULTILINE)
_FIRST_ENTRY = re.compile(rb"(?:[ ]*(?:#[^\n]*)?\r?\n)*([ ]*)- ")
_SIGNS = (b"<<", b"\n---", b"\n...", b"\n%", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
# Every pattern begins with a literal and looks back afterwards, so that the search runs at the speed of memchr.
_CONSTRUCTS = (
    rb"!(?<=[\s\[{,:?-]!)",
    rb"&(?<=[\s\[{,:?-]&)[A-Za-z0-9_-]",
    rb"\r(?!\n)",
    rb"0(?<=[\s\[{,:?]0)[0-9]+[ \t]*(?:[\r\n,\]}]|#|:\s|\Z)",
    rb"0b(?<=[\s\[{,:?]0b)[01]",
    rb"-0(?<=[\s\[{,:?]-0)[0-9xob]",
    rb"\+0(?<=[\s\[{,:?]\+0)[0-9xob]",
    rb"0x[0-9a-fA-F]{16}",
    rb"0o[0-7]{21}",
    rb"e(?<=[0-9.]e)\+?[0-9]{3,}(?![0-9A-Za-z_.-])",
    rb"E(?<=[0-9.]E)\+?[0-9]{3,}(?![0-9A-Za-z_.-])",
)
_PATTERNS = tuple(re.compile(pattern) for pattern in _CONSTRUCTS)
_ZEROS = bytes(0x30 if 0x30 <= code <= 0x39 else code for code in range(256))
_MANY_DIGITS = b"0" * 19


def yaml_value(data: bytes) -> Any:
    """The value of a YAML dataset.

    Raises:
        ValueError: The precise reader must decide.
    """
    try:
        import ryaml  # noqa: PLC0415 - not on every platform
    except ImportError:
        raise ValueError("ryaml is not installed") from None
    loads: Any = ryaml.loads  # type: ignore[attr-defined,unused-ignore]
    found = _SAMPLES.search(data)
    if found is None:
        raise ValueError("there is no block list of samples")
    body = data[found.end() :]
    if not is_certain(body):
        raise ValueError("the two readers may differ")
    head = data[: found.end()].decode("utf-8-sig")
    value = yaml_document(head, Reading("", error=DatasetError)).value
    if not isinstance(value, dict) or value.get("samples", "") is not None:
        raise ValueError("samples is not the last key")
    samples: list[Any] = []
    for piece in _pieces(body):
        entries = loads(piece.decode())
        if type(entries) is not list:
            raise ValueError("a piece is not a list")
        samples += entries
    value["samples"] = samples
    return value


def is_certain(body: bytes) -> bool:
    """Whether nothing in the bytes could be read differently by the two readers."""
    if any(sign in body for sign in _SIGNS) or _MANY_DIGITS in body.translate(_ZEROS):
        return False
    return not any(pattern.search(body) for pattern in _PATTERNS)


def _pieces(body: bytes) -> Iterator[bytes]:
    """Runs of whole entries.

    A line that begins an entry at the list's own column cannot stand inside a block or plain scalar. If it stands in a
    quoted scalar or a flow collection, the piece before it ends in the middle of that and cannot be parsed.
    """
    first = _FIRST_ENTRY.match(body)
    if first is None:
        raise ValueError("the samples are not a block list")
    mark = b"\n" + first[1] + b"- "
    start = 0
    while start < len(body):
        end = body.find(mark, start + PIECE) + 1 or len(body)
        piece = body[start:end]
        if len(piece) * (piece.count(b"[") + piece.count(b"{")) > EFFORT:
            raise ValueError("an entry is too large to be read safely")
        yield piece
        start = end
