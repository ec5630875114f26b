"""Thousands of hostile inputs for every parser, 250 in `make test`: only typed errors, at most a second and 256 MB.

Each parser is fed in a process of its own, whose address space is bounded to what it has once everything is loaded, and
256 MB. `worker.py` takes any number of inputs and any seed.
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
FEW = 250
# Slow to read, and no format that others write.
FEWER = {"alignment": 2_000}
WORKER = Path(__file__).parent / "worker.py"


def feed(counts, *, seed=SEED):
    """What came of feeding each parser so many inputs."""
    done = subprocess.run(
        [sys.executable, WORKER, str(seed), *(f"{name}={count}" for name, count in counts.items())],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def describe_findings(result):
    """The failure and its input, to be added to the corpus."""
    return "\n".join(
        f"{result['name']}: {sign}\n{found['told']}\ninput: {base64.b64decode(found['input'])[:2000]!r}"
        for sign, found in result["findings"].items()
    )


# Several parsers share the loading of everything; in four parts the workers share the parsers.
@pytest.mark.parametrize("part", range(4))
def test_hostile_input_gives_typed_errors_within_limits(part, capsys, thorough):
    counts = {name: FEWER.get(name, COUNT) if thorough else FEW for name in list(PARSERS)[part::4]}
    results = feed(counts)
    assert [result["name"] for result in results] == list(counts)
    for result in results:
        count = counts[result["name"]]
        with capsys.disabled():
            sys.stdout.write(
                "\n  {name}: {fed:,} inputs, {read:,} read, {cpu_s:.1f} CPU s, slowest {slowest_s:.3f} s, "
                "{grown_mb:.0f} MB\n".format(**result)
            )
        assert result["findings"] == {}, describe_findings(result)
        assert result["fed"] == count
        assert result["slowest_s"] <= SECONDS
        assert result["grown_mb"] <= MEGABYTES
        # Both outcomes are covered: accepted and refused input.
        assert count / 50 < result["read"] < count * 0.9, result["name"]


@pytest.mark.parametrize("name", PARSERS)
def test_corpus_has_valid_inputs(name, tmp_path):
    parser = PARSERS[name]
    assert any(parser.feed(tmp_path / f"input{parser.suffix}", data) for data in corpus(name))
