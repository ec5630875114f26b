"""A target that asks the models of the run, as one that is called: its script is played."""

from __future__ import annotations

from deemster.engine.play_scripts import AskModels, ask_in_repetition, script_result
from deemster.engine.run_plan import AskingTarget
from deemster.records import Invocation, Output, TargetFailure


class PlayedTarget:
    """Calls a target that asks models by playing its script.

    Args:
        target: The target.
        ask: Answers one round of requests.
    """

    is_async = True

    def __init__(self, target: AskingTarget, ask: AskModels) -> None:
        self._target = target
        self._ask = ask

    async def call_async(self, invocation: Invocation) -> Output | TargetFailure | None:
        """What the target says, how it failed, or None where no model was asked."""
        ask = ask_in_repetition(self._ask, invocation.repetition)
        answer: Output | TargetFailure | None = await script_result(self._target.script(invocation), ask, [])
        return answer
