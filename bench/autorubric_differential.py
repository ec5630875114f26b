"""Every field of alignment results against autorubric on random votes files, under the combinations of modes in turn.

Usage: .venv/bin/python bench/autorubric_differential.py [datasets] [first seed]        (500; takes ten minutes)

Votes files and the rules that say where and why ours differs are those of tests/differential/test_autorubric.py, which
checks two dozen of them in each run of the tests. A field that is neither equal to 1e-9 nor explained is printed, and
the script fails.
"""

import importlib
import sys
import time
import types
from collections import Counter
from pathlib import Path

from deemster.agreement import BootstrapSettings, compute_metrics
from deemster.datasets import Votes

# A package of this name among the installed ones would hide the folder.
sys.modules["tests"] = types.ModuleType("tests")
sys.modules["tests"].__path__ = [str(Path(__file__).parent.parent / "tests")]
differential = importlib.import_module("tests.differential.test_autorubric")
autorubric = importlib.import_module("tests.differential.autorubric.peer").autorubric


def cells(value):
    """How many plain values a result holds."""
    if isinstance(value, dict):
        return sum(map(cells, value.values()))
    return sum(map(cells, value)) if isinstance(value, list) else 1


def compare(peer, seed, counts):
    """The fields of one votes file that no rule explains."""
    value = differential.votes_file(seed)
    calls = [differential.CALLS[seed % len(differential.CALLS)]]
    answer = peer.answer(value, calls)
    votes = Votes.parse(value)
    for call, theirs in zip(calls, answer["results"], strict=True):
        if "error" in theirs:
            differential.check_refusal(votes, call, theirs["error"])
            counts["refusals"] += 1
            continue
        ours = differential.plain(compute_metrics(votes, None, bootstrap=BootstrapSettings(replicates=0), **call))
        counts["results"] += 1
        counts["fields"] += cells(theirs)
        for found in differential.disagreements(theirs, ours, differential.Facts(value, answer["items"], call)):
            yield f"seed {seed}, {call}: {found}"


def main():
    datasets = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    started, counts, unexplained = time.process_time(), Counter(), []
    with autorubric() as peer:
        for seed in range(first, first + datasets):
            if seed % 100 == 99:
                print(f"seed {seed}", file=sys.stderr, flush=True)
            for line in compare(peer, seed, counts):
                unexplained.append(line)
                print(line, flush=True)
    told = ", ".join(f"{counts[what]:,} {what}" for what in ("results", "fields", "refusals"))
    seconds = time.process_time() - started
    print(f"{datasets} votes files, {told}: {len(unexplained)} unexplained; {seconds:.0f} CPU seconds")
    sys.exit(bool(unexplained))


if __name__ == "__main__":
    main()
