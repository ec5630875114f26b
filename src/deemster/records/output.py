"""The output of a target."""

from __future__ import annotations

from typing import Any

import msgspec

from deemster.records.field_checks import decode_record
from deemster.records.trajectory import Trajectory
from deemster.records.usage import Usage


class Output(msgspec.Struct, frozen=True, gc=False, tag="output"):
    """One answer of a target.

    Attributes:
        text: The answer itself. It may hold lone surrogates: metrics that read it say `bad_output`.
        retrieved: Ids or `{id, text}` maps, best first, as the retriever gave them. Retrieval metrics check them.
        trajectory: Tool calls and approvals; a map in the shape of a saved trajectory is read.
        usage: Tokens, cost and latency of the target's model calls.
        model: The model behind the answer.

    Raises:
        ValueError: The text is not a string, or the trajectory or usage is not one.
    """

    text: str
    retrieved: Any = None
    trajectory: Trajectory | None = None
    usage: Usage | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ValueError(f"The text of an output is a string, not {type(self.text).__name__}.")  # noqa: TRY004
        if self.trajectory is not None and not isinstance(self.trajectory, Trajectory):
            msgspec.structs.force_setattr(self, "trajectory", Trajectory.read(self.trajectory))
        if self.usage is not None and not isinstance(self.usage, Usage):
            msgspec.structs.force_setattr(self, "usage", decode_record(self.usage, Usage, noun="a usage"))
