"""CPU time of rouge-l against rouge-score on the same pairs of texts, marks included.

Usage: .venv/bin/python bench/rouge.py [--quick]     (--quick: few pairs)
"""

import importlib.metadata
import random
import sys
import time

from measured_rows import OURS, record_row
from rouge_score.rouge_scorer import RougeScorer

from deemster.metrics.rouge_and_token_f1 import RougeL
from deemster.records import Output, Sample

TURNS = 20
CASES = ((10_000, 60, 10_000, 30), (1_000, 1_000, 40, 600))
QUICK = ((200, 60, 200, 30), (20, 1_000, 20, 600))


def texts(pairs, tokens):
    """Pairs of texts that share a vocabulary of 2,000 words."""
    rng = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(2_000)]
    return [tuple(" ".join(rng.choices(vocabulary, k=tokens)) + "." for _ in range(2)) for _ in range(pairs)]


def timed(function):
    """The CPU time and the result of a call."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def race(pairs, asked):
    """CPU seconds a pair of ours and of the peer, and the largest difference of a score.

    Both take turns over small parts of the pairs, so that a busy neighbour slows both alike.
    """
    metric, scorer = RougeL(), RougeScorer(["rougeL"])
    samples = [(Sample(str(number), {}, expected), Output(actual)) for number, (expected, actual) in enumerate(pairs)]
    ours_s = theirs_s = apart = 0.0
    for turn in range(TURNS):
        part = slice(turn * len(pairs) // TURNS, (turn + 1) * len(pairs) // TURNS)
        spent, scores = timed(lambda part=part: [metric.score(*pair).score for pair in samples[part]])
        ours_s += spent
        few = pairs[part][: asked // TURNS]
        spent, references = timed(lambda few=few: [scorer.score(*pair)["rougeL"].fmeasure for pair in few])
        theirs_s += spent
        apart = max([apart, *(abs(a - b) for a, b in zip(scores, references, strict=False))])
    return ours_s / len(pairs), theirs_s / asked, apart


def main():
    for count, tokens, asked, goal in QUICK if "--quick" in sys.argv else CASES:
        mine, theirs, apart = race(texts(count, tokens), asked)
        note = "" if asked == count else f" (measured on {asked} pairs)"
        print(
            f"{count} pairs of {tokens} tokens: deemster {mine * 1e6:.0f} µs a pair, rouge-score {theirs * 1e3:.2f} ms"
            f"{note}, {theirs / mine:.0f} times (goal {goal}); largest difference {apart:.1e}",
            flush=True,
        )
        for tool, each, pairs in ((OURS, mine, count), ("rouge-score", theirs, asked)):
            record_row(
                f"ROUGE-L of texts of {tokens:,} tokens",
                tool,
                each * 1e6,
                "µs a pair",
                version=importlib.metadata.version(tool),
                samples=pairs,
                cpu_s=each * pairs,
                goal=None if tool == OURS else goal,
            )


if __name__ == "__main__":
    main()
