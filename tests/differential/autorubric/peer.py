"""autorubric in its own environment, asked over pipes; one process answers all questions."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = HERE.parents[2] / ".envs" / "autorubric" / "bin" / "python"


class Peer:
    """Asks a running `answer.py`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def answer(self, votes: dict, calls: list[dict], *, truth_as_graded: bool = True) -> dict:
        """What autorubric derives from the votes, and its metrics for each call."""
        request = {"votes": votes, "calls": calls, "truth_as_graded": truth_as_graded}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "autorubric ended without an answer; its own words are on standard error"
        return json.loads(line)


@contextmanager
def autorubric() -> Iterator[Peer]:
    """A peer to ask; `tests/lanes.py` says what needs it."""
    environment = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [PYTHON, HERE / "answer.py"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield Peer(process)
        process.stdin.close()
