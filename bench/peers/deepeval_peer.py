"""Saved outputs through DeepEval's `evaluate`.

Prints the CPU seconds of the first call and of the best of three more, and how many passed.

Usage: .envs/deepeval/bin/python bench/peers/deepeval_peer.py CASES.json
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ |= {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "ERROR_REPORTING": "0",
}

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

REPEATS = 3


class Exact(BaseMetric):
    """1 if the output equals what was expected, else 0."""

    threshold = 0.5
    async_mode = True
    evaluation_model = None
    include_reason = False

    def measure(self, test_case, *_args, **_options):
        self.score = float(test_case.actual_output == test_case.expected_output)
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case, *_args, **_options):
        return self.measure(test_case)

    def is_successful(self):
        return self.success

    @property
    def __name__(self):
        return "Exact"


def result_of(cases):
    tests = [
        LLMTestCase(
            name=case["id"], input=case["question"], actual_output=case["output"], expected_output=case["expected"]
        )
        for case in cases
    ]
    # One after the other and without a cache it is faster than by itself.
    return evaluate(
        tests,
        [Exact()],
        async_config=AsyncConfig(run_async=False),
        display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
        cache_config=CacheConfig(write_cache=False),
    )


def main():
    cases = json.loads(Path(sys.argv[1]).read_text())
    # It leaves a folder of its own where it runs.
    os.chdir(tempfile.mkdtemp(dir=Path(sys.argv[1]).parent))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        spent = []
        for _ in range(1 + REPEATS):
            start = time.process_time()
            result = result_of(cases)
            spent.append(time.process_time() - start)
    print(spent[0], min(spent[1:]), sum(bool(test.success) for test in result.test_results))


main()
