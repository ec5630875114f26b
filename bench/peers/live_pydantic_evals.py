"""A live target through pydantic-evals: prints what `live_target.measured` does.

Usage: .envs/pydantic-evals/bin/python bench/peers/live_pydantic_evals.py [--one-evaluator] SMALL LARGE
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator

sys.path.insert(0, str(Path(__file__).parents[1]))

from live_cases import LONGEST, PATTERN, answer_of, cases, measured


@dataclass
class Exact(Evaluator):
    def evaluate(self, ctx):
        return float(ctx.output == ctx.expected_output)


@dataclass
class Contains(Evaluator):
    def evaluate(self, ctx):
        return float(ctx.expected_output in ctx.output)


@dataclass
class StartsWith(Evaluator):
    def evaluate(self, ctx):
        return float(ctx.output.startswith(ctx.expected_output))


@dataclass
class LengthWithin(Evaluator):
    def evaluate(self, ctx):
        return float(len(ctx.output) <= LONGEST)


@dataclass
class Regex(Evaluator):
    def evaluate(self, ctx):
        return float(re.search(PATTERN, ctx.output) is not None)


@dataclass
class AllInOne(Evaluator):
    def evaluate(self, ctx):
        return {
            "exact": float(ctx.output == ctx.expected_output),
            "contains": float(ctx.expected_output in ctx.output),
            "starts": float(ctx.output.startswith(ctx.expected_output)),
            "length": float(len(ctx.output) <= LONGEST),
            "regex": float(re.search(PATTERN, ctx.output) is not None),
        }


FIVE = (Exact, Contains, StartsWith, LengthWithin, Regex)


async def answer(question):
    return answer_of(question)


def evaluated(count):
    """The sum of the mean scores."""
    evaluators = [AllInOne()] if "--one-evaluator" in sys.argv else [evaluator() for evaluator in FIVE]
    dataset = Dataset(
        name="bench",
        cases=[
            Case(name=case["id"], inputs=case["question"], expected_output=case["expected"]) for case in cases(count)
        ],
        evaluators=evaluators,
    )
    return sum(dataset.evaluate_sync(answer, progress=False).averages().scores.values())


print(json.dumps(measured(evaluated, *map(int, sys.argv[-2:]))))
