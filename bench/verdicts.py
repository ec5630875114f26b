"""How often `align` gives each answer to "can this judge be trusted?", by simulation.

Usage: python3 bench/verdicts.py [runs]     (400 simulated datasets for each design where not given)

One source of labels: a judge with a true kappa of 0.5 on one criterion. A "yes" is false; goal: below 2.5 %. The column
"floor" counts datasets where the interval of kappa alone would have said yes, before any other rule of the answer.
Two annotators: a judge that copies them where they agree and flips a coin where they do not. Goal: never a plain yes.
A judge as good as people: two annotators and a judge with the same error rate. Printed: how often the answer says so,
and how often it says that the question itself is unreliable.
"""

import itertools
import sys
from collections import Counter

import numpy as np

import deemster as dm
from deemster.agreement.trust_verdict import SUBSTANTIAL

RUBRIC = {"name": "simulated", "criteria": [{"name": "c", "requirement": "?", "weight": 1}]}
WORDS = np.array(["UNMET", "MET"], dtype=object)


def votes(truths, verdicts, people=()):
    """A votes file as a plain value: one criterion, one judge; ground truth, or what each person said."""
    items = []
    for number, verdict in enumerate(verdicts):
        item = {"id": f"i{number}", "votes": {"judge": [WORDS[verdict]]}}
        if people:
            item["annotations"] = {f"p{place}": [WORDS[labels[number]]] for place, labels in enumerate(people)}
        else:
            item["ground_truth"] = [WORDS[truths[number]]]
        items.append(item)
    value = {"schema_version": "deemster.votes.v1", "name": "simulated", "rubric": RUBRIC}
    return dm.Votes.parse(value | {"judges": [{"id": "judge"}], "items": items})


def noisy(rng, truth, kappa, prevalence):
    """Answers that agree with the truth with this kappa and say yes as often."""
    return np.where(rng.random(len(truth)) < kappa, truth, rng.random(len(truth)) < prevalence).astype(int)


def one_source(runs):
    print(f"one source of labels, true kappa 0.5: share of answers, {runs} datasets a design")
    for n, prevalence in itertools.product((30, 50, 200), (0.05, 0.1, 0.5)):
        answers, floors = Counter(), 0
        for run in range(runs):
            rng = np.random.default_rng((run, n, int(100 * prevalence)))
            truth = (rng.random(n) < prevalence).astype(int)
            verdict = dm.compute_metrics(
                votes(truth, noisy(rng, truth, 0.5, prevalence)), bootstrap=dm.agreement.BootstrapSettings(seed=run)
            ).verdict
            answers[verdict.answer] += 1
            floors += verdict.floor is not None and verdict.floor >= SUBSTANTIAL
        shares = ", ".join(
            f"{answer or 'none'} {100 * count / runs:.1f} %" for answer, count in sorted(answers.items(), key=str)
        )
        print(f"  n {n:3}, prevalence {prevalence:4}: {shares}; floor alone {100 * floors / runs:.1f} %", flush=True)


def two_people(runs):
    print("\ntwo annotators, a judge that copies them where they agree and flips a coin where they do not (180 items)")
    answers, codes = Counter(), Counter()
    for run in range(runs):
        rng = np.random.default_rng((run, 2))
        truth = (rng.random(180) < 0.5).astype(int)
        people = [noisy(rng, truth, 0.75, 0.5) for _ in range(2)]
        coin = (rng.random(180) < 0.5).astype(int)
        result = dm.compute_metrics(
            votes(None, np.where(people[0] == people[1], people[0], coin), people),
            bootstrap=dm.agreement.BootstrapSettings(seed=run),
        )
        answers[result.verdict.answer] += 1
        codes.update(reason.partition(":")[0] for reason in result.verdict.reasons)
    print(f"  {dict(answers)}; reasons {dict(codes)}")
    print("\ntwo annotators and a judge, all with the same noise (kappa of two of them 0.36, 200 items)")
    answers, codes = Counter(), Counter()
    for run in range(runs):
        rng = np.random.default_rng((run, 3))
        truth = (rng.random(200) < 0.5).astype(int)
        first, second, judge = (noisy(rng, truth, 0.6, 0.5) for _ in range(3))
        result = dm.compute_metrics(
            votes(None, judge, [first, second]), bootstrap=dm.agreement.BootstrapSettings(seed=run)
        )
        answers[result.verdict.answer] += 1
        codes.update(note.partition(":")[0] for note in result.verdict.notes)
    print(f"  {dict(answers)}; notes {dict(codes)}")


if __name__ == "__main__":
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    one_source(times)
    two_people(times)
