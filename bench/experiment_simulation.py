"""How often the answer of an experiment is right, by simulation of the sentences that a user reads.

Usage: python3 bench/experiment_simulation.py [--quick]     (a minute and a half on two cores; --quick: ten seconds)

Worlds are made with numpy alone: samples are easy or hard for all variants alike, and each variant passes them with a
chance. Printed, each share with its standard error:
- how often one of 4, 8 and 20 equal variants is called best, or worse than another (5 % allowed);
- how often the best one is named, and how often a wrong one, where one is better;
- "about N samples would tell them apart four times out of five, if the difference is what we saw": how often N do;
- how often an effect of a factor is claimed that is not there, and an interaction that is not there (5 % allowed), and
  how often those that are there are found, and lie in the interval that is told.
Some worlds are read from the whole text of the experiment; those of many variants from the same intervals, which are
kept by the counts of samples that only one of two variants passes, so that the sentence need not be written each time.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations

import numpy as np

from deemster.comparison.experiment import VariantSource, build_experiment
from deemster.records import MetricCard
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import SCORED
from deemster.results.run_columns import ComparedRun, RunColumns
from deemster.stats import paired_difference
from deemster.stats.factor_effects import factor_effects
from deemster.stats.paired_difference import flip_p_values
from deemster.stats.run_ranking import pair_confidence, rank_ranges

ALLOWED = 0.05
PROMISED = 0.8
GRID = [{"prompt": prompt, "chat": chat} for prompt in ("short", "polite") for chat in ("mini", "local")]
CUBE = [{"a": a, "b": b, "c": c} for a in "012" for b in "01" for c in "01"]


class Source:
    """A run that is made of marks: samples x repetitions."""

    cluster = None
    margin = None

    def __init__(self, passed: np.ndarray, name: str) -> None:
        self._passed, self._name = passed, name

    def columns(self, *, cluster: str | None) -> RunColumns:  # noqa: ARG002 - what a source has
        samples, repetitions = self._passed.shape
        table = MarkTable([MetricCard("m", "m", "m", "lexical", None, 0.5)], samples=samples, repetitions=repetitions)
        table.causes[:] = SCORED
        table.passed[:, :, 0] = self._passed
        table.scores[:, :, 0] = self._passed
        rate = float(self._passed.mean())
        return RunColumns(
            run=ComparedRun(
                id=self._name, dataset="made", fingerprint=None, started_at="2026-01-01T00:00:00.000Z",
                status="complete", samples=samples, repetitions=repetitions, macro_f1=rate, pass_rate=rate,
            ),
            marks=table,
            digests=digests(samples),
            identities={"m": {}},
            clusters=None,
            ids=lambda positions: [str(position) for position in positions],
        )  # fmt: skip


@functools.cache
def digests(samples: int) -> np.ndarray:
    whole = b"".join(hashlib.sha256(str(place).encode()).digest() for place in range(samples))
    return np.frombuffer(whole, dtype=np.uint8).reshape(-1, 32)


def text_of(passed: np.ndarray, levels: list[dict[str, str]] | None = None) -> str:
    """What people read of an experiment: all its lines, for passes of samples x variants x repetitions."""
    cells = levels or [{} for _ in range(passed.shape[1])]
    names = [" / ".join(cell.values()) or f"v{place}" for place, cell in enumerate(cells)]
    sources = [
        VariantSource(name, cell, Source(passed[:, place], name))
        for place, (name, cell) in enumerate(zip(names, cells, strict=True))
    ]
    sections = build_experiment(sources, id="x").sections()
    return "\n".join("".join(line) for section in sections for line in (section.title, *section.lines, *section.after))


def draw(rng: np.random.Generator, samples: int, rates: list[float], repetitions: int = 1) -> np.ndarray:
    """Passes of samples x variants x repetitions; what is hard is hard for all, and rates are those in all samples."""
    easiness = rng.uniform(-1, 1, samples)[:, None]
    means = np.asarray(rates)[None, :]
    chances = means + easiness * 0.8 * np.minimum(means, 1 - means)
    return rng.random((samples, len(rates), repetitions)) < chances[:, :, None]


@functools.lru_cache(maxsize=200_000)
def pair_interval(lost: int, gained: int, samples: int, confidence: float) -> tuple[float, float]:
    changes = np.zeros(samples)
    changes[:lost] = -1.0
    changes[lost : lost + gained] = 1.0
    interval = paired_difference(changes, confidence=confidence).interval
    return interval.lower, interval.upper


def decided(passed: np.ndarray) -> tuple[tuple[int, int], ...]:
    """The ranges of ranks that all pairs leave open, for passes of samples x variants."""
    samples, variants = passed.shape
    level = pair_confidence(variants, 0.95)
    marks = passed.astype(np.int64)
    both = marks.T @ marks
    totals = marks.sum(axis=0)
    intervals = {
        (one, two): pair_interval(int(totals[one] - both[one, two]), int(totals[two] - both[one, two]), samples, level)
        for one, two in combinations(range(variants), 2)
    }
    return rank_ranges(variants, intervals)


def error_of(share: float, draws: int) -> float:
    return math.sqrt(max(share * (1 - share), 1 / draws / 4) / draws)


def told(share: float, draws: int) -> str:
    return f"{share:.3f} ± {error_of(share, draws):.3f}"


def equal_variants(job: tuple[int, int, float, int]) -> tuple[tuple[int, int, float, int], float, float]:
    """How often one of equal variants is called best, and how often any is called worse."""
    variants, samples, rate, draws = job
    rng = np.random.default_rng([variants, samples, round(1000 * rate)])
    best = worse = 0
    for _ in range(draws):
        ranks = decided(draw(rng, samples, [rate] * variants)[:, :, 0])
        best += any(rank == (1, 1) for rank in ranks)
        worse += any(rank != (1, variants) for rank in ranks)
    return job, best / draws, worse / draws


def equal_text(job: tuple[int, int, float, int, int]) -> tuple[tuple[int, int, float, int, int], float, float, float]:
    """The same from the whole text, and how often it agrees with the quick way where that applies."""
    variants, samples, rate, repetitions, draws = job
    rng = np.random.default_rng([variants, samples, repetitions, 7])
    best = worse = agrees = 0
    for _ in range(draws):
        passed = draw(rng, samples, [rate] * variants, repetitions)
        text = text_of(passed)
        says_best = " is best: " in text.splitlines()[0] and " points above " in text.splitlines()[0]
        says_worse = not text.startswith("No two of the ")
        best += says_best
        worse += says_worse
        if repetitions == 1:
            agrees += says_worse == any(rank != (1, variants) for rank in decided(passed[:, :, 0]))
    return job, best / draws, worse / draws, agrees / draws


def one_better(job: tuple[int, int, float, int]) -> tuple[tuple[int, int, float, int], float, float]:
    """How often the first variant, better by so much, is called best, and how often another one is."""
    variants, samples, lead, draws = job
    rng = np.random.default_rng([variants, samples, round(1000 * lead)])
    right = wrong = 0
    for _ in range(draws):
        ranks = decided(draw(rng, samples, [0.7 + lead, *[0.7] * (variants - 1)])[:, :, 0])
        right += ranks[0] == (1, 1)
        wrong += any(rank == (1, 1) for rank in ranks[1:])
    return job, right / draws, wrong / draws


def samples_promised(job: tuple[int, int, int, int, int]) -> tuple[tuple[int, int, int, int, int], int, float, float]:
    """How often the samples that a sentence names tell two variants apart, if the difference is what was seen.

    The samples that only the first passes, and those that only the second passes, come as often as they were seen.
    """
    variants, samples, lost, gained, draws = job
    passed = np.zeros((samples, variants, 1), dtype=bool)
    passed[: samples // 2] = True
    passed[:lost, 1] = False
    passed[samples // 2 : samples // 2 + gained, 1] = True
    sentence = text_of(passed if variants == 2 else passed[:, [0, 1, *[0] * (variants - 2)]])
    about = re.search(r"[Aa]bout ([\d,]+) (?:samples )?would", sentence)
    number = int(about[1].replace(",", ""))

    rng = np.random.default_rng([number, variants])
    counts = rng.multinomial(number, [lost / samples, gained / samples, 1 - (lost + gained) / samples], draws)
    rows, where = np.unique(counts[:, :2], axis=0, return_inverse=True)
    down, up = (flip_p_values(*pair, n=number, mean=0.0, side="below") for pair in (rows.T, rows.T[::-1]))
    alpha = (1 - pair_confidence(variants, 0.95)) / 2
    truly = (down if lost > gained else up) <= alpha
    return job, number, float(truly[where.ravel()].mean()), float((np.minimum(down, up) <= alpha)[where.ravel()].mean())


def factor_claims(job: tuple[str, list[dict[str, str]], list[float], int, int, int]) -> tuple[str, dict[str, float]]:
    """How often effects and interactions are claimed, and how often all intervals hold what is true."""
    name, cells, rates, samples, repetitions, draws = job
    rng = np.random.default_rng([samples, repetitions, len(cells), round(1000 * sum(rates))])
    truth = factor_effects(np.tile(rates, (2, 1)), cells)
    count = {"main": 0, "interaction": 0, "mains hold": 0, "interactions hold": 0}
    for _ in range(draws):
        effects = factor_effects(draw(rng, samples, rates, repetitions).mean(axis=2), cells)
        for kind, plural in (("main", "mains"), ("interaction", "interactions")):
            found = [contrast.paired.interval for contrast in getattr(effects, plural)]
            true = [contrast.paired.value for contrast in getattr(truth, plural)]
            count[kind] += any(one.lower > 0 or one.upper < 0 for one in found)
            held = (
                one.lower <= value + 1e-12 and value <= one.upper + 1e-12
                for one, value in zip(found, true, strict=True)
            )
            count[f"{plural} hold"] += all(held)
    return name, {key: value / draws for key, value in count.items()}


def factor_jobs(draws: int) -> list[tuple[str, list[dict[str, str]], list[float], int, int, int]]:
    cube = [0.6 + 0.1 * int(cell["a"]) + 0.05 * int(cell["b"]) for cell in CUBE]
    turned = [0.6 + (0.2 if cell["prompt"] == "polite" and cell["chat"] == "mini" else 0.0) for cell in GRID]
    return [
        ("2 x 2, nothing there", GRID, [0.8] * 4, 120, 1, draws),
        ("2 x 2, nothing there, few samples", GRID, [0.9] * 4, 30, 1, draws),
        ("2 x 2, nothing there, three repetitions", GRID, [0.8] * 4, 60, 3, draws),
        ("3 x 2 x 2, nothing there", CUBE, [0.8] * 12, 120, 1, draws),
        ("2 x 2, two effects of 10 points, no interaction", GRID, [0.6, 0.7, 0.7, 0.8], 120, 1, draws),
        ("3 x 2 x 2, effects of 10, 20 and 5 points, no interaction", CUBE, cube, 120, 1, draws),
        ("2 x 2, 20 points in one cell alone", GRID, turned, 200, 1, draws),
    ]


def main() -> None:
    quick = "--quick" in sys.argv
    draws = 100 if quick else 2000
    texts = 10 if quick else 150
    with ProcessPoolExecutor(2) as pool:
        print(f"Equal variants, {draws:,} experiments a row: called best; called worse ({ALLOWED:.0%} allowed)")
        jobs = [
            (variants, samples, rate, draws)
            for variants in (4, 8, 20)
            for samples, rate in ((20, 0.7), (50, 0.9), (120, 0.7), (120, 0.98), (500, 0.9))
        ]
        for (variants, samples, rate, _), best, worse in pool.map(equal_variants, jobs):
            head = f"{variants:3} variants, {samples:4} samples, {rate:.2f} pass"
            print(f"{head}: {told(best, draws)}; {told(worse, draws)}")

        print(f"\nThe same from the whole text, {texts} experiments a row; how often it says what the quick way says")
        jobs = [(4, 120, 0.7, 1, texts), (4, 40, 0.7, 3, texts), (8, 60, 0.8, 1, texts), (20, 60, 0.8, 1, texts // 5)]
        for (variants, samples, _, repetitions, count), best, worse, agrees in pool.map(equal_text, jobs):
            same = f"{agrees:.3f}" if repetitions == 1 else "-"
            head = f"{variants:3} variants, {samples:4} samples, {repetitions} repetitions"
            print(f"{head}: {told(best, count)}; {told(worse, count)}; {same}")

        print(
            f"\nOne variant is better than all others, {draws:,} experiments a row: named best; another one named best"
        )
        jobs = [
            (variants, samples, lead, draws)
            for variants in (4, 8, 20)
            for samples, lead in ((120, 0.1), (120, 0.2), (500, 0.1))
        ]
        for (variants, samples, lead, _), right, wrong in pool.map(one_better, jobs):
            head = f"{variants:3} variants, {samples:4} samples, better by {100 * lead:.0f} points"
            print(f"{head}: {told(right, draws)}; {told(wrong, draws)}")

        shares = 10 * draws
        print(f"\nSamples that a sentence names ({PROMISED:.0%} promised), {shares:,} draws: the right one wins; any")
        jobs = [
            (variants, samples, lost, gained, shares)
            for variants in (2, 4, 8)
            for samples, lost, gained in ((120, 4, 10), (120, 2, 0), (120, 15, 25), (40, 1, 3), (500, 20, 30))
        ]
        for (variants, samples, lost, gained, _), number, right, any_way in pool.map(samples_promised, jobs):
            head = f"{variants} variants, {samples:3} samples, {lost:2} lost, {gained:2} gained"
            print(f"{head}: about {number:6,}: {told(right, shares)}; {told(any_way, shares)}")

        print(f"\nFactors, {draws // 2:,} experiments: an effect claimed; all are right; of interactions the same")
        for name, share in pool.map(factor_claims, factor_jobs(draws // 2)):
            cells = (share[key] for key in ("main", "mains hold", "interaction", "interactions hold"))
            print(f"{name}: {'; '.join(told(value, draws // 2) for value in cells)}")


if __name__ == "__main__":
    main()
