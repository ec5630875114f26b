"""CPU time of rouge-l against rouge-score on the same pairs of texts, marks included.

Usage: .venv/bin/python bench/rouge.py
"""

import random
import time

from rouge_score.rouge_scorer import RougeScorer

from deemster.metrics.overlap import RougeL
from deemster.records import Output, Sample

REPEATS = 3
CASES = ((10_000, 60, 10_000, 30), (1_000, 1_000, 10, 1_000))


def texts(pairs, tokens):
    """Pairs of texts that share a vocabulary of 2,000 words."""
    rng = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(2_000)]
    return [tuple(" ".join(rng.choices(vocabulary, k=tokens)) + "." for _ in range(2)) for _ in range(pairs)]


def best(function):
    """The least CPU time and the result of a few calls."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return min(times), result


def ours(pairs):
    metric = RougeL()
    samples = [Sample(str(number), {}, expected) for number, (expected, _) in enumerate(pairs)]
    outputs = [Output(actual) for _, actual in pairs]
    return best(lambda: [metric.score(*pair).score for pair in zip(samples, outputs, strict=True)])


def peer(pairs):
    scorer = RougeScorer(["rougeL"])
    return best(lambda: [scorer.score(*pair)["rougeL"].fmeasure for pair in pairs])


def main():
    for count, tokens, asked, goal in CASES:
        pairs = texts(count, tokens)
        mine, scores = ours(pairs)
        theirs, references = peer(pairs[:asked])
        theirs *= count / asked
        apart = max(abs(a - b) for a, b in zip(scores, references, strict=False))
        note = "" if asked == count else f", from {asked} pairs"
        print(
            f"{count} pairs of {tokens} tokens: deemster {mine:.3f} s ({mine / count * 1e6:.0f} µs a pair), "
            f"rouge-score {theirs:.1f} s{note}, {theirs / mine:.0f} times (goal {goal}); largest difference {apart:.1e}"
        )


if __name__ == "__main__":
    main()
