"""Saved outputs through pydantic-evals.

Prints the CPU seconds of the first call and of the best of three more, and how many passed.

Usage: .envs/pydantic-evals/bin/python bench/peers/pydantic_evals_peer.py CASES.json
"""

import json
import sys
import time
from pathlib import Path

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected

REPEATS = 3


def report_of(cases):
    outputs = {case["question"]: case["output"] for case in cases}
    dataset = Dataset(
        name="bench",
        cases=[Case(name=case["id"], inputs=case["question"], expected_output=case["expected"]) for case in cases],
        evaluators=[EqualsExpected()],
    )

    async def answer(question):
        return outputs[question]

    return dataset.evaluate_sync(answer, progress=False)


def main():
    cases = json.loads(Path(sys.argv[1]).read_text())
    spent = []
    for _ in range(1 + REPEATS):
        start = time.process_time()
        rate = report_of(cases).averages().assertions
        spent.append(time.process_time() - start)
    print(spent[0], min(spent[1:]), round(rate * len(cases)))


main()
