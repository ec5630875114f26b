"""Do the sentences hold that people read? Worlds with a known truth, made here, and what deemster says of them.

Run: python bench/truth.py [DATASETS]

Nothing of deemster's own model is used to make a world: verdicts, labels and documents are drawn with numpy alone, and
what is checked is what the reports say. 200 datasets a cell unless told otherwise; the standard error of a share is at
most 3.5 points.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import deemster as dm
from deemster.agreement.calibrate_judge import JudgedMetric, JudgedOutput, calibrate_judge
from deemster.results.undeclared_clusters import alike_warnings

DRAWS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
CRITERION = {"name": "ok", "requirement": "The output is right.", "weight": 1}


def votes(people, judge, *, samples=None, **header):
    """A votes file of one judge and one binary criterion."""
    samples = range(len(people)) if samples is None else samples
    return dm.Votes.parse(
        {
            "schema_version": "deemster.votes.v1",
            "rubric": {"criteria": [CRITERION]},
            "judges": [{"id": "judge"}],
            "items": [
                {
                    "id": f"i{at}",
                    "metadata": {"sample": f"s{sample}"},
                    "ground_truth": ["MET" if truth else "UNMET"],
                    "votes": {"judge": ["MET" if verdict else "UNMET"]},
                }
                for at, (truth, verdict, sample) in enumerate(zip(people, judge, samples, strict=True))
            ],
            **header,
        }
    )


def erring(chance, people, *, missed, let_through):
    """What a judge says that misses a share of what people pass, and lets through a share of what they fail."""
    return np.where(people, chance.random(len(people)) >= missed, chance.random(len(people)) < let_through)


def kappa_of(prevalence, missed, let_through):
    """Cohen's kappa of such a judge in the population."""
    both, judge = prevalence * (1 - missed), prevalence * (1 - missed) + (1 - prevalence) * let_through
    agree = both + (1 - prevalence) * (1 - let_through)
    expected = prevalence * judge + (1 - prevalence) * (1 - judge)
    return (agree - expected) / (1 - expected)


def show_answers():
    print("\nCan this judge be trusted? 70 % pass; share of answers, and of `one-way` among the reasons")
    judges = {
        "passes all good, 35 % of bad": (0.0, 0.35),
        "passes all good, 20 % of bad": (0.0, 0.20),
        "errs on 6 % of each": (0.06, 0.06),
        "errs on 10 % of each": (0.10, 0.10),
        "misses 15 % of good, no bad": (0.15, 0.0),
        "a coin": (0.5, 0.5),
    }
    for name, (missed, let_through) in judges.items():
        for n in (40, 150, 300):
            said, capped = [], 0
            for seed in range(DRAWS):
                chance = np.random.default_rng([n, seed])
                people = chance.random(n) < 0.7
                judge = erring(chance, people, missed=missed, let_through=let_through)
                verdict = dm.compute_metrics(
                    votes(people, judge), bootstrap=dm.agreement.BootstrapSettings(replicates=200)
                ).verdict
                said.append(verdict.answer)
                capped += any(reason.startswith("one-way") for reason in verdict.reasons)
            shares = "  ".join(
                f"{answer or 'none'} {said.count(answer) / DRAWS:4.0%}"
                for answer in ("yes", "with care", "not yet", None)
            )
            kappa = kappa_of(0.7, missed, let_through)
            print(f"  {name:30} kappa {kappa:.2f}  n {n:3}  {shares}  one-way {capped / DRAWS:4.0%}")


def show_queue():
    print("\nLabels of 60 outputs of 400, the judge agrees with people on 90 %; what is said of the run")
    for order in ("random", "uncertain"):
        answers, shares = [], []
        for seed in range(min(DRAWS, 100)):
            chance = np.random.default_rng([7, seed])
            score = chance.random(400)
            judge = score >= 0.5
            people = np.where(np.abs(score - 0.5) < 0.1, chance.random(400) < 0.5, judge)
            picked = (
                chance.choice(400, 60, replace=False) if order == "random" else np.argsort(np.abs(score - 0.5))[:60]
            )
            sampling = "random" if order == "random" else "chosen"
            result = dm.compute_metrics(
                votes(people[picked], judge[picked], sampling=sampling),
                bootstrap=dm.agreement.BootstrapSettings(replicates=200),
            )
            answers.append(result.verdict.answer)
            shares.append(result.intervals is not None)
        print(f"  {order:10} no answer {answers.count(None) / len(answers):4.0%}  intervals {np.mean(shares):4.0%}")


def show_repetitions():
    print(
        "\nRepetitions: the judge errs on a quarter of the samples, alike in every repetition; kappa's interval covers"
    )
    truth = kappa_of(0.7, 0.25, 0.25)
    for samples, repetitions in ((12, 10), (30, 5), (60, 3)):
        covered = {"as single items": 0, "align": 0, "calibrate": 0}
        for seed in range(DRAWS):
            chance = np.random.default_rng([samples, seed])
            people = chance.random(samples) < 0.7
            judge = erring(chance, people, missed=0.25, let_through=0.25)
            ids = np.repeat(np.arange(samples), repetitions)
            for name, header in (("as single items", {}), ("align", {"cluster": "sample"})):
                result = dm.compute_metrics(
                    votes(people[ids], judge[ids], samples=ids, **header),
                    bootstrap=dm.agreement.BootstrapSettings(replicates=200),
                )
                interval = result.intervals["mean_kappa"].ci
                covered[name] += interval is not None and interval.lower <= truth <= interval.upper
            outputs = [
                JudgedOutput(
                    f"s{at}", float(people[at]), {"": float(people[at])}, float(judge[at]), float(judge[at]), 1
                )
                for at in ids
            ]
            kappa = calibrate_judge(JudgedMetric("m", "verdict", outputs, {}, threshold=0.5)).kappa
            covered["calibrate"] += kappa.low is not None and kappa.low <= truth <= kappa.high
        told = "  ".join(f"{name} {count / DRAWS:4.0%}" for name, count in covered.items())
        print(f"  {samples} samples x {repetitions:2}: {told}")


def show_corrected():
    print("\nCorrected pass-rate of a run of 3,000 outputs; `plan labels --half-width 0.04` says how many labels")
    from deemster.stats.power_analysis import label_size

    for rate, sensitivity, specificity in ((0.8, 0.9, 0.75), (0.5, 0.85, 0.85), (0.9, 0.95, 0.7), (0.7, 0.5, 0.5)):
        passes = rate * sensitivity + (1 - rate) * (1 - specificity)
        covariance = rate * sensitivity - rate * passes
        correlation = covariance / np.sqrt(rate * (1 - rate) * passes * (1 - passes))
        spread = np.sqrt(rate * (1 - rate))
        n = label_size(0.04, correlation=float(correlation), sd=float(spread), samples=3000).value
        widths, alone, covered = [], [], 0
        for seed in range(DRAWS):
            chance = np.random.default_rng([11, seed])
            people = chance.random(3000) < rate
            judge = erring(chance, people, missed=1 - sensitivity, let_through=1 - specificity)
            outputs = [
                JudgedOutput(
                    f"s{at}", float(people[at]), {"": float(people[at])}, float(judge[at]), float(judge[at]), 1
                )
                for at in chance.choice(3000, n, replace=False).tolist()
            ]
            judged = JudgedMetric("m", "verdict", outputs, {}, threshold=0.5)
            judged = judged._replace(passed=judge.astype(np.int64), samples=[f"s{at}" for at in range(3000)])
            found = calibrate_judge(judged).pass_rate
            widths.append((found.high - found.low) / 2)
            alone.append((found.people.high - found.people.low) / 2)
            covered += found.low <= rate <= found.high
        print(
            f"  people pass {rate}  se/sp {sensitivity}/{specificity}  {n:4} labels: half-width {np.mean(widths):.4f}, "
            f"labels alone {np.mean(alone):.4f}, covers {covered / DRAWS:.1%}"
        )


def show_other_labels():
    print("\nLabels that say less than their number: the corrected pass-rate, or difference, holds the truth")
    from deemster.stats import LabelledSide, corrected_difference, corrected_rate

    for samples, repetitions in ((40, 5), (80, 3), (60, 1)):
        held = {None: 0, "by sample": 0}
        for seed in range(DRAWS):
            chance = np.random.default_rng([samples, seed])
            people, run = chance.random(samples) < 0.7, chance.random(1000) < 0.7
            judge = erring(chance, people, missed=0.1, let_through=0.25)
            rate = erring(chance, run, missed=0.1, let_through=0.25).mean()
            labels = np.repeat(people, repetitions), np.repeat(judge, repetitions)
            for name in held:
                units = None if name is None else np.repeat(np.arange(samples), repetitions)
                found = corrected_rate(*labels, rate, n=1000, units=units).interval
                held[name] += found is None or found.lower <= 0.7 <= found.upper
        told = f"as single outputs {held[None] / DRAWS:.1%}, by sample {held['by sample'] / DRAWS:.1%}"
        print(f"  of an earlier run, {samples} samples x {repetitions}: {told}")
    for documents, questions in ((30, 8), (60, 5)):
        held, place = {None: 0, "by document": 0}, np.repeat(np.arange(documents), questions)
        for seed in range(DRAWS):
            chance = np.random.default_rng([documents, 1, seed])
            sides = []
            for passes in (0.7, 0.5):
                people = (chance.random(documents) < passes)[place]
                judge = people ^ (chance.random(documents) < 0.2)[place]
                at = np.sort(chance.choice(len(place), len(place) // 2, replace=False))
                sides.append(LabelledSide(judge, at, people[at], judge[at]))
            for name in held:
                units = None if name is None else place
                found = corrected_difference(*sides, units=units).interval
                held[name] += found.lower <= -0.2 <= found.upper
        told = f"as single samples {held[None] / DRAWS:.1%}, by document {held['by document'] / DRAWS:.1%}"
        print(f"  of two runs, {documents} documents x {questions}, half of it labelled: {told}")


def evaluated(passed, documents, *, cluster, **options):
    samples = [
        {
            "id": f"s{at}",
            "input": {"right": bool(is_right)},
            "expected_output": "right",
            "metadata": {"doc": int(document)},
        }
        for at, (is_right, document) in enumerate(zip(passed, documents, strict=True))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dm.evaluate(
            dm.Dataset(samples, name="documents", cluster=cluster),
            target=lambda given: "right" if given["right"] else "wrong",
            metrics=["exact-match"],
            **options,
        )


def show_clusters():
    print(
        "\nDocuments: the interval of a run's pass-rate covers the rate of all documents; warned where none is declared"
    )
    for documents, questions, spread in (
        (15, 8, (1.4, 0.6)),
        (15, 8, (4.0, 1.0)),
        (30, 8, (0.5, 0.5)),
        (60, 5, (1.4, 0.6)),
    ):
        truth, covered, warned = spread[0] / sum(spread), {None: 0, "doc": 0}, 0
        draws = min(DRAWS, 150)
        for seed in range(draws):
            chance = np.random.default_rng([documents, seed])
            rates = chance.beta(*spread, documents)
            passed = (chance.random((documents, questions)) < rates[:, None]).ravel()
            names = np.repeat(np.arange(documents), questions)
            for cluster in covered:
                low, high = evaluated(passed, names, cluster=cluster).pass_rate_interval
                covered[cluster] += low <= truth <= high
            warned += bool(alike_warnings({"m": passed.astype(float)}, [{"doc": int(name)} for name in names]))
        print(
            f"  {documents} documents x {questions}, rates beta{spread}: not declared {covered[None] / draws:.1%}, "
            f"declared {covered['doc'] / draws:.1%}, warned {warned / draws:.0%}"
        )
    alone = 0
    for seed in range(DRAWS * 5):
        chance = np.random.default_rng([99, seed])
        metadata = [
            {"doc": at // 8, "author": int(chance.integers(20)), "price": int(chance.integers(9))} for at in range(120)
        ]
        alone += bool(alike_warnings({"m": (chance.random(120) < 0.7).astype(float)}, metadata))
    print(f"  120 samples that stand alone, three keys: warned {alone / (DRAWS * 5):.1%} (1 % allowed)")


def main():
    show_answers()
    show_queue()
    show_repetitions()
    show_corrected()
    show_other_labels()
    show_clusters()


if __name__ == "__main__":
    main()
