"""Saved outputs through ragas' `evaluate`.

Prints the CPU seconds of the first call and of the best of three more, and how many passed.

Usage: .envs/ragas/bin/python bench/peers/ragas_peer.py CASES.json
"""

import contextlib
import io
import json
import os
import sys
import time
from pathlib import Path

os.environ["RAGAS_DO_NOT_TRACK"] = "true"

from ragas import EvaluationDataset, RunConfig, SingleTurnSample, evaluate
from ragas.metrics import ExactMatch

REPEATS = 3


def scores_of(cases):
    samples = [
        SingleTurnSample(user_input=case["question"], response=case["output"], reference=case["expected"])
        for case in cases
    ]
    dataset, settings = EvaluationDataset(samples=samples), RunConfig(max_workers=-1)
    result = evaluate(dataset, metrics=[ExactMatch()], show_progress=False, run_config=settings)
    return result["exact_match"]


def main():
    cases = json.loads(Path(sys.argv[1]).read_text())
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        spent = []
        for _ in range(1 + REPEATS):
            start = time.process_time()
            scores = scores_of(cases)
            spent.append(time.process_time() - start)
    print(spent[0], min(spent[1:]), sum(score == 1 for score in scores))


main()
