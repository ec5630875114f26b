"""Encodes and decodes rows as JSON, and computes their check sums."""

from __future__ import annotations

import hashlib
import re
from binascii import crc32
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from deemster.records import (
    Cut,
    Exchange,
    Execution,
    Mark,
    MetricCard,
    Output,
    SampleContent,
    SampleLabels,
    TargetFailure,
)

LONGEST = 1 << 20
_WIDEST = 2**63
_SURROGATE = re.compile("[\ud800-\udfff]")


class StoredAnswer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What is kept of an execution beside its key and its marks."""

    answer: Output | TargetFailure | None
    valid: bool = True
    cut: Cut | None = None


def _encode_unknown(value: Any) -> Any:
    """A value of a type that JSON does not have: maps and what numpy has as such, anything else as its type's name."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if type(value).__module__ == "numpy" else f"<{type(value).__name__}>"


_encode = msgspec.json.Encoder(enc_hook=_encode_unknown).encode
_encode_sorted = msgspec.json.Encoder(enc_hook=_encode_unknown, order="sorted").encode
decode_execution = msgspec.json.Decoder(Execution).decode
decode_answer = msgspec.json.Decoder(StoredAnswer).decode
decode_marks = msgspec.json.Decoder(tuple[Mark, ...]).decode
decode_prompts = msgspec.json.Decoder(tuple[Exchange, ...]).decode
decode_content = msgspec.json.Decoder(SampleContent).decode
decode_labels = msgspec.json.Decoder(SampleLabels).decode
decode_mapping = msgspec.json.Decoder(dict[str, Any]).decode
decode_cards = msgspec.json.Decoder(tuple[MetricCard, ...]).decode


def content_checksum(row_hash: bytes, body: bytes) -> int:
    """The check sum of a row of `contents`: CRC-32 of its key and its body, as of every row of the store."""
    return crc32(body, crc32(row_hash))


def sample_checksum(position: int, name: bytes, row_hash: bytes, body: bytes) -> int:
    """The check sum of a row of `samples`."""
    return crc32(body, crc32(b"%d/%b%b" % (position, name, row_hash)))


def output_checksum(position: int, repetition: int, name: bytes, body: bytes) -> int:
    """The check sum of a row of `outputs`; it covers the id of the sample.

    >>> output_checksum(3, 0, b"a", b"{}") == output_checksum(3, 1, b"a", b"{}")
    False
    """
    return crc32(body, crc32(b"%d/%d/%b" % (position, repetition, name)))


def marks_checksum(scoring: int, position: int, repetition: int, body: bytes) -> int:
    """The check sum of a row of `marks`, of the marks as they came or of the final ones."""
    return crc32(body, crc32(b"%d/%d/%d/" % (scoring, position, repetition)))


def entry_checksum(position: int, body: bytes) -> int:
    """The check sum of a row of `columns`, and of the `entries` of earlier versions."""
    return crc32(body, crc32(b"%d/" % position))


def call_checksum(scoring: int, call: int, body: bytes) -> int:
    """The check sum of a row of `calls`."""
    return crc32(body, crc32(b"%d/%d/" % (scoring, call)))


def prompts_checksum(scoring: int, position: int, repetition: int, metric: int, body: bytes) -> int:
    """The check sum of a row of `prompts`."""
    return crc32(body, crc32(b"%d/%d/%d/%d/" % (scoring, position, repetition, metric)))


def label_checksum(key: Sequence[Any], body: bytes) -> int:
    """The check sum of a row of `labels`."""
    return crc32(body, crc32(_encode(key)))


def encode_execution(execution: Execution) -> bytes:
    """A whole execution as JSON, nothing of it cut."""
    try:
        return _encode(execution)
    except (UnicodeEncodeError, OverflowError, ValueError):
        return _encode(repair_value(msgspec.structs.replace(execution, valid=_is_valid(execution))))


def encode_answer(execution: Execution) -> bytes:
    """The answer of an execution as JSON; of an output above 1 MiB only a part, with the hash of its text."""
    try:
        body = _encode(StoredAnswer(execution.answer, execution.valid, execution.cut))
    except (UnicodeEncodeError, OverflowError, ValueError):
        body = _encode(repair_value(StoredAnswer(execution.answer, _is_valid(execution), execution.cut)))
    return body if len(body) <= LONGEST else _encode(_cut_answer(decode_answer(body)))


def encode_marks(marks: Sequence[Mark]) -> bytes:
    """Marks as JSON."""
    return encode_json(marks)


def encode_content(content: SampleContent) -> bytes:
    """The content of a sample as JSON with its keys in order, so that equal contents have equal bytes."""
    try:
        return _encode_sorted(content)
    except (UnicodeEncodeError, OverflowError, ValueError):
        return _encode_sorted(repair_value(content))


def encode_cards(cards: Sequence[MetricCard]) -> bytes:
    """Cards of metrics as JSON."""
    return _encode([(*card[:4], None if card.quotes is None else sorted(card.quotes), *card[5:]) for card in cards])


def encode_json(value: Any) -> bytes:
    """Any JSON value; lone surrogates are replaced and numbers that are too wide become text."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError, ValueError):
        return _encode(repair_value(value))


def clean_text(text: str) -> str:
    r"""Text that every database takes: without lone surrogates and zero bytes.

    >>> clean_text("a\0b") == "a\ufffdb"
    True
    """
    return _SURROGATE.sub("\ufffd", text).replace("\0", "\ufffd")


def encode_id(text: str) -> bytes:
    """A sample's id as the store keeps it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return str(repair_value(text)).encode()


def repair_value(value: Any) -> Any:
    """A value as plain data, with lone surrogates replaced and numbers too wide for the format as text."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {repair_value(key): repair_value(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [repair_value(entry) for entry in value]
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag
        plain = repair_value(msgspec.structs.asdict(value))
        return plain if tag is None else {"type": tag, **plain}
    if isinstance(value, int) and not -_WIDEST <= value < _WIDEST:
        return hex(value)
    return value


def _is_valid(execution: Execution) -> bool:
    answer = execution.answer
    return execution.valid and not (isinstance(answer, Output) and _SURROGATE.search(answer.text))


def _cut_answer(stored: StoredAnswer) -> StoredAnswer:
    """A part of an answer that is too large."""
    answer = stored.answer
    if isinstance(answer, TargetFailure):
        return msgspec.structs.replace(stored, answer=TargetFailure(_first_mebibyte(answer.message), answer.traceback))
    if answer is None or stored.cut is not None:
        return stored
    text = _first_mebibyte(answer.text)
    left_out = [name for name in ("retrieved", "trajectory") if len(_encode(getattr(answer, name))) > LONGEST]
    if len(text) == len(answer.text) and not left_out:
        return stored
    missing = Cut(len(answer.text), hashlib.sha256(answer.text.encode()).hexdigest(), tuple(left_out))
    smaller = msgspec.structs.replace(answer, text=text, **dict.fromkeys(left_out))
    return msgspec.structs.replace(stored, answer=smaller, cut=missing)


def _first_mebibyte(text: str) -> str:
    """The beginning of a text, cut between characters."""
    if len(text) * 4 <= LONGEST:
        return text
    data = text.encode()
    return text if len(data) <= LONGEST else data[:LONGEST].decode("utf-8", "ignore")
