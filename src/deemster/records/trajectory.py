"""The tool calls and approvals of an agent behind an output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from deemster.errors import did_you_mean
from deemster.records.frozen_json import FrozenDict, freeze

_CALL_NAMES = {"name": "name", "tool": "name", "arguments": "arguments", "args": "arguments"}
_CALL_KEYS = (*_CALL_NAMES, "result", "error", "duration_ms")
_KEYS = ("tool_calls", "tools", "steps", "finish_reason", "pending_approvals", "approvals", "metadata")


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """One call of a tool.

    Raises:
        ValueError: The name is empty, or a value is not what its field holds.
    """

    name: str
    arguments: Mapping[str, Any] = FrozenDict()
    result: Any = None
    error: str | None = None
    duration_ms: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError("A tool call has a non-empty name.")
        if not isinstance(self.arguments, Mapping):
            raise ValueError(f"The arguments of `{self.name}` are a map.")  # noqa: TRY004 - impossible value
        if self.error is not None and not isinstance(self.error, str):
            raise ValueError(f"The error of `{self.name}` is text.")
        if self.duration_ms is not None and not _is_amount(self.duration_ms):
            raise ValueError(f"duration_ms of `{self.name}` is a number of at least 0, not {self.duration_ms!r}.")
        msgspec.structs.force_setattr(self, "arguments", freeze(self.arguments, path=f"arguments of `{self.name}`"))

    @classmethod
    def read(cls, value: Any) -> ToolCall:
        """Read a call from JSON: a name, or a map (`tool` and `args` are read as `name` and `arguments`).

        Raises:
            ValueError: The value is no tool call.
        """
        if isinstance(value, ToolCall):
            return value
        if isinstance(value, str):
            return cls(value)
        if not isinstance(value, Mapping):
            raise ValueError(f"A tool call is a name or a map, not {value!r}.")  # noqa: TRY004 - bad data, not a bad call
        _refuse_unknown(value, _CALL_KEYS, of="a tool call")
        fields: dict[str, Any] = {}
        for key, entry in value.items():
            name = _CALL_NAMES.get(str(key), str(key))
            if name in fields:
                raise ValueError(f"A tool call gives its {name} twice.")
            fields[name] = entry
        if "name" not in fields:
            raise ValueError("A tool call has a name.")
        if fields.get("arguments", ...) is None:
            del fields["arguments"]
        return cls(**fields)


class Trajectory(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The tool calls and approvals behind one output.

    Attributes:
        tool_calls: In the order they were made.
        steps: How many steps the agent took, where it counts them.
        finish_reason: Why it stopped.
        pending_approvals: Approvals still waiting at the end.
        approvals: Names of the tools that were approved.
        metadata: Anything else.

    Raises:
        ValueError: A count is negative, or a value is not what its field holds.
    """

    tool_calls: tuple[ToolCall, ...] = ()
    steps: int | None = None
    finish_reason: str | None = None
    pending_approvals: int = 0
    approvals: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = FrozenDict()

    def __post_init__(self) -> None:
        if self.steps is not None and not _is_count(self.steps):
            raise ValueError(f"steps is a whole number of at least 0, not {self.steps!r}.")
        if not _is_count(self.pending_approvals):
            raise ValueError(f"pending_approvals is a whole number of at least 0, not {self.pending_approvals!r}.")
        if self.finish_reason is not None and not isinstance(self.finish_reason, str):
            raise ValueError("finish_reason is text.")
        if not isinstance(self.metadata, Mapping):
            raise ValueError("The metadata of a trajectory is a map.")  # noqa: TRY004 - impossible value
        calls = tuple(ToolCall.read(call) for call in _sequence(self.tool_calls, "tool_calls"))
        approvals = tuple(_sequence(self.approvals, "approvals"))
        if not all(isinstance(name, str) and name.strip() for name in approvals):
            raise ValueError("approvals are non-empty names.")
        msgspec.structs.force_setattr(self, "tool_calls", calls)
        msgspec.structs.force_setattr(self, "approvals", approvals)
        msgspec.structs.force_setattr(self, "metadata", freeze(self.metadata, path="trajectory.metadata"))

    @classmethod
    def read(cls, value: Any) -> Trajectory:
        """Read a trajectory from JSON (`tools` is read as `tool_calls`).

        Raises:
            ValueError: The value is no trajectory, or has an unknown key.
        """
        if isinstance(value, Trajectory):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"A trajectory is a map, not {value!r}.")  # noqa: TRY004 - bad data, not a bad call
        _refuse_unknown(value, _KEYS, of="a trajectory")
        if "tools" in value and "tool_calls" in value:
            raise ValueError("A trajectory gives its tool_calls twice.")
        fields = {"tool_calls" if key == "tools" else key: entry for key, entry in value.items() if entry is not None}
        return cls(**fields)


def _refuse_unknown(value: Mapping[str, Any], known: Sequence[str], *, of: str) -> None:
    for key in value:
        if key not in known:
            raise ValueError(f"`{key}` is no key of {of}. {did_you_mean(str(key), known)}")


def _sequence(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} is a list, not {value!r}.")  # noqa: TRY004 - impossible value
    return value


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")
