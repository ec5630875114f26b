"""The progress file of an improvement: everything the models said, so that it can be resumed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeAlias

import msgspec

from deemster.engine.kept_calls import KeptCalls
from deemster.errors import ConfigurationError, Issue
from deemster.formats.atomic_write import write_aside
from deemster.models.call_log import LoggedCall
from deemster.records import Usage
from deemster.records.shared_call_cost import Spending
from deemster.runs.run_identity import identity_differences, plain_json
from deemster.runs.run_lifecycle import new_token, refuse_changes

SCHEMA = "deemster.improvement-progress.v1"


class LoggedVerdicts(msgspec.Struct, frozen=True, kw_only=True, tag="verdicts", forbid_unknown_fields=True):
    """How the judges decided about one part of the items by one wording of one criterion.

    Attributes:
        criterion: The criterion's name.
        requirement: The wording.
        part: `train` or `held_out`.
        codes: The code of each verdict; None where the call failed, a negative one where the reply could not be read.
        reasons: Why, in the judges' words.
        usage: What it took.
        tokens: Tokens of the calls that were made for it; answers from a cache take none.
    """

    criterion: str
    requirement: str
    part: str
    codes: tuple[int | float | None, ...]
    reasons: tuple[str | None, ...]
    usage: Usage | None = None
    tokens: int = 0


class LoggedProposal(msgspec.Struct, frozen=True, kw_only=True, tag="reply", forbid_unknown_fields=True):
    """What the writer proposed for one criterion at one time.

    Attributes:
        criterion: The criterion's name.
        number: Which of its proposals for the criterion this is, from 1.
        requirement: The new wording; None where the reply could not be used.
        diagnosis: What misleads in the present one.
        message: Why the reply could not be used.
        usage: What it took.
        tokens: Tokens of the calls that were made for it; answers from a cache take none.
    """

    criterion: str
    number: int
    requirement: str | None = None
    diagnosis: str | None = None
    message: str | None = None
    usage: Usage | None = None
    tokens: int = 0


class LoggedReply(msgspec.Struct, frozen=True, kw_only=True, tag="call", forbid_unknown_fields=True):
    """One model call, logged when it ends: a killed improvement reuses its answer.

    Attributes:
        call: The call.
    """

    call: LoggedCall


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


_Line: TypeAlias = LogHeader | LoggedVerdicts | LoggedProposal | LoggedReply
_DECODE = msgspec.json.Decoder(_Line).decode


class ImprovementLog:
    """The progress file: what the models said, logged as it comes. Without a path it writes nothing.

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
        self._verdicts: dict[tuple[str, str, str], LoggedVerdicts] = {}
        self._replies: dict[tuple[str, int], LoggedProposal] = {}
        self._replies_before: list[LoggedCall] = []
        self.calls: KeptCalls | None = None
        if path is None:
            return
        token = new_token()
        plain = plain_json(identity)
        head = LogHeader(schema_version=SCHEMA, identity=plain, token=token)
        try:
            if path.exists():
                token = self._take(path, head, resume=resume) or token
            else:
                write_aside(path, [_line(head)])
            self._file = path.open("ab")
        except OSError as error:
            raise ConfigurationError(Issue(f"The progress cannot be written: {error.strerror}.", str(path))) from None
        self.calls = KeptCalls(token, self._keep_call, self._stored_calls)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def usages(self) -> list[Usage]:
        """The usage of every logged answer."""
        facts: list[LoggedVerdicts | LoggedProposal] = [*self._verdicts.values(), *self._replies.values()]
        return [fact.usage for fact in facts if fact.usage is not None]

    @property
    def spent(self) -> Spending:
        """The part of a budget that the logged verdicts and proposals used. Files of earlier versions log no calls."""
        facts: list[LoggedVerdicts | LoggedProposal] = [*self._verdicts.values(), *self._replies.values()]
        usd = sum((usage.cost_usd or Decimal(0) for usage in self.usages), Decimal(0))
        return Spending(frozenset(), sum(fact.tokens for fact in facts), usd)

    def verdicts(self, criterion: str, requirement: str, part: str) -> LoggedVerdicts | None:
        """The verdicts on a part by a wording, where they are known."""
        return self._verdicts.get((criterion, requirement, part))

    def reply(self, criterion: str, number: int) -> LoggedProposal | None:
        """What the writer proposed for a criterion at some time, where that is known."""
        return self._replies.get((criterion, number))

    def keep(self, fact: LoggedVerdicts | LoggedProposal) -> None:
        """Write an answer to the log.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        self._add(fact)
        if self._file is not None:
            self._write(self._file, fact, sync=True)

    def _write(self, file: BinaryIO, fact: _Line, *, sync: bool = False) -> None:
        try:
            file.write(_line(fact))
            file.flush()
            if sync:
                os.fsync(file.fileno())
        except OSError as error:
            message = f"The progress cannot be written: {error.strerror}."
            raise ConfigurationError(Issue(message, str(self._path))) from None

    def _keep_call(self, call: LoggedCall) -> None:
        if self._file is not None:
            self._write(self._file, LoggedReply(call=call))

    def _stored_calls(self) -> Iterator[LoggedCall]:
        """The calls of earlier processes; they are read once."""
        calls, self._replies_before = self._replies_before, []
        yield from calls

    def _add(self, fact: LoggedVerdicts | LoggedProposal) -> None:
        if isinstance(fact, LoggedVerdicts):
            self._verdicts[fact.criterion, fact.requirement, fact.part] = fact
        else:
            self._replies[fact.criterion, fact.number] = fact

    def _take(self, path: Path, head: LogHeader, *, resume: bool) -> str | None:
        """Read what is logged already; the token of the improvement, or None where an earlier version wrote none."""
        if not resume:
            message = (
                "The file is there from work that stopped. Go on from it with `--resume` (`resume=True`), or remove it."
            )
            raise ConfigurationError(Issue(message, str(path)))
        data = path.read_bytes()
        lines, _, torn = data.rpartition(b"\n")
        facts = [self._read(line, f"{path}:{number}") for number, line in enumerate(lines.split(b"\n"), 1)]
        first, *rest = facts
        if not isinstance(first, LogHeader):
            raise ConfigurationError(Issue("This is no progress file of `rubric improve`.", str(path)))
        if first.schema_version != SCHEMA:
            raise ConfigurationError(Issue(f"`schema_version` is `{SCHEMA}`, not `{first.schema_version}`.", str(path)))
        if changes := identity_differences(first.identity, head.identity):
            way_out = "Remove the file to start anew, or continue with the same rubric, dataset and settings."
            raise refuse_changes("The improvement", changes, where=str(path), way_out=way_out)
        for fact in rest:
            if isinstance(fact, LoggedReply):
                self._replies_before.append(fact.call)
            elif not isinstance(fact, LogHeader):
                self._add(fact)
        if torn:
            # The last line was being written when the work stopped.
            os.truncate(path, len(lines) + 1)
        return first.token

    def _read(self, line: bytes, where: str) -> _Line:
        try:
            fact: _Line = _DECODE(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            message = f"This is no line of a progress file of `rubric improve`: {error}."
            raise ConfigurationError(Issue(message, where)) from None
        return fact


def _line(fact: _Line) -> bytes:
    return msgspec.json.encode(fact) + b"\n"
