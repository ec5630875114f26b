"""The progress file of an improvement: every model call as it ends, so that it can be resumed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeAlias

import msgspec

from deemster.engine.kept_calls import KeptCalls
from deemster.errors import ConfigurationError, Issue
from deemster.formats.atomic_write import write_aside
from deemster.models.call_log import LoggedCall
from deemster.runs.run_identity import identity_differences, plain_json
from deemster.runs.run_lifecycle import new_token, refuse_changes

SCHEMA = "deemster.improvement-progress.v1"


class LogHeader(msgspec.Struct, frozen=True, kw_only=True, tag="head", forbid_unknown_fields=True):
    """The first line: the identity of the improvement.

    Attributes:
        schema_version: The kind of file.
        identity: Everything that the answers depend on.
        token: Identifies the model calls of this improvement.
    """

    schema_version: str
    identity: dict[str, Any]
    token: str | None = None


class LoggedReply(msgspec.Struct, frozen=True, kw_only=True, tag="call", forbid_unknown_fields=True):
    """One model call, logged when it ends: a resumed improvement reuses its answer.

    Attributes:
        call: The call.
    """

    call: LoggedCall


class _EarlierVerdicts(msgspec.Struct, tag="verdicts"):
    """What earlier versions wrote beside the calls: it follows from them."""


class _EarlierProposal(msgspec.Struct, tag="reply"):
    """The same for a wording."""


_Line: TypeAlias = LogHeader | LoggedReply | _EarlierVerdicts | _EarlierProposal
_DECODE = msgspec.json.Decoder(_Line).decode


class ImprovementLog:
    """The progress file. A resumed improvement asks everything again, and finds the answers here.

    Args:
        path: The file; None writes nothing.
        identity: Everything that the answers depend on, as JSON; a file of another identity is refused.
        resume: Whether to continue from the file; otherwise the file must not exist.

    Attributes:
        calls: Keeps the model calls as they end; None where there is no file.

    Raises:
        ConfigurationError: The file exists and `resume` is false, it is no progress file, it is about something else,
            or it cannot be read or written.
    """

    def __init__(self, path: Path | None, *, identity: Mapping[str, Any], resume: bool) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self.calls: KeptCalls | None = None
        if path is None:
            return

        token = new_token()
        head = LogHeader(schema_version=SCHEMA, identity=plain_json(identity), token=token)
        earlier: list[LoggedCall] = []
        try:
            if path.exists():
                stored, earlier = _read_log(path, head, resume=resume)
                token = stored.token or token
            else:
                write_aside(path, [_line(head)])
            self._file = path.open("ab")
        except OSError as error:
            raise _unwritable(error, path) from None
        self.calls = KeptCalls(token, self._keep, lambda: iter(earlier))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def _keep(self, call: LoggedCall) -> None:
        if self._file is not None:
            # What cannot be written stays in the buffer, so that `sync` fails and says why.
            with suppress(OSError):
                self._file.write(_line(LoggedReply(call=call)))
                self._file.flush()

    def sync(self) -> None:
        """Return once every call is on the disk.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        if self._file is not None and self._path is not None:
            try:
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                raise _unwritable(error, self._path) from None


def _read_log(path: Path, head: LogHeader, *, resume: bool) -> tuple[LogHeader, list[LoggedCall]]:
    """The identity and the calls that are logged already."""
    if not resume:
        message = (
            "The file is there from work that stopped. Go on from it with `--resume` (`resume=True`), or remove it."
        )
        raise ConfigurationError(Issue(message, str(path)))

    lines, _, torn = path.read_bytes().rpartition(b"\n")
    first, *rest = [_read_line(line, f"{path}:{number}") for number, line in enumerate(lines.split(b"\n"), 1)]
    if not isinstance(first, LogHeader):
        raise ConfigurationError(Issue("This is no progress file of `rubric improve`.", str(path)))
    if first.schema_version != SCHEMA:
        raise ConfigurationError(Issue(f"`schema_version` is `{SCHEMA}`, not `{first.schema_version}`.", str(path)))
    if changes := identity_differences(first.identity, head.identity):
        way_out = "Remove the file to start anew, or continue with the same rubric, dataset and settings."
        raise refuse_changes("The improvement", changes, where=str(path), way_out=way_out)

    if torn:
        # The last line was being written when the work stopped.
        os.truncate(path, len(lines) + 1)
    return first, [line.call for line in rest if isinstance(line, LoggedReply)]


def _read_line(data: bytes, where: str) -> _Line:
    try:
        line: _Line = _DECODE(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"This is no line of a progress file of `rubric improve`: {error}."
        raise ConfigurationError(Issue(message, where)) from None
    return line


def _line(fact: LogHeader | LoggedReply) -> bytes:
    return msgspec.json.encode(fact) + b"\n"


def _unwritable(error: OSError, path: Path) -> ConfigurationError:
    return ConfigurationError(Issue(f"The progress cannot be written: {error.strerror}.", str(path)))
