"""The application under test: replace `run_agent` by a call of yours, and return the tools it called."""

import deemster as dm


def run_agent(input: dict) -> dm.Output:
    """Do one task with the tools of a shop; the log of an agent gives the same facts."""
    order = input["order"]
    calls = [dm.records.ToolCall("read_order", {"order": order})]
    if "cancel" not in input["task"].lower():
        text = f"Order {order} is on its way."
        return dm.Output(text, trajectory=dm.records.Trajectory(tool_calls=tuple(calls), steps=2))
    calls.append(dm.records.ToolCall("cancel_order", {"order": order}))
    text = f"Order {order} is cancelled."
    log = dm.records.Trajectory(tool_calls=tuple(calls), steps=3, approvals=("cancel_order",))
    return dm.Output(text, trajectory=log)
