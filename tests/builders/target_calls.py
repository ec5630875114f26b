"""Calls of a target."""

from __future__ import annotations

import asyncio
from typing import Any

from deemster.records import Output, TargetFailure
from deemster.records.execution import Invocation
from tests.targets.fake_clocks import Hasty


def outcomes(target: Any, *invocations: Invocation, clock: Any = None) -> list[Output | TargetFailure]:
    """What comes of each call, one after the other, of a target that is opened before and closed after."""

    async def call() -> list[Output | TargetFailure]:
        await target.open(clock=clock or Hasty())
        try:
            return [await target.call_async(invocation) for invocation in invocations]
        finally:
            await target.close()

    return asyncio.run(call())
