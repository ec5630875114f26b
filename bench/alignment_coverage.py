"""How often 95 % intervals of `align` hold the truth on data that are not neat, by simulation.

Usage: python3 bench/alignment_coverage.py [--runs 150] [--only TEXT] [--names TEXT]

The generators know nothing of deemster: items that are hard for all judges, rare classes, judges that are nearly
perfect, scales with empty categories, clusters with errors of their own, abstentions on hard items, annotators that
drift, scores at the ceiling, outliers. A generator makes a votes file of any size; the truth is what `align` computes
from one of 60,000 items (point estimates are compared with other tools elsewhere). Every interval of the result is
looked at: of all criteria, of the first criterion, of a judge, of slices, and of the corrected rates.

Goal: every number is covered in 92 % or more over its designs. Above 99 % it is called cautious.
"""

import argparse
import math
import time

import numpy as np

import deemster as dm

POPULATION = 60_000
GOAL, CAUTIOUS = 0.92, 0.99
# Designs in which an interval is printed in fewer of the runs say nothing.
PRINTED = 0.25
YES_NO = ("UNMET", "MET")
FLAT = 1e-9
RUNS = 150


def criterion(name, labels=YES_NO, scale="nominal", values=None):
    made = {"name": name, "requirement": "?", "weight": 1}
    if labels is YES_NO:
        return made
    values = values or [place / (len(labels) - 1) for place in range(len(labels))]
    options = [{"label": label, "value": value} for label, value in zip(labels, values, strict=True)]
    return made | {"scale_type": scale, "options": options}


def number(name, low=0.0, high=10.0):
    return {"name": name, "requirement": "?", "weight": 1, "minimum": low, "maximum": high}


def votes_file(criteria, truth, votes, *, tags=None, clusters=None):
    """A votes file from truth and votes by item and criterion: codes of labels, numbers; -1 is an abstention.

    Args:
        criteria: The criteria.
        truth: Items × criteria; NaN in a row leaves the item without labels.
        votes: Judges × items × criteria.
        tags: The tags of each item.
        clusters: The cluster of each item.
    """
    sides = []
    for side in (truth, *votes):
        columns = []
        for made, column in zip(criteria, np.asarray(side, dtype=float).T, strict=True):
            if "minimum" in made:
                columns.append(column.tolist())
                continue
            labels = [option["label"] for option in made["options"]] if "options" in made else YES_NO
            words = np.array([*labels, "CANNOT_ASSESS"], dtype=object)
            columns.append(words[np.nan_to_num(column).astype(int)].tolist())
        sides.append(list(zip(*columns, strict=True)))
    labelled = ~np.isnan(np.asarray(truth, dtype=float)).any(axis=1)
    items = []
    for place in range(len(sides[0])):
        item = {"id": f"i{place}", "votes": {f"j{judge}": list(side[place]) for judge, side in enumerate(sides[1:], 1)}}
        if labelled[place]:
            item["ground_truth"] = list(sides[0][place])
        if tags is not None:
            item["tags"] = tags[place]
        if clusters is not None:
            item["metadata"] = {"cluster": f"c{clusters[place]}"}
        items.append(item)
    return {
        "schema_version": "deemster.votes.v1",
        "name": "simulated",
        "rubric": {"name": "simulated", "criteria": criteria},
        "judges": [{"id": f"j{judge}"} for judge in range(1, len(sides))],
        "items": items,
    }


def flipped(rng, truth, wrong, classes=2):
    """The truth, or with a chance of `wrong` another class."""
    other = (truth + rng.integers(1, classes, truth.shape)) % classes
    return np.where(rng.random(truth.shape) < wrong, other, truth)


def binary(names):
    return [criterion(f"c{place}") for place in range(names)]


def difficulty(rng, n):
    """Some items are hard, for all judges and on all criteria."""
    truth = (rng.random((n, 3)) < 0.6).astype(int)
    hard = 0.5 * rng.beta(0.6, 1.8, (n, 1))
    return votes_file(binary(3), truth, [flipped(rng, truth, hard) for _ in range(3)])


def balanced(rng, n):
    truth = (rng.random((n, 3)) < 0.5).astype(int)
    return votes_file(binary(3), truth, [flipped(rng, truth, 0.15) for _ in range(3)])


def rare(rng, n, prevalence=0.02):
    truth = (rng.random((n, 1)) < prevalence).astype(int)
    return votes_file(binary(1), truth, [flipped(rng, truth, np.where(truth == 1, 0.2, 0.008)) for _ in range(2)])


def correlated_rare(rng, n):
    bad = rng.random((n, 1)) < 0.04
    truth = (bad & (rng.random((n, 4)) < 0.75)).astype(int)
    return votes_file(binary(4), truth, [flipped(rng, truth, np.where(truth == 1, 0.25, 0.01)) for _ in range(3)])


def skewed_scale(rng, n):
    shares = (0.02, 0.03, 0.1, 0.25, 0.6)
    truth = rng.choice(5, (n, 1), p=shares)
    said = [np.clip(truth + (rng.random((n, 1)) < 0.2) * rng.choice((-1, 1), (n, 1)), 0, 4) for _ in range(2)]
    return votes_file([criterion("level", "12345", "ordinal")], truth, said)


def clustered(rng, n):
    """Clusters of 4 to 12 items with a share of yes and an error rate of their own."""
    sizes = rng.integers(4, 13, n)
    cluster = np.repeat(np.arange(n), sizes)
    yes, wrong = rng.beta(2, 2, n)[cluster, None], (0.5 * rng.beta(0.7, 2.2, n))[cluster, None]
    truth = (rng.random((len(cluster), 2)) < yes).astype(int)
    votes = [flipped(rng, truth, wrong) for _ in range(2)]
    return votes_file(binary(2), truth, votes, clusters=cluster)


def abstaining(rng, n):
    """Judges abstain on hard items."""
    truth = (rng.random((n, 2)) < 0.6).astype(int)
    hard = rng.beta(0.6, 1.8, (n, 1))
    votes = [np.where(rng.random(truth.shape) < 0.5 * hard, -1, flipped(rng, truth, 0.5 * hard)) for _ in range(2)]
    return votes_file(binary(2), truth, votes)


def drifting(rng, n):
    """The person who labels grows tired: the last labels are worse."""
    real = (rng.random((n, 2)) < 0.5).astype(int)
    truth = flipped(rng, real, np.linspace(0.0, 0.3, n)[:, None])
    return votes_file(binary(2), truth, [flipped(rng, real, 0.08) for _ in range(2)])


def long_answers(rng, n):
    """Ten correlated criteria, and judges that like length."""
    quality, length = rng.normal(size=(n, 1)), rng.normal(size=(n, 1))
    truth = (quality + 0.7 * rng.normal(size=(n, 10)) > -0.3).astype(int)
    votes = [(quality + 0.5 * length + 0.7 * rng.normal(size=(n, 10)) > -0.5).astype(int) for _ in range(2)]
    return votes_file(binary(10), truth, votes)


def near_perfect_options(rng, n):
    truth = rng.choice(4, (n, 1), p=(0.4, 0.3, 0.2, 0.1))
    return votes_file([criterion("which", "abcd")], truth, [flipped(rng, truth, 0.02, 4) for _ in range(2)])


def near_perfect(rng, n):
    truth = (rng.random((n, 3)) < 0.5).astype(int)
    return votes_file(binary(3), truth, [flipped(rng, truth, 0.01) for _ in range(3)])


def mixed(rng, n):
    sizes = (2, 4, 3)
    truth = np.column_stack([rng.integers(0, size, n) for size in sizes])
    votes = [
        np.column_stack([flipped(rng, truth[:, place], 0.15, size) for place, size in enumerate(sizes)])
        for _ in range(2)
    ]
    criteria = [criterion("yes"), criterion("level", "1234", "ordinal"), criterion("which", "abc")]
    return votes_file(criteria, truth, votes)


def normal(rng, n, tails=None, spread=1.0):
    truth = np.clip(rng.normal(5.5, 1.8, (n, 1)), 0, 10).round(1)
    noise = [rng.normal(size=(n, 1)) if tails is None else rng.standard_t(tails, (n, 1)) / 2 for _ in range(2)]
    return votes_file([number("grade")], truth, [np.clip(truth + 0.2 + spread * one, 0, 10).round(1) for one in noise])


def ceiling(rng, n):
    """88 % of the answers are perfect, and judges see most of them so."""
    truth = np.where(rng.random((n, 1)) < 0.88, 10.0, rng.uniform(2, 10, (n, 1)).round())
    slip = [rng.random((n, 1)) < np.where(truth == 10, 0.04, 0.5) for _ in range(2)]
    return votes_file(
        [number("grade")], truth, [np.clip(truth - one * rng.integers(1, 4, (n, 1)), 0, 10) for one in slip]
    )


def outliers(rng, n):
    """Of 3 % of the answers both judges think something else altogether."""
    truth = rng.normal(7, 1, (n, 1)).clip(0, 10).round(1)
    odd, far = rng.random((n, 1)) < 0.03, rng.uniform(0, 3, (n, 1))
    votes = [np.where(odd, far, truth + 0.3 * rng.normal(size=(n, 1))).clip(0, 10).round(1) for _ in range(2)]
    return votes_file([number("grade")], truth, votes)


def sliced(rng, n):
    """A slice of a third of the items, in which judges err more often."""
    inside = rng.random((n, 1)) < 1 / 3
    truth = (rng.random((n, 3)) < 0.6).astype(int)
    hard = np.where(inside, 0.25, 0.06) * rng.beta(1, 2, (n, 1)) * 3
    votes = [flipped(rng, truth, np.minimum(hard, 0.5)) for _ in range(3)]
    return votes_file(binary(3), truth, votes, tags=[["hard"] if one else ["rest"] for one in inside[:, 0]])


def good_slice(rng, n):
    """A slice in which judges hardly ever err."""
    inside = rng.random((n, 1)) < 0.4
    truth = (rng.random((n, 2)) < 0.7).astype(int)
    votes = [flipped(rng, truth, np.where(inside, 0.01, 0.15)) for _ in range(2)]
    return votes_file(binary(2), truth, votes, tags=[["hard"] if one else ["rest"] for one in inside[:, 0]])


def partly_labelled(rng, n, labelled=0.2):
    """A random part of the items is labelled; hard items are failed more often, and judged worse."""
    hard = rng.beta(0.8, 1.6, (n, 1))
    truth = (rng.random((n, 2)) < 0.95 - 0.5 * hard).astype(float)
    votes = [flipped(rng, truth.astype(int), 0.45 * hard) for _ in range(1)]
    truth[rng.random(n) > labelled] = math.nan
    return votes_file(binary(2), truth, votes)


def rare_and_partly_labelled(rng, n):
    truth = (rng.random((n, 1)) < 0.93).astype(float)
    votes = [flipped(rng, truth.astype(int), np.where(truth == 1, 0.04, 0.3))]
    truth[rng.random(n) > 0.2] = math.nan
    return votes_file(binary(1), truth, votes)


def clusters_labelled(rng, n, *, whole=False):
    """Clusters with a share of yes and an error rate of their own, of which some labels are missing."""
    cluster = np.repeat(np.arange(n), rng.integers(4, 13, n))
    yes, wrong = rng.beta(2, 2, n)[cluster, None], (0.5 * rng.beta(0.7, 2.2, n))[cluster, None]
    truth = (rng.random((len(cluster), 2)) < yes).astype(float)
    votes = [flipped(rng, truth.astype(int), wrong)]
    labelled = np.isin(cluster, rng.choice(n, n // 3, replace=False)) if whole else rng.random(len(cluster)) < 0.25
    truth[~labelled] = math.nan
    return votes_file(binary(2), truth, votes, clusters=cluster)


# Name, generator, items (clusters where items come in clusters).
DESIGNS = (
    ("hard items, n 40", difficulty, 40),
    ("hard items, n 15", difficulty, 15),
    ("balanced, n 8", balanced, 8),
    ("balanced, n 5", balanced, 5),
    ("prevalence 2 %, n 150", rare, 150),
    ("prevalence 2 %, n 60", rare, 60),
    ("four rare criteria, n 60", correlated_rare, 60),
    ("skewed scale, n 60", skewed_scale, 60),
    ("skewed scale, n 12", skewed_scale, 12),
    ("30 clusters", clustered, 30),
    ("12 clusters", clustered, 12),
    ("abstentions on hard items, n 60", abstaining, 60),
    ("labels that get worse, n 60", drifting, 60),
    ("ten criteria, judges like length, n 30", long_answers, 30),
    ("options, nearly perfect, n 50", near_perfect_options, 50),
    ("nearly perfect, n 100", near_perfect, 100),
    ("three kinds, n 15", mixed, 15),
    ("hard items, n 2,000 (linear ranks)", difficulty, 2_000),
    ("numbers, n 30", normal, 30),
    ("numbers with heavy tails, n 60", lambda rng, n: normal(rng, n, 3), 60),
    ("numbers, close, n 100", lambda rng, n: normal(rng, n, None, 0.3), 100),
    ("numbers at the ceiling, n 30", ceiling, 30),
    ("numbers at the ceiling, n 60", ceiling, 60),
    ("numbers, 3 % far off, n 30", outliers, 30),
    ("numbers, 3 % far off, n 60", outliers, 60),
    ("numbers, 3 % far off, n 200", outliers, 200),
    ("slices, n 60", sliced, 60),
    ("slices, n 200", sliced, 200),
    ("slices, one nearly perfect, n 80", good_slice, 80),
    ("labelled in part, n 300", partly_labelled, 300),
    ("labelled in part, n 1,000", partly_labelled, 1_000),
    ("labelled in part, 93 % pass, n 600", rare_and_partly_labelled, 600),
    ("60 clusters, items labelled in part", clusters_labelled, 60),
    ("120 clusters, items labelled in part", clusters_labelled, 120),
    ("120 clusters, 40 of them labelled", lambda rng, n: clusters_labelled(rng, n, whole=True), 120),
)


def intervals_of(result):
    """Every interval of a result by what it is of: its number and its ends, None where it has none."""
    slices = {part.tag: part for part in result.slices or ()}
    scopes = [("", result), ("criterion: ", result.per_criterion[0]), ("judge: ", result.per_judge["j1"])]
    scopes += [("slice: ", slices["hard"])] if "hard" in slices else []
    found = {}
    for prefix, part in scopes:
        for name, one in (part.intervals or {}).items():
            found[prefix + name] = one.estimate, one.ci
    limits = result.score_limits
    if limits is not None:
        found["limits: lower"] = limits.lower, limits.lower_ci
        found["limits: upper"] = limits.upper, limits.upper_ci
    if result.bias.mean_bias is not None:
        found["bias: ci"] = result.bias.mean_bias, result.bias.ci
    if result.corrected is not None:
        score = result.corrected.score
        found["corrected: mean score"] = score.value, score.ci
        rate = result.corrected.met_rates[0]
        found["corrected: rate"] = rate.value, rate.ci
    return found


def aligned(value, **options):
    clustered = "metadata" in value["items"][0]
    sliced = "tags" in value["items"][0]
    cluster = "cluster" if clustered else None
    return dm.compute_metrics(dm.Votes.parse(value), per_judge=True, per_slice=sliced, cluster=cluster, **options)


def population(generate, place):
    """Every number of the population; what labels are missing for is the mean of the whole."""
    rng = np.random.default_rng((place, 1))
    size = POPULATION if "metadata" not in generate(rng, 3)["items"][0] else POPULATION // 8
    value = generate(rng, size)
    result = aligned(value, bootstrap=dm.agreement.BootstrapSettings(replicates=2))
    goals = {name: estimate for name, (estimate, _) in intervals_of(result).items()}
    if result.corrected is not None:
        # Labels are a random part, so the labels alone tell the truth of so large a population.
        truths = np.array(
            [[word == "MET" for word in item["ground_truth"]] for item in value["items"] if "ground_truth" in item]
        )
        goals |= {"corrected: mean score": truths.mean(), "corrected: rate": truths[:, 0].mean()}
    return goals


def design(generate, items, runs, place):
    """For each number: intervals, hits, below the truth, above it, mean width, sd of the estimates."""
    goals, found = population(generate, place), {}
    for run in range(runs):
        value = generate(np.random.default_rng((place, 2, run)), items)
        result = aligned(value, bootstrap=dm.agreement.BootstrapSettings(seed=run))
        for name, (estimate, ends) in intervals_of(result).items():
            goal = goals.get(name)
            if ends is None or goal is None:
                continue
            rows = found.setdefault(name, [])
            rows.append((ends.lower - FLAT > goal, ends.upper + FLAT < goal, ends.upper - ends.lower, estimate))
    return {name: np.array(rows, dtype=float) for name, rows in found.items()}


def told(row, runs):
    """How often the intervals of a number hold the truth, as text; how often they lie above and below it."""
    above, below = row[:, :2].sum(axis=0).astype(int)
    share = f"{100 * (1 - (above + below) / len(row)):.1f} %"
    width = row[:, 2].mean() / (3.92 * row[:, 3].std() + 1e-12)
    printed = "" if len(row) == runs else f" of {len(row)}"
    return f"{share}{printed} ({above} above, {below} below, {width:.2f} times the ideal width)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", default="", help="designs whose name holds this text")
    parser.add_argument("--names", help="tell of numbers whose name holds this text in every design")
    arguments = parser.parse_args()
    runs, started, cells = arguments.runs, time.process_time(), {}
    error = 100 * math.sqrt(0.95 * 0.05 / runs)
    print(f"coverage of 95 % intervals, {runs} datasets a design, standard error {error:.1f} points")
    for place, (name, generate, items) in enumerate(DESIGNS):
        if arguments.only not in name:
            continue
        print(name, flush=True)
        for what, row in design(generate, items, runs, place).items():
            if len(row) < PRINTED * runs:
                continue
            covered = 1 - row[:, :2].sum(axis=1).mean()
            cells.setdefault(what, []).append((covered, len(row), name))
            flat = row[:, 2].min() < FLAT
            if flat or covered < GOAL or (arguments.names is not None and arguments.names in what):
                print(f"  {what:32} {told(row, runs)}{', WIDTH ZERO' if flat else ''}", flush=True)
    print("over the designs: mean, lowest")
    for what, found in sorted(cells.items(), key=lambda one: min(one[1])):
        mean = sum(share * n for share, n, _ in found) / sum(n for _, n, _ in found)
        low, _, where = min(found)
        remark = "  short" if mean < GOAL else "  cautious" if mean > CAUTIOUS else ""
        print(f"  {what:32} {100 * mean:5.1f} {100 * low:5.1f} {where}{remark}")
    print(f"{time.process_time() - started:.0f} CPU seconds")


if __name__ == "__main__":
    main()
