"""What `deemster compare` says of two judges of the same outputs, by simulation: right answers, wrong ones, coverage.

Usage: python3 bench/judge_change.py [DATASETS]
       (400 datasets a row; about two minutes on one core)

Printed: the answers for five kinds of new judge, for the same judge with more noise of its own, and for judges that
lie exactly at a margin; how often 95 % intervals hold the truth; CPU seconds for 10,000 outputs. Goals: the right
answer in 90 % at 300 outputs, a wrong *interchangeable* in at most 5 % at a margin (6.5 % with discreteness), coverage
92 to 99 %, 2 CPU s.
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measured_rows import OURS, record_row

import deemster as dm
from deemster.agreement.smoothed_kappa import smoothed_kappa
from deemster.comparison.judge_change import JudgedOutputs, compare_judges
from deemster.comparison.judged_outputs import hold_against_people

MARK = 0.7
POPULATION = 400_000
LABELS = 150
SAMPLES = 10_000


class Judge(NamedTuple):
    """A new judge: what it makes of quality and of the old score, its noise, and where it is biased.

    Where it is the same judge again, a share of outputs is judged afresh, and all others get their old score.
    """

    name: str
    right: tuple[str, ...]
    again: float | None = None
    shift: float = 0.0
    power: float = 1.0
    noise: float = 0.0
    bias: float = 0.0
    old_noise: float = 0.06
    reads_quality: bool = False


JUDGES = (
    Judge("same judge twice (1 % judged otherwise)", ("interchangeable",), again=0.01),
    Judge("stricter by 0.08", ("linked",), shift=-0.08, noise=0.03),
    Judge("another scale (score to the power 2.2)", ("linked",), power=2.2, noise=0.02),
    Judge("biased by 0.15 in one cohort", ("not-comparable",), bias=-0.15, noise=0.04),
    Judge(
        "better (noise 0.03 in place of 0.2)",
        ("linked", "not-comparable", "not-enough-data"),
        shift=-0.05,
        noise=0.03,
        old_noise=0.2,
        reads_quality=True,
    ),
)
NOISY = tuple(
    Judge(f"same judge twice, {share:.0%} judged afresh", ("interchangeable",), again=share)
    for share in (0.05, 0.2, 1.0)
)


def draw(judge, n, rng):
    """Quality, old and new scores, and the cohort of each output."""
    quality = rng.beta(4, 1.6, n)
    old = np.clip(quality + rng.normal(0, judge.old_noise, n), 0, 1)
    second = rng.random(n) < 0.5
    if judge.again is not None:
        afresh = np.clip(quality + rng.normal(0, judge.old_noise, n), 0, 1)
        return quality, old, np.where(rng.random(n) < judge.again, afresh, old), second
    base = quality if judge.reads_quality else old
    new = base**judge.power + judge.shift + judge.bias * second + rng.normal(0, judge.noise, n)
    return quality, old, np.clip(new, 0, 1), second


def judged(old, new, second):
    cohorts = {"first": np.flatnonzero(~second), "second": np.flatnonzero(second)}
    return JudgedOutputs(old, new, old >= MARK, new >= MARK, np.arange(len(old)), cohorts, MARK)


def answers(judge, n, datasets):
    """The answers for a judge, how often the better judge is named, and how often intervals hold the truth."""
    quality, old, new, second = draw(judge, POPULATION, np.random.default_rng(1))
    rates = (new >= MARK).astype(float) - (old >= MARK)
    kappa, _ = smoothed_kappa(old >= MARK, new >= MARK, np.arange(POPULATION), confidence=0.95, seed=0, replicates=2)
    worth = quality >= MARK
    errors = ((new >= MARK) != worth).astype(float) - ((old >= MARK) != worth)
    truth = {
        "pass-rate": rates.mean(),
        "mean": (new - old).mean(),
        "cohorts": (rates[~second].mean(), rates[second].mean()),
        "mark": np.quantile(new, np.mean(old < MARK)),
        "kappa": kappa,
        "people": errors.mean(),
    }
    said, held, named = Counter(), Counter(), 0
    for seed in range(datasets):
        rng = np.random.default_rng((seed, n))
        quality, old, new, second = draw(judge, n, rng)
        found = compare_judges(judged(old, new, second), confidence=0.95, seed=seed)
        rows = rng.choice(n, min(n, LABELS), replace=False)
        people = hold_against_people(
            (old >= MARK)[rows].astype(float),
            (new >= MARK)[rows].astype(float),
            (quality >= MARK)[rows].astype(float),
            units=rows,
            weights=np.ones(len(rows)),
            confidence=0.95,
        )
        said[found.answer] += 1
        named += people.closer == "now"
        cohorts = [found.cohorts[label].interval for label in ("first", "second")]
        intervals = {
            "pass-rate": found.pass_rate.interval,
            "mean": found.mean.interval,
            "mark": found.exchange.interval,
            "kappa": found.agreement.interval,
            "people": people.interval,
        }
        for name, interval in intervals.items():
            if interval is not None:
                held[name] += interval.low <= truth[name] <= interval.high
                held[f"{name} n"] += 1
        held["cohorts"] += all(
            low <= value <= high for (low, high), value in zip(cohorts, truth["cohorts"], strict=True)
        )
        held["cohorts n"] += 1
    coverage = {name: held[name] / held[f"{name} n"] for name in truth if held[f"{name} n"]}
    return said, coverage, named / datasets


class Margin(NamedTuple):
    """A judge that lies exactly at a margin: the shares of outputs that only the one and only the other passes."""

    name: str
    lost: float
    gained: float
    first_lost: float | None = None


MARGINS = (
    Margin("pass-rate falls by 2 points, one way", 0.02, 0.0),
    Margin("pass-rate falls by 2 points, 4 lost and 2 gained", 0.04, 0.02),
    Margin("pass-rate rises by 2 points, one way", 0.0, 0.02),
    Margin("a cohort of half falls by 5 points, the other rises by 5", 0.05, 0.0, first_lost=-0.05),
)


def wrongly_interchangeable(margin, n, datasets):
    hits = 0
    for seed in range(datasets):
        rng = np.random.default_rng((seed, n, 5))
        old = rng.random(n) * 0.4 + 0.5
        second = rng.random(n) < 0.5
        passes = old >= MARK
        lost = np.full(n, margin.lost)
        gained = np.full(n, margin.gained)
        if margin.first_lost is not None:
            lost = np.where(second, margin.lost, 0.0)
            gained = np.where(second, 0.0, margin.lost)
        # Half of the outputs pass, so twice the share of them flips.
        flips = np.where(passes, rng.random(n) < 2 * lost, rng.random(n) < 2 * gained)
        new_passed = passes ^ flips
        cohorts = {"first": np.flatnonzero(~second), "second": np.flatnonzero(second)}
        outputs = JudgedOutputs(old, old, passes, new_passed, np.arange(n), cohorts, MARK)
        hits += compare_judges(outputs, confidence=0.95, seed=seed).answer == "interchangeable"
    return hits / datasets


class Strictness:
    """A metric of its own, whose new version is stricter."""

    name = "judged"
    threshold = 0.5

    def __init__(self, less):
        self._less = less
        self.version = str(less)

    def score(self, _, output):
        return dm.MetricScore(max(0.0, len(output.text) / 97 - self._less), threshold=self.threshold)


def seconds_for(samples):
    """CPU seconds of the comparison of two stored runs whose outputs are the same, and what it says."""
    dataset = dm.Dataset(
        [dm.Sample(f"s{n}", {"q": str(n)}, None, {"tags": [f"t{n % 4}"]}) for n in range(samples)], name="made up"
    )
    outputs = {f"s{n}": "x" * (n * 7919 % 97) for n in range(samples)}
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "runs.db")
        for name, less in (("old", 0.0), ("new", 0.08)):
            dm.evaluate(dataset, outputs=outputs, metrics=[Strictness(less)], storage=dm.Storage(store), name=name)
        begun = time.process_time()
        change = dm.compare("old", "new", store=store).judge_change
        return time.process_time() - begun, change


def main():
    datasets = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    begun = time.process_time()
    is_good = True

    print(f"Answers at 300 outputs, {datasets} datasets a row, two cohorts of about 150")
    every = {}
    for judge in JUDGES:
        said, every[judge.name], named = answers(judge, 300, datasets)
        right = sum(said[answer] for answer in judge.right) / datasets
        right = min(right, named) if judge.reads_quality else right
        is_good &= right >= 0.9
        told = ", ".join(f"{answer} {count / datasets:.1%}" for answer, count in said.most_common())
        print(f"  {judge.name:42} right {right:6.1%}   {told}; new judge named better {named:.1%}")
        record_row("right answers about a new judge", OURS, right, "share", samples=300, goal="90 %", note=judge.name)

    print("The same judge with more noise of its own")
    for judge in NOISY:
        for n in (300, 1000, 3000):
            said, _, _ = answers(judge, n, datasets // 4)
            told = ", ".join(f"{answer} {count / (datasets // 4):.0%}" for answer, count in said.most_common())
            print(f"  {judge.name:42} {n:5,}   {told}")

    print("Wrong *interchangeable* exactly at a margin")
    for margin in MARGINS:
        rates = [wrongly_interchangeable(margin, n, datasets) for n in (300, 1000, 3000)]
        is_good &= max(rates) <= 0.065
        print(f"  {margin.name:58}", *(f"{rate:6.1%}" for rate in rates))

    print("Coverage of 95 % intervals at 300 outputs (people: 150 labels)")
    names = ("pass-rate", "mean", "cohorts", "mark", "kappa", "people")
    print(f"  {'':42}", *(f"{name:>9}" for name in names))
    for name, coverage in every.items():
        print(f"  {name:42}", *(f"{coverage.get(number, float('nan')):9.1%}" for number in names))

    seconds, change = seconds_for(SAMPLES)
    is_good &= seconds <= 2
    print(f"{SAMPLES:,} outputs, two stored runs: {seconds:.2f} CPU s ({change.answer})")
    record_row("comparing two judges of 10,000 outputs", OURS, seconds, "CPU s", samples=SAMPLES, goal="2 CPU s")
    print(f"{time.process_time() - begun:.0f} CPU s in all")
    if not is_good:
        sys.exit("A goal is missed.")


if __name__ == "__main__":
    main()
