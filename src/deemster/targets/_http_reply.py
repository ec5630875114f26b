"""Parses the reply of an application over HTTP into an output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from deemster.errors import visible
from deemster.models.http_endpoint import Endpoint
from deemster.models.model_client import ModelFailure
from deemster.models.provider_usage import ReportedUsage, parse_usage
from deemster.records import Output, Usage
from deemster.targets._json_path import GivenPath, parse_path, value_at
from deemster.targets.python_target import as_output

_LONGEST_NAME = 256
# The paths that were read, by the part of an output that they lead to.
PathSteps: TypeAlias = Mapping[str, Sequence[str | int]]


class ReplyPaths(NamedTuple):
    """Where the parts of an output stand in a reply. Without any path the answer is the reply's text.

    Attributes:
        output: The path of the answer, such as `choices.0.message.content`; `$` for the whole reply as JSON.
        retrieved: The path of what was retrieved.
        trajectory: The path of the trajectory.
        usage: The path of what the application's models used, as providers say it or as ``Usage`` does.
        model: The path of the model's name.
    """

    output: GivenPath | None = None
    retrieved: GivenPath | None = None
    trajectory: GivenPath | None = None
    usage: GivenPath | None = None
    model: GivenPath | None = None

    def steps(self) -> PathSteps:
        """Read the paths that are given.

        Raises:
            ValueError: One is no path.
        """
        return {name: _read_path(name, path) for name, path in self._asdict().items() if path is not None}


def _read_path(name: str, path: GivenPath) -> Sequence[str | int]:
    try:
        return parse_path(path)
    except ValueError as error:
        raise ValueError(f"`{name}`: {error}") from None


def parse_reply(body: bytes, paths: PathSteps, endpoint: Endpoint) -> Output:
    """The output that a reply holds.

    Args:
        body: The reply's body.
        paths: Where its parts are.
        endpoint: Who replied, for messages; its secrets are removed first.

    Raises:
        ModelFailure: The reply is not UTF-8 or not JSON, or the answer is not where it should be.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"The reply is not UTF-8: byte 0x{body[error.start]:02x} at {error.start}."
        raise endpoint.failure("transport", message, may_cost=True) from None
    text = endpoint.secrets.redact(text)
    if not paths:
        return Output(text)
    try:
        reply = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        message = f"The reply is not JSON: {visible(text, limit=120)}" if text.strip() else "The reply is empty."
        raise endpoint.failure("transport", message, may_cost=True) from None
    answer = _answer(reply, paths["output"], endpoint) if "output" in paths else text
    try:
        said = as_output(answer)
        return Output(
            said.text,
            _part(reply, paths.get("retrieved")),
            _part(reply, paths.get("trajectory")),
            _usage(_part(reply, paths.get("usage"))),
            _name(_part(reply, paths.get("model"))),
        )
    except (ValueError, TypeError) as error:
        raise endpoint.failure("shape", f"The reply cannot be read: {error}", may_cost=True) from None


def _answer(reply: Any, steps: Sequence[str | int], endpoint: Endpoint) -> Any:
    try:
        answer = value_at(reply, steps)
    except LookupError:
        answer = None
    if answer is None:
        raise _missing(reply, steps, endpoint)
    return answer


def _missing(reply: Any, steps: Sequence[str | int], endpoint: Endpoint) -> ModelFailure:
    path = ".".join(map(str, steps)) or "$"
    has = f"the keys {', '.join(map(str, list(reply)[:8]))}" if isinstance(reply, Mapping) else visible(str(reply))
    return endpoint.failure("shape", f"The reply has nothing at `{path}`; it has {has}.", may_cost=True)


def _part(reply: Any, steps: Sequence[str | int] | None) -> Any:
    """The value at a path; None where there is none, because not every reply has every part."""
    if steps is None:
        return None
    try:
        return value_at(reply, steps)
    except LookupError:
        return None


def _usage(reported: Any) -> Usage | None:
    """What was used, as ``Usage`` spells it or as providers do; None where the counts make no sense."""
    if not isinstance(reported, Mapping):
        return None
    try:
        return msgspec.convert(reported, Usage)
    except (msgspec.ValidationError, ValueError):
        pass
    try:
        return parse_usage(msgspec.convert(reported, ReportedUsage), None)
    except (msgspec.ValidationError, ValueError):
        return None


def _name(value: Any) -> str | None:
    return value[:_LONGEST_NAME] if isinstance(value, str) else None
