"""The agent under test: replays what one answered, with and without its skill. Call yours in place of the recording."""

from pathlib import Path

import yaml

import deemster as dm

RECORDED = yaml.safe_load(Path(__file__).with_name("recorded.yml").read_text(encoding="utf-8"))


def solve(invocation: dm.records.Invocation) -> dm.Output:
    """Do one task, as `answer(invocation.input["task"], skill=invocation.settings["skill"])` of your agent would."""
    arm = "with-skill" if invocation.settings["skill"] else "without"
    reply = RECORDED[arm][invocation.id][invocation.repetition % 3]
    calls = tuple(dm.records.ToolCall(name) for name in reply["tools"])
    return dm.Output(
        reply["text"],
        trajectory=dm.records.Trajectory(tool_calls=calls, steps=len(calls) + 1),
        usage=dm.records.Usage(cost_usd=reply["usd"], latency_ms=1000 * reply["s"]),
    )
