"""The output of a target."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import msgspec

from deemster.records.field_checks import decode_record
from deemster.records.trajectory import Trajectory
from deemster.records.usage import Usage

# Why an answer ends early.
BrokenOff: TypeAlias = Literal["length", "content_filter"]
BROKEN_OFF: tuple[BrokenOff, ...] = get_args(BrokenOff)


class Output(msgspec.Struct, frozen=True, gc=False, tag="output"):
    """One answer of a target.

    Attributes:
        text: The answer itself. It may hold lone surrogates: metrics that read it say `bad_output`.
        retrieved: Ids or `{id, text}` maps, best first, as the retriever gave them. Retrieval metrics check them.
        trajectory: Tool calls and approvals; a map in the shape of a saved trajectory is read.
        usage: Tokens, cost and latency of the target's model calls.
        model: The model behind the answer.
        broken_off: Why the answer ends early: `length` where it was cut at the most tokens, `content_filter` where a
            filter stopped it; None where it came to its end, or nobody says.

    Raises:
        ValueError: The text is not a string, or the trajectory or usage is not one.
    """

    text: str
    retrieved: Any = None
    trajectory: Trajectory | None = None
    usage: Usage | None = None
    model: str | None = None
    broken_off: BrokenOff | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ValueError(f"The text of an output is a string, not {type(self.text).__name__}.")  # noqa: TRY004
        if self.trajectory is not None and not isinstance(self.trajectory, Trajectory):
            msgspec.structs.force_setattr(self, "trajectory", Trajectory.read(self.trajectory))
        if self.usage is not None and not isinstance(self.usage, Usage):
            msgspec.structs.force_setattr(self, "usage", decode_record(self.usage, Usage, noun="a usage"))


def elapsed_ms(began: float | None, ended: float | None) -> float | None:
    """The milliseconds between two readings of a clock in seconds; None where it measures no time."""
    return None if began is None or ended is None else max((ended - began) * 1000, 0.0)


def with_latency(output: Output, latency_ms: float | None) -> Output:
    """An output with the time it took, unless it says that itself, nothing was called, or no time was measured."""
    used = output.usage or Usage(calls=0)
    if latency_ms is None or used.latency_ms is not None or used.cached_calls:
        return output
    return msgspec.structs.replace(output, usage=msgspec.structs.replace(used, latency_ms=latency_ms))
