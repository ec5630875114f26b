"""Five thousand hostile inputs for every parser: only typed errors, at most a second and 256 MB each.

Each parser is fed in a process of its own, whose address space is bounded to what it has once everything is loaded, and
256 MB. `worker.py` takes any number of inputs and any seed. There is no viewer yet, so there is no URL of its to be
read.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.parsers import MEGABYTES, PARSERS, SECONDS, corpus

SEED = 20_260_101
COUNT = 5_000
# Slow to read, and no format that others write.
FEWER = {"alignment": 2_000}
WORKER = Path(__file__).parent / "worker.py"


def fed(name, *, count, seed=SEED):
    """What came of feeding a parser."""
    done = subprocess.run(
        [sys.executable, WORKER, name, str(count), str(seed)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{name} ended its process: {done.returncode}\n{done.stderr[-2000:]}"
    assert done.stderr == ""
    return json.loads(done.stdout)


def told(result):
    """The failure and its input, to be added to the corpus."""
    return "\n".join(
        f"{sign}\n{found['told']}\ninput: {base64.b64decode(found['input'])[:2000]!r}"
        for sign, found in result["findings"].items()
    )


@pytest.mark.parametrize("name", PARSERS)
def test_hostile_input_gives_typed_errors_within_limits(name, capsys):
    count = FEWER.get(name, COUNT)
    result = fed(name, count=count)
    figures = "{fed:,} inputs, {read:,} read, {cpu_s:.1f} CPU s, slowest {slowest_s:.3f} s, {grown_mb:.0f} MB".format(
        **result
    )
    with capsys.disabled():
        sys.stdout.write(f"\n  {name}: {figures}\n")
    assert result["findings"] == {}, told(result)
    assert result["fed"] == count
    assert result["slowest_s"] <= SECONDS
    assert result["grown_mb"] <= MEGABYTES
    # Both outcomes are covered: accepted and refused input.
    assert count / 50 < result["read"] < count * 0.9


@pytest.mark.parametrize("name", PARSERS)
def test_corpus_has_valid_inputs(name, tmp_path):
    parser = PARSERS[name]
    assert any(parser.feed(tmp_path / f"input{parser.suffix}", data) for data in corpus(name))
