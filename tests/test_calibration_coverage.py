"""The simulation of corrected pass-rates runs, and keeps its goals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parent.parent / "bench" / "calibration.py"


def test_corrected_numbers_hold_the_truth_where_naive_ones_do_not():
    done = subprocess.run([sys.executable, str(BENCH), "--quick"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Missed goals: none" in done.stdout
    for part in ("own, verdicts", "other, verdicts", "Corrected mean scores", "kind to the first"):
        assert part in done.stdout
