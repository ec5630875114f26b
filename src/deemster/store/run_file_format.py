"""The format of a run file, `deemster.run.v1`: the shape of its lines, and their parser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from deemster.errors import did_you_mean, list_names, visible
from deemster.formats.document import DEPTH
from deemster.formats.strict_json import json_value
from deemster.records import Mark, MetricCard, SampleFacts, Where
from deemster.records.sample_facts import Count, Hex, Name
from deemster.store._row_encoding import StoredAnswer
from deemster.store.run_facts import Id, LabelFacts, Plain, RunFacts, ScoringFacts

SCHEMA: Literal["deemster.run.v1"] = "deemster.run.v1"
# The longest line that is read: it bounds the memory that a hostile file can take.
LONGEST = 16 * 1024 * 1024


class _Line(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, tag_field="line"):
    """A line after the first one; `line` says which."""


class RunLine(RunFacts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="line", tag="run"):
    """What a run is, and how it ended."""

    # A run that belongs to none lacks the key, as in files of earlier versions.
    experiment: Id | UnsetType = UNSET  # type: ignore[assignment]


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A metric of a scoring."""

    name: Name
    spec: str
    identity: str
    family: str
    quotes: tuple[str, ...] | None
    threshold: float | None
    higher_is_better: bool
    parts: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    where: Where | None = None


class ScoringLine(ScoringFacts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="line", tag="scoring"):
    """A pass of metrics over the outputs of the run."""

    cards: tuple[Card, ...]  # type: ignore[assignment]


class SampleLine(SampleFacts, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="line", tag="sample"):
    """A sample as the run saw it; `content` is null where input and expected output are not kept."""


class OutputLine(_Line, frozen=True, kw_only=True, tag="output"):
    """An output of the target; `body.cut` says what is missing from an output that was too long."""

    position: Count
    repetition: Count
    at: Plain | None
    body: StoredAnswer


class MarksLine(_Line, frozen=True, kw_only=True, tag="marks"):
    """How an output was marked, in the order of the scoring's metrics; `final` is what settling made of it."""

    scoring: Count
    position: Count
    repetition: Count
    marks: tuple[Mark, ...]
    final: tuple[Mark, ...] | None


class EntryLine(_Line, frozen=True, kw_only=True, tag="entry"):
    """An item of a grading with its votes, as earlier versions wrote it: now it is an output with marks."""

    position: Count
    body: dict[str, Any]


class LabelLine(_Line, frozen=True, kw_only=True, tag="label"):
    """What a person said of a sample."""

    body: LabelFacts


class EndLine(_Line, frozen=True, kw_only=True, omit_defaults=True, tag="end"):
    """How many lines of each kind the run has, and the SHA-256 of all of them."""

    id: Id
    samples: Count
    outputs: Count
    marks: Count
    entries: Count
    sha256: Hex
    labels: Count = 0


class RunFileHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line."""

    schema_version: Literal["deemster.run.v1"]
    tool_version: Plain
    runs: Count


Line: TypeAlias = RunLine | ScoringLine | SampleLine | OutputLine | MarksLine | EntryLine | LabelLine | EndLine


class RawBodies(msgspec.Struct, gc=False):
    """The bodies of a line as the bytes that stand in the file."""

    body: msgspec.Raw = msgspec.Raw(b"null")
    marks: msgspec.Raw = msgspec.Raw(b"null")
    final: msgspec.Raw = msgspec.Raw(b"null")


raw_bodies = msgspec.json.Decoder(RawBodies).decode
_encode = msgspec.json.Encoder().encode
decode_line = msgspec.json.Decoder(Line).decode
# Records that have fields with defaults where they begin; a file has all of them.
_WHOLE: Mapping[type, tuple[str, ...]] = {
    RunLine: tuple(name for name in RunFacts.__struct_fields__ if name != "experiment"),
    ScoringLine: ScoringFacts.__struct_fields__,
}
_KINDS = ("run", "scoring", "sample", "output", "marks", "entry", "label", "end")
# A line nests its values a few levels deeper than a dataset does.
_DEEPEST = DEPTH + 10


def encode_line(line: Line | RunFileHeader) -> bytes:
    r"""Encode a line as the bytes of a file.

    >>> encode_line(RunFileHeader(schema_version=SCHEMA, tool_version="0.2.0", runs=1))
    b'{"schema_version":"deemster.run.v1","tool_version":"0.2.0","runs":1}\n'
    """
    return _encode(line) + b"\n"


def parse_header(data: bytes) -> RunFileHeader:
    """Parse the first line.

    Raises:
        ValueError: It is no header of a run file.
    """
    try:
        value = _parse_strict(data)
    except ValueError as error:
        raise ValueError(f"{error} A run file is made of lines of JSON.") from None
    version = value.get("schema_version") if isinstance(value, dict) else None
    if version != SCHEMA:
        raise ValueError(f"A run file begins with a line whose schema_version is `{SCHEMA}`; this is none.")
    header: RunFileHeader = _convert(value, RunFileHeader)
    return header


def parse_line(data: bytes) -> Line:
    """Parse a line after the first one strictly, since the file may come from anywhere.

    Raises:
        ValueError: It is no JSON, no line of a run file, or says something that no record keeps.
    """
    try:
        line: Line = decode_line(data)
        if _encode(line) == data and not _may_be_deep(data):
            return line
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    # Either another program wrote the line, or it is wrong: the slow way finds out.
    value = _parse_strict(data)
    if not isinstance(value, dict) or value.get("line") not in _KINDS:
        found = visible(str(value.get("line")), limit=40) if isinstance(value, dict) and "line" in value else None
        raise ValueError(
            "A line is a map with `line`."
            if found is None
            else f"`{found}` is no line of a run file. " + did_you_mean(found, _KINDS)
        )
    line = _convert(value, Line)
    if missing := [name for name in _WHOLE.get(type(line), ()) if name not in value]:
        raise ValueError(f"This line does not have the shape of `{SCHEMA}`: it lacks {list_names(missing)}.")
    if unknown := _lost_part(value, line, "$"):
        raise ValueError(f"`{visible(unknown, limit=200)}` is no key of this line.")
    return line


def card_to_line(card: MetricCard) -> Card:
    """Make the card of a line from a metric's card."""
    quotes = None if card.quotes is None else tuple(sorted(card.quotes))
    return Card(**{**card._asdict(), "quotes": quotes})


def card_from_line(line: Card) -> MetricCard:
    """Make a metric's card from that of a line."""
    quotes = None if line.quotes is None else frozenset(line.quotes)
    return MetricCard(**{**msgspec.structs.asdict(line), "quotes": quotes})


def _parse_strict(data: bytes) -> Any:
    try:
        value = json_value(data)
    except ValueError as error:
        raise ValueError(f"This cannot be read as JSON: {visible(str(error), limit=200)}.") from None
    if _may_be_deep(data) and not _is_within(value, _DEEPEST):
        raise ValueError(f"Nesting goes deeper than {_DEEPEST}.")
    return value


def _may_be_deep(data: bytes) -> bool:
    return data.count(b"{") + data.count(b"[") > _DEEPEST


def _convert(value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ValueError(
            f"This line does not have the shape of `{SCHEMA}`: {visible(str(error), limit=300)}."
        ) from None


def _is_within(value: Any, room: int) -> bool:
    if isinstance(value, (dict, list)):
        entries = value.values() if isinstance(value, dict) else value
        return room > 0 and all(_is_within(entry, room - 1) for entry in entries)
    return True


def _lost_part(value: Any, record: Any, path: str) -> str | None:
    """The first part of a value that reading it as a record lost."""
    if isinstance(value, dict):
        if isinstance(record, msgspec.Struct):
            held = msgspec.structs.asdict(record)
            held[record.__struct_config__.tag_field or ""] = None
        elif isinstance(record, Mapping):
            held = dict(record)
        else:
            return None
        for key, entry in value.items():
            found = f"{path}.{key}" if key not in held else _lost_part(entry, held[key], f"{path}.{key}")
            if found:
                return found
    elif isinstance(value, list) and isinstance(record, (list, tuple)):
        for index, (entry, part) in enumerate(zip(value, record, strict=False)):
            if found := _lost_part(entry, part, f"{path}[{index}]"):
                return found
    return None
