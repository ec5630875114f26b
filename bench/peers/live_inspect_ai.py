"""A live target through Inspect, which writes its log: prints what `live_target.measured` does.

Usage: .envs/inspect-ai/bin/python bench/peers/live_inspect_ai.py SMALL LARGE
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

os.environ |= {"INSPECT_DISPLAY": "none", "INSPECT_LOG_LEVEL": "error"}

from inspect_ai import Task, eval  # noqa: A004 - its own name for it
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import solver

sys.path.insert(0, str(Path(__file__).parents[1]))

from live_cases import LONGEST, PATTERN, answer_of, cases, measured


@solver
def answer():
    async def solve(state, _generate):
        state.output.completion = answer_of(state.input_text)
        return state

    return solve


NAMES = ("exact", "contains", "starts", "length", "regex")


# One scorer for all five is what it does fastest.
@scorer(metrics={name: [mean()] for name in NAMES})
def five():
    async def score(state, target):
        output, expected = state.output.completion, target.text
        right = (
            output == expected,
            expected in output,
            output.startswith(expected),
            len(output) <= LONGEST,
            re.search(PATTERN, output) is not None,
        )
        return Score(value=dict(zip(NAMES, map(float, right), strict=True)))

    return score


def evaluated(count):
    """The sum of the mean scores."""
    samples = [Sample(id=case["id"], input=case["question"], target=case["expected"]) for case in cases(count)]
    task = Task(dataset=MemoryDataset(samples), solver=answer(), scorer=five())
    with tempfile.TemporaryDirectory() as folder:
        [log] = eval(
            task,
            model="mockllm/model",
            log_dir=folder,
            display="none",
            score_display=False,
            log_realtime=False,
            max_samples=100,
        )
    return sum(metric.value for score in log.results.scores for metric in score.metrics.values())


print(json.dumps(measured(evaluated, *map(int, sys.argv[-2:]))))
