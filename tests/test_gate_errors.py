"""The simulation of a gate's errors runs, and keeps its goals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parent.parent / "bench" / "gate_errors.py"


def test_errors_of_the_gate_stay_below_their_goal():
    done = subprocess.run([sys.executable, str(BENCH), "--quick"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    for part in (
        "enumerated exactly",
        "false PASS",
        "false FAIL",
        "coverage",
        "twenty cohorts",
        "power",
        "confirm",
    ):
        assert part in done.stdout
