"""Recordings: files of answers that are recorded once and replayed without a model."""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt

from deemster.errors import ConfigurationError, Issue, visible
from deemster.formats import Reading
from deemster.formats.atomic_write import write_aside
from deemster.formats.json_values import SURROGATE
from deemster.models.answer_cache import ask_key, text_key
from deemster.models.secret_redaction import Secrets, hash_named_secrets
from deemster.records import Answer, Ask
from deemster.records.model_requests import RecordedAnswer

_END = 80
_MOST_NOTES = 5
_encode = msgspec.json.Encoder().encode


class RecordedLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One recorded answer.

    Attributes:
        key: The hash of the request.
        check: The CRC-32 of the line without this field; None in a recording of an older version, or where a person
            removed it to edit the line.
        request: The request, for people; only its hash is looked at.
        answer: What a chat model said.
        vector: What an embedding model gave for one text.
        model: The model that gave the vector.
    """

    key: str
    check: str | None = None
    request: dict[str, Any]
    answer: RecordedAnswer | None = None
    vector: list[float] | None = None
    model: str | None = None

    def seal(self) -> RecordedLine:
        """The line with its check sum."""
        return msgspec.structs.replace(self, check=self._check_sum())

    @property
    def is_sound(self) -> bool:
        """Whether the line is the one that was written, as far as its check sum tells."""
        return self.check is None or self.check == self._check_sum()

    def _check_sum(self) -> str:
        return f"{binascii.crc32(_encode(msgspec.structs.replace(self, check=None))):08x}"


_decode = msgspec.json.Decoder(RecordedLine).decode


class Recording:
    """A file of recorded answers: JSON lines, sorted by the hash of the request when it is closed, secrets removed.

    Each line carries a check sum. A line that is damaged, or that a killed process left half-written, is passed over,
    and `notes` says so.

    Args:
        path: The file; one that is not there yet holds nothing.
        secrets: Values that must not be written.

    Attributes:
        notes: What a person should know about the file.

    Raises:
        ConfigurationError: The file cannot be read, or no line of it is a recorded answer.
    """

    def __init__(self, path: str | Path, *, secrets: Secrets) -> None:
        self.path = Path(path)
        self.notes: list[str] = []
        self._secrets = secrets
        self._file: BinaryIO | None = None
        self._is_torn = False
        self._lines: dict[str, RecordedLine] = self._read()

    def __len__(self) -> int:
        return len(self._lines)

    def answer(self, ask: Ask) -> Answer | None:
        """The answer recorded for a question, or None."""
        line = self._lines.get(_ask_name(ask))
        return None if line is None or line.answer is None else Answer(**msgspec.structs.asdict(line.answer))

    def vector(self, role: str, text: str) -> tuple[npt.NDArray[np.float32], str | None] | None:
        """The vector recorded for a text, and the model that gave it; or None."""
        line = self._lines.get(_text_name(role, text))
        if line is None or line.vector is None:
            return None
        with np.errstate(over="ignore"):
            return np.array(line.vector, dtype=np.float32), line.model

    def keep(self, ask: Ask, answer: Answer) -> Answer:
        """Record an answer.

        Args:
            ask: The question.
            answer: The answer.

        Returns:
            The answer as the recording has it, with the usage it came with.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        request = msgspec.to_builtins(ask)
        del request["once"]
        if ask.parameters is None:
            del request["subject"], request["parameters"]
        else:
            request["parameters"] = hash_named_secrets(request["parameters"])
        self._append(RecordedLine(key=_ask_name(ask), request=request, answer=_without_cost(answer)))
        kept = self.answer(ask)
        return answer if kept is None else msgspec.structs.replace(kept, usage=answer.usage, call=answer.call)

    def keep_vector(self, role: str, text: str, values: npt.NDArray[np.float32], *, model: str | None) -> None:
        """Record the vector of a text.

        Args:
            role: The role that was asked.
            text: The text.
            values: Its vector.
            model: The model that gave it.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        # The shortest decimals that give the same 32-bit floats, so that a diff of two files is readable.
        vector = [float(str(value)) for value in values.astype(np.float32)]
        request = {"role": role, "text": text}
        self._append(RecordedLine(key=_text_name(role, text), request=request, vector=vector, model=model))

    def close(self) -> None:
        """Put the lines in order.

        Raises:
            ConfigurationError: The file cannot be read or written; what was appended to it stays.
        """
        if self._file is None:
            return
        self._file.close()
        self._file = None
        # Another process may have recorded into the same file meanwhile.
        self._lines = self._read() | self._lines
        try:
            write_aside(self.path, self._in_order())
        except OSError as error:
            raise self._write_error(error) from None

    def _append(self, line: RecordedLine) -> None:
        # Value by value: in the encoded line, a secret could be removed together with an escape sign before it.
        line = _decode(_encode(_redact_values(msgspec.to_builtins(line), self._secrets))).seal()
        try:
            if self._file is None:
                self._file = self._open_file()
            self._file.write(_encode(line) + b"\n")
        except OSError as error:
            raise self._write_error(error) from None
        self._lines[line.key] = line

    def _open_file(self) -> BinaryIO:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._is_torn:
            # A line that is appended to half a line would be damaged too.
            write_aside(self.path, self._in_order())
            self._is_torn = False
        return self.path.open("ab", buffering=0)

    def _in_order(self) -> Iterator[bytes]:
        return (_encode(self._lines[key]) + b"\n" for key in sorted(self._lines))

    def _write_error(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(Issue(f"The recording cannot be written: {error.strerror or error}.", str(self.path)))

    def _read(self) -> dict[str, RecordedLine]:
        data = b""
        if self.path.exists():
            with Reading(str(self.path), error=ConfigurationError).open(self.path) as file:
                try:
                    data = file.read()
                except OSError as error:
                    message = f"The recording cannot be read: {error.strerror or error}."
                    raise ConfigurationError(Issue(message, str(self.path))) from None
        lines: dict[str, RecordedLine] = {}
        pieces = data.split(b"\n")
        self._is_torn = bool(pieces[-1].strip())
        issues: list[Issue] = []
        for number, piece in enumerate(pieces, 1):
            if not piece.strip():
                continue
            fault: str | None
            try:
                line = _decode(piece)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                is_last = number == len(pieces)
                fault = "the last line is incomplete" if is_last else f"this is not a recorded answer ({error})"
            else:
                fault = None if line.is_sound else "this line does not fit its check sum"
            if fault is None:
                lines[line.key] = line
            else:
                issues.append(Issue(f"{fault} and is passed over.", f"{self.path}:{number}"))
        if not lines and not self._is_torn and issues:
            raise ConfigurationError([Issue("No line of this file is a recorded answer.", str(self.path)), *issues])
        self.notes = [str(issue) for issue in issues[:_MOST_NOTES]]
        if len(issues) > _MOST_NOTES:
            self.notes.append(f"{self.path}: {len(issues) - _MOST_NOTES:,} further lines are passed over.")
        return lines


def _without_cost(answer: Answer) -> RecordedAnswer:
    """An answer as recordings keep it: without what belongs to one call only."""
    usage = answer.usage
    if usage is not None:
        usage = msgspec.structs.replace(usage, latency_ms=None, cost_usd=None)
    kept = {name: getattr(answer, name) for name in RecordedAnswer.__struct_fields__}
    return RecordedAnswer(**{**kept, "usage": usage})


def _redact_values(value: Any, secrets: Secrets) -> Any:
    if isinstance(value, str):
        return secrets.redact(SURROGATE.sub("\ufffd", value), shapes=True)
    if isinstance(value, dict):
        return {key: _redact_values(entry, secrets) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_redact_values(entry, secrets) for entry in value]
    return value


def describe_request(ask: Ask) -> str:
    """How a message names a question: by the beginning of its hash, and both ends of its last message."""
    last = ask.messages[-1].content if ask.messages else ""
    name = f"{_ask_name(ask)[:12]} to `{ask.role}`"
    if len(last) <= 2 * _END:
        return f"{name}, which says {visible(last)!r}"
    # Some prompts hold the case at their beginning and some at their end; the rest is the same in all of them.
    return f"{name}, which begins {visible(last[:_END])!r} and ends {visible(last[-_END:])!r}"


def describe_text(role: str, text: str) -> str:
    """How a message names a text to be embedded."""
    return f"{_text_name(role, text)[:12]} to `{role}`, the text {visible(text, limit=60)!r}"


def _ask_name(ask: Ask) -> str:
    return ask_key(ask.role.encode() + b"\x00", ask).hex()


def _text_name(role: str, text: str) -> str:
    return text_key(role.encode() + b"\x00", text).hex()
