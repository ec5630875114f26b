"""The executions of one run, kept until its reports are written: in memory while few, else in a temporary file."""

from __future__ import annotations

import re
import tempfile
import weakref
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from deemster.records import Execution, Output

_IN_MEMORY = 32 * 1024 * 1024
_WIDEST = 2**63
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Execution)


class Spool:
    """Executions by sample and repetition, whatever order they come in.

    Args:
        samples: How many samples the dataset has.
        repetitions: How often each is run.
    """

    def __init__(self, *, samples: int, repetitions: int) -> None:
        self._repetitions = repetitions
        self._offsets = array("q", [-1]) * (samples * repetitions)
        self._lengths = array("q", [0]) * (samples * repetitions)
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - lives as long as the report
        self._end = 0
        weakref.finalize(self, self._file.close)

    def add(self, executions: Sequence[Execution]) -> None:
        """Keep executions.

        Raises:
            OSError: The temporary file cannot be written.
        """
        rows = []
        for execution in executions:
            row = _encoded(execution)
            place = execution.position * self._repetitions + execution.repetition
            self._offsets[place], self._lengths[place] = self._end, len(row)
            self._end += len(row)
            rows.append(row)
        self._file.seek(0, 2)
        self._file.write(b"".join(rows))

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Execution | None]:
        """Every execution in the order of the dataset, then repetition; None where there is none."""
        for offset, length in zip(self._offsets, self._lengths, strict=True):
            if offset < 0:
                yield None
                continue
            self._file.seek(offset)
            yield _DECODER.decode(self._file.read(length))


def _encoded(execution: Execution) -> bytes:
    try:
        return _ENCODER.encode(execution)
    except (UnicodeEncodeError, OverflowError):
        return _ENCODER.encode(_storable(execution))


def _storable(execution: Execution) -> Any:
    """An execution as plain data, with lone surrogates replaced and numbers too wide for the format as text."""
    answer = execution.answer
    valid = not (isinstance(answer, Output) and _SURROGATE.search(answer.text))
    plain = msgspec.structs.asdict(execution)
    plain["answer"] = _tagged(answer) if answer is not None else None
    plain["marks"] = [_tagged(mark) for mark in execution.marks]
    return _repaired({**plain, "valid": valid})


def _tagged(record: Any) -> dict[str, Any]:
    return {"type": record.__struct_config__.tag, **msgspec.structs.asdict(record)}


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_repaired(key): _repaired(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_repaired(entry) for entry in value]
    if isinstance(value, msgspec.Struct):
        return _repaired(msgspec.structs.asdict(value))
    if isinstance(value, int) and not -_WIDEST <= value < _WIDEST:
        return hex(value)
    return value
