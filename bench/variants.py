"""What running variants side by side costs beside running each by itself, in CPU time.

Ten variants of 1,000 samples, stored, once as one experiment and once as ten runs one after the other; the target is an
async function that answers at once, so that nothing but our own work is measured. Prints both times and the ratio,
which is to be at most 1.2, for a metric that asks no model and for a judge. An experiment ends with a ranking; what
`rank` takes for the same runs is taken away. Variants that say the same have their judge asked once.

Usage: python bench/variants.py [SAMPLES] [VARIANTS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import deemster as dm
from deemster.testing import FakeChat

MOST = 1.2
ROUNDS = 3


def target(number: int) -> Callable[..., Any]:
    """A target that is right as often as its number says. What it does not know it says in its own words."""

    async def answer(question: Mapping[str, Any]) -> str:
        return str(question["n"]) if question["n"] % (number + 2) else f"unknown to {number}"

    return answer


def verdict(ask: Any) -> str:
    """What the judge says: the same of the same question."""
    return f'{{"reason": "because", "score": {crc32(str(ask.messages).encode()) % 2}}}'


def measured(*works: Callable[[Path], None]) -> list[float]:
    """The least CPU time of some rounds of each work, in turn."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, spent in zip(works, times, strict=True):
            with tempfile.TemporaryDirectory() as folder:
                began = time.process_time()
                work(Path(folder) / "runs.db")
                spent.append(time.process_time() - began)
    return [min(spent) for spent in times]


def main() -> None:
    """Measure both ways."""
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    variants = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    golden = [{"id": f"q{n}", "input": {"n": n}, "expected_output": str(n)} for n in range(samples)]
    targets = {f"variant {number}": target(number) for number in range(variants)}

    too_slow = False
    for metric in ("exact-match", "llm-as-judge"):
        judge = {"judge": FakeChat(verdict)} if metric == "llm-as-judge" else None

        def one_by_one(path: Path, metric: str = metric, judge: Any = judge) -> None:
            for name, answer in targets.items():
                dm.evaluate(golden, target=answer, name=name, storage=path, metrics=[metric], models=judge)

        def side_by_side(path: Path, metric: str = metric, judge: Any = judge) -> None:
            dm.evaluate_variants(golden, targets, storage=path, metrics=[metric], models=judge)

        def ranked(path: Path, work: Callable[[Path], None] = one_by_one) -> None:
            work(path)
            dm.rank(*targets, store=path)

        alone, alone_and_ranked, beside = measured(one_by_one, ranked, side_by_side)
        ratio = (beside - (alone_and_ranked - alone)) / alone
        too_slow |= ratio > MOST
        print(
            f"{metric}: {variants} variants x {samples:,} samples: side by side and ranked {beside:.2f} CPU s, "
            f"one by one {alone:.2f} CPU s, and ranked {alone_and_ranked:.2f} CPU s; "
            f"ratio without the ranking {ratio:.2f} (at most {MOST}), with it {beside / alone_and_ranked:.2f}"
        )
    sys.exit(too_slow)


if __name__ == "__main__":
    main()
