"""The tool calls and approvals of an agent behind an output."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from deemster.records.field_checks import check_fields, decode_record
from deemster.records.frozen_json import FrozenDict, freeze
from deemster.records.usage import Amount, Count

_Name: TypeAlias = Annotated[str, Meta(pattern=r"\S")]
_CALL = "a tool call"
_TRAJECTORY = "a trajectory"


class ToolCall(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One call of a tool.

    Raises:
        ValueError: The name is empty, or a value is not what its field holds.
    """

    name: _Name
    arguments: Mapping[str, Any] = FrozenDict()
    result: Any = None
    error: str | None = None
    duration_ms: Amount | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "arguments", freeze(self.arguments, path=f"arguments of `{self.name}`"))
        check_fields(self)
        if self.duration_ms is not None and not math.isfinite(self.duration_ms):
            raise ValueError(f"duration_ms of `{self.name}` is {self.duration_ms}, which is not a finite number.")

    @classmethod
    def read(cls, value: Any) -> ToolCall:
        """Read a call from JSON: a name, or a map (`tool` and `args` are read as `name` and `arguments`).

        Raises:
            ValueError: The value is no tool call.
        """
        if isinstance(value, ToolCall):
            return value
        fields = {"name": value} if isinstance(value, str) else value
        return decode_record(_rename(fields, {"tool": "name", "args": "arguments"}, _CALL), cls, noun=_CALL)


class Trajectory(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
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
    steps: Count | None = None
    finish_reason: str | None = None
    pending_approvals: Count = 0
    approvals: tuple[_Name, ...] = ()
    metadata: Mapping[str, Any] = FrozenDict()

    def __post_init__(self) -> None:
        if isinstance(self.tool_calls, (list, tuple)):
            msgspec.structs.force_setattr(self, "tool_calls", tuple(map(ToolCall.read, self.tool_calls)))
        if isinstance(self.approvals, list):
            msgspec.structs.force_setattr(self, "approvals", tuple(self.approvals))
        msgspec.structs.force_setattr(self, "metadata", freeze(self.metadata, path="trajectory.metadata"))
        check_fields(self)

    @classmethod
    def read(cls, value: Any) -> Trajectory:
        """Read a trajectory from JSON (`tools` is read as `tool_calls`).

        Raises:
            ValueError: The value is no trajectory, or has an unknown key.
        """
        if isinstance(value, Trajectory):
            return value
        fields = _rename(value, {"tools": "tool_calls"}, _TRAJECTORY)
        if isinstance(fields.get("tool_calls"), (list, tuple)):
            fields["tool_calls"] = [ToolCall.read(call) for call in fields["tool_calls"]]
        return decode_record(fields, cls, noun=_TRAJECTORY)


def _rename(value: Any, names: Mapping[str, str], noun: str) -> dict[str, Any]:
    """The entries of a map that are not null, by the names that the record has for them."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{noun.capitalize()} is a map, not {value!r:.80}.")  # noqa: TRY004 - bad data, not a bad call
    fields: dict[str, Any] = {}
    for key, entry in value.items():
        name = names.get(key, key)
        if name in fields:
            raise ValueError(f"{noun.capitalize()} gives its {name} twice.")
        if entry is not None:
            fields[name] = entry
    return fields
