"""A slow solver through Inspect, begun or retried from its log: prints how many samples passed; see bench/resume.py.

Usage: .envs/inspect-ai/bin/python bench/peers/resume_inspect_ai.py CASES.json AT_ONCE begin|resume
"""

import json
import os
import sys
from pathlib import Path

os.environ |= {"INSPECT_DISPLAY": "none", "INSPECT_LOG_LEVEL": "error"}

import anyio
from inspect_ai import Task, eval, eval_retry, task  # noqa: A004 - its own name for it
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import accuracy, exact
from inspect_ai.solver import solver


def write_finished(name):
    with Path(os.environ["FINISHED"]).open("a") as file:
        file.write(f"{name}\n")


@solver
def replay():
    async def solve(state, _generate):
        await anyio.sleep(state.metadata["seconds"])
        write_finished(state.sample_id)
        state.output.completion = state.metadata["output"]
        return state

    return solve


@task
def slow(path):
    samples = [
        Sample(id=case["id"], input=case["question"], target=case["expected"], metadata=case)
        for case in json.loads(Path(path).read_text())
    ]
    return Task(dataset=MemoryDataset(samples), solver=replay(), scorer=exact(), metrics=[accuracy()])


def main():
    path, at_once, act = sys.argv[1:]
    # Each sample goes into the log at once; by itself it keeps some back.
    options = {"log_dir": "logs", "display": "none", "score_display": False, "log_buffer": 1}
    options["max_samples"] = int(at_once)
    if act == "begin":
        eval(f"{__file__}@slow", task_args={"path": path}, model="mockllm/model", **options)
        return
    [log] = eval_retry([str(file) for file in Path("logs").iterdir()], **options)
    [score] = log.results.scores
    print(round(score.metrics["accuracy"].value * len(log.samples)))


if __name__ == "__main__":
    main()
