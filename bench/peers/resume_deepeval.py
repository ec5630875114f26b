"""A slow metric through DeepEval with its cache, twice: prints how many cases passed; see bench/resume.py.

Usage: .envs/deepeval/bin/python bench/peers/resume_deepeval.py CASES.json AT_ONCE begin|resume
"""

import asyncio
import contextlib
import io
import json
import os
import sys
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

SECONDS = {}


def write_finished(name):
    with Path(os.environ["FINISHED"]).open("a") as file:
        file.write(f"{name}\n")


class SlowExact(BaseMetric):
    """1 if the output equals what was expected, else 0, after some time."""

    threshold = 0.5
    async_mode = True
    evaluation_model = None
    include_reason = False

    async def a_measure(self, test_case, *_args, **_options):
        await asyncio.sleep(SECONDS[test_case.name])
        write_finished(test_case.name)
        self.score = float(test_case.actual_output == test_case.expected_output)
        self.success = self.score >= self.threshold
        return self.score

    def measure(self, test_case, *_args, **_options):
        return asyncio.run(self.a_measure(test_case))

    def is_successful(self):
        return self.success

    @property
    def __name__(self):
        return "SlowExact"


def main():
    path, at_once, _ = sys.argv[1:]
    cases = json.loads(Path(path).read_text())
    SECONDS.update({case["id"]: case["seconds"] for case in cases})
    tests = [
        LLMTestCase(
            name=case["id"], input=case["question"], actual_output=case["output"], expected_output=case["expected"]
        )
        for case in cases
    ]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        result = evaluate(
            tests,
            [SlowExact()],
            async_config=AsyncConfig(max_concurrent=int(at_once)),
            display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
            cache_config=CacheConfig(write_cache=True, use_cache=True),
        )
    print(sum(bool(test.success) for test in result.test_results))


main()
