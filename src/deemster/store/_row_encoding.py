"""How executions and samples are written as JSON, in the store and in the spool, and how damage to them is seen."""

from __future__ import annotations

import binascii
import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from deemster.records import Call, Cut, Execution, Mark, MetricCard, MetricScore, Output, TargetFailure, Unscored, Usage

LONGEST = 1 << 20
_WIDEST = 2**63
_SURROGATE = re.compile("[\ud800-\udfff]")


class Kept(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What is kept of an execution beside its key and its marks."""

    answer: Output | TargetFailure | None
    valid: bool = True
    cut: Cut | None = None


class _Counted(msgspec.Struct, frozen=True, gc=False, tag="score"):
    """What is counted of a score."""

    score: float
    threshold: float = 0.5
    higher_is_better: bool = True
    usage: Usage | None = None
    calls: tuple[Call, ...] = ()


class _Said(msgspec.Struct, frozen=True, gc=False, tag="output"):
    """What is counted of an output."""

    usage: Usage | None = None
    model: str | None = None


class _Heard(msgspec.Struct, frozen=True, gc=False):
    """What is counted of an answer."""

    answer: _Said | TargetFailure | None
    valid: bool = True
    cut: Cut | None = None


class _Seen(msgspec.Struct, frozen=True, gc=False):
    """What is counted of an execution."""

    position: int
    id: str
    repetition: int
    answer: _Said | TargetFailure | None
    marks: tuple[_Counted | Unscored, ...]
    valid: bool = True
    cut: Cut | None = None


class Content(msgspec.Struct, frozen=True, gc=False):
    """What a row hash is about."""

    expected_output: Any
    input: Any


class Labels(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a run saw of a sample beside its content."""

    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None


def _stranger(value: Any) -> Any:
    """A value of a type that JSON does not have: maps and what numpy has as such, anything else as its type's name."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if type(value).__module__ == "numpy" else f"<{type(value).__name__}>"


_encode = msgspec.json.Encoder(enc_hook=_stranger).encode
_encode_sorted = msgspec.json.Encoder(enc_hook=_stranger, order="sorted").encode
_execution = msgspec.json.Decoder(Execution).decode
answer_of = msgspec.json.Decoder(Kept).decode
marks_of = msgspec.json.Decoder(tuple[MetricScore | Unscored, ...]).decode
_counted = msgspec.json.Decoder(tuple[_Counted | Unscored, ...]).decode
_heard = msgspec.json.Decoder(_Heard).decode
_seen = msgspec.json.Decoder(_Seen).decode
content_of = msgspec.json.Decoder(Content).decode
labels_of = msgspec.json.Decoder(Labels).decode
mapping_of = msgspec.json.Decoder(dict[str, Any]).decode
cards_of = msgspec.json.Decoder(tuple[MetricCard, ...]).decode


def checksum(body: bytes, *key: int | bytes) -> int:
    """The check sum of a row: CRC-32 of its key and its body.

    >>> checksum(b"{}", 3, 0, b"a") == checksum(b"{}", 3, 1, b"a")
    False
    """
    total = 0
    for part in key:
        total = binascii.crc32(b"%d/" % part if type(part) is int else part, total)  # type: ignore[arg-type]
    return binascii.crc32(body, total)


def execution_body(execution: Execution) -> bytes:
    """A whole execution as JSON, nothing of it cut."""
    try:
        return _encode(execution)
    except (UnicodeEncodeError, OverflowError, ValueError):
        return _encode(repaired(msgspec.structs.replace(execution, valid=_is_valid(execution))))


def execution_of(body: bytes) -> Execution:
    """An execution from its JSON.

    Raises:
        msgspec.DecodeError: It is none.
    """
    return _execution(body)


def answer_body(execution: Execution) -> bytes:
    """The answer of an execution as JSON; of an output above 1 MiB only a part, with the hash of its text."""
    try:
        body = _encode(Kept(execution.answer, execution.valid, execution.cut))
    except (UnicodeEncodeError, OverflowError, ValueError):
        body = _encode(repaired(Kept(execution.answer, _is_valid(execution), execution.cut)))
    return body if len(body) <= LONGEST else _encode(_cut(answer_of(body)))


def lean_answer_of(body: bytes) -> Kept:
    """An answer without its text and all else that is only shown.

    Raises:
        msgspec.DecodeError: It is none.
    """
    heard = _heard(body)
    return Kept(_answer(heard.answer), heard.valid, heard.cut)


def lean_marks_of(body: bytes) -> tuple[Mark, ...]:
    """Marks without details and all else that is only shown.

    Raises:
        msgspec.DecodeError: They are none.
        ValueError: A score is out of its range.
    """
    return _marks(_counted(body))


def lean_execution_of(body: bytes) -> Execution:
    """An execution from its JSON, without what is only shown.

    Raises:
        msgspec.DecodeError: It is none.
    """
    seen = _seen(body)
    answer, marks = _answer(seen.answer), _marks(seen.marks)
    return Execution(seen.position, seen.id, seen.repetition, answer, marks, seen.valid, seen.cut)


def _answer(said: _Said | TargetFailure | None) -> Output | TargetFailure | None:
    return Output("", usage=said.usage, model=said.model) if isinstance(said, _Said) else said


def _marks(marks: tuple[_Counted | Unscored, ...]) -> tuple[Mark, ...]:
    return tuple([mark if isinstance(mark, Unscored) else _score(mark) for mark in marks])


def _score(mark: _Counted) -> MetricScore:
    if mark.usage is None and not mark.calls:
        return _bare(mark.score, mark.threshold, mark.higher_is_better)
    return MetricScore(
        mark.score,
        threshold=mark.threshold,
        higher_is_better=mark.higher_is_better,
        usage=mark.usage,
        calls=mark.calls,
    )


@functools.lru_cache(maxsize=4096)
def _bare(score: float, threshold: float, higher_is_better: bool) -> MetricScore:  # noqa: FBT001 - a cache takes no keywords fast
    # Scores repeat, most of all 0 and 1: one record stands for all that are equal.
    return MetricScore(score, threshold=threshold, higher_is_better=higher_is_better)


def marks_body(marks: Sequence[Mark]) -> bytes:
    """Marks as JSON."""
    return as_json(marks)


def content_body(expected_output: Any, sample_input: Any) -> bytes:
    """The content of a sample as JSON with its keys in order, so that equal contents have equal bytes."""
    content = Content(expected_output, sample_input)
    try:
        return _encode_sorted(content)
    except (UnicodeEncodeError, OverflowError, ValueError):
        return _encode_sorted(repaired(content))


def labels_body(tags: Sequence[str], metadata: Mapping[str, Any] | None) -> bytes:
    """The tags and metadata of a sample as JSON."""
    return as_json(Labels(tuple(tags), metadata))


def cards_body(cards: Sequence[MetricCard]) -> bytes:
    """Cards of metrics as JSON."""
    return _encode([(*card[:4], None if card.quotes is None else sorted(card.quotes), *card[5:]) for card in cards])


def as_json(value: Any) -> bytes:
    """Any JSON value; lone surrogates are replaced and numbers that are too wide become text."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError, ValueError):
        return _encode(repaired(value))


def line(text: str) -> str:
    r"""Text that every database takes: without lone surrogates and zero bytes.

    >>> line("a\0b") == "a\ufffdb"
    True
    """
    return _SURROGATE.sub("\ufffd", text).replace("\0", "\ufffd")


def identifier(text: str) -> bytes:
    """A sample's id as the store keeps it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return str(repaired(text)).encode()


def repaired(value: Any) -> Any:
    """A value as plain data, with lone surrogates replaced and numbers too wide for the format as text."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {repaired(key): repaired(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [repaired(entry) for entry in value]
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag
        plain = repaired(msgspec.structs.asdict(value))
        return plain if tag is None else {"type": tag, **plain}
    if isinstance(value, int) and not -_WIDEST <= value < _WIDEST:
        return hex(value)
    return value


def _is_valid(execution: Execution) -> bool:
    answer = execution.answer
    return execution.valid and not (isinstance(answer, Output) and _SURROGATE.search(answer.text))


def _cut(kept: Kept) -> Kept:
    """A part of an answer that is too large."""
    answer = kept.answer
    if isinstance(answer, TargetFailure):
        return msgspec.structs.replace(kept, answer=TargetFailure(_beginning(answer.message)))
    if answer is None or kept.cut is not None:
        return kept
    text = _beginning(answer.text)
    left_out = [name for name in ("retrieved", "trajectory") if len(_encode(getattr(answer, name))) > LONGEST]
    if len(text) == len(answer.text) and not left_out:
        return kept
    missing = Cut(len(answer.text), hashlib.sha256(answer.text.encode()).hexdigest(), tuple(left_out))
    smaller = msgspec.structs.replace(answer, text=text, **dict.fromkeys(left_out))
    return msgspec.structs.replace(kept, answer=smaller, cut=missing)


def _beginning(text: str) -> str:
    """The first MiB of a text, cut between characters."""
    if len(text) * 4 <= LONGEST:
        return text
    data = text.encode()
    return text if len(data) <= LONGEST else data[:LONGEST].decode("utf-8", "ignore")
