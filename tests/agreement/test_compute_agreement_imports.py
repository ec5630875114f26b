"""The first call in a process is the one that people wait for."""

import subprocess
import sys
from pathlib import Path

VOTES = Path(__file__).parents[2] / "examples" / "judge_validation" / "votes.json"
CODE = """
import sys
from deemster.agreement import compute_metrics
from deemster.datasets import Votes

metrics = compute_metrics(Votes.load(sys.argv[1]), None, per_judge=True)
assert metrics.bootstrap is not None
print("scipy" in sys.modules)
"""


def test_agreement_with_intervals_loads_no_scipy():
    done = subprocess.run([sys.executable, "-c", CODE, str(VOTES)], check=True, capture_output=True, text=True)

    assert done.stdout.strip() == "False"
