"""statgate's verdicts on simulated comparisons: prints how many it ships and blocks, as JSON.

Its settings are its own (95 % two-sided), except for fewer draws: 2,000 resamples, and 100 permutations, whose p-value
does not decide.

Usage: .envs/statgate/bin/python bench/peers/gate_errors_statgate.py < comparisons.json
"""

import json
import sys

from statgate.config import GateSettings
from statgate.errors import AnalysisError
from statgate.records import EvalRecord
from statgate.verdict import Verdict, evaluate_gate


def main():
    counts = []
    for job in json.load(sys.stdin):
        settings = GateSettings(margin=job["margin"], resamples=2000, permutations=100, seed=1)
        told = {"ship": 0, "block": 0, "n": len(job["comparisons"])}
        for differences in job["comparisons"]:
            before = [EvalRecord(case_id=str(place), score=0.0) for place in range(len(differences))]
            after = [EvalRecord(case_id=str(place), score=value) for place, value in enumerate(differences)]
            try:
                verdict = evaluate_gate(before, after, settings).verdict
            except AnalysisError:
                # It refuses fewer than five samples.
                continue
            told["ship"] += verdict is Verdict.SHIP
            told["block"] += verdict is Verdict.BLOCK
        counts.append(told)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
