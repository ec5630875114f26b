"""How often a gate errs, by simulation: false PASS and false FAIL of a drop exactly at the margin, ours beside others.

Usage: python3 bench/gate_errors.py [--quick | --errors]
       (2,000 comparisons a cell, on two cores; --quick: 20; --errors: 400, and only errors at the margin)

Printed: our errors for pass or fail, enumerated exactly; errors at the margin for seven numbers of samples and for
binary, sparse, smooth, repeated and clustered differences; the coverage of 95 % intervals; gates with twenty cohorts;
the power that `deemster plan` promises; the family error of confirm or clear;
planted shifts that attribution must find again. Goals: no error above 6.5 % (5 % allowed, plus what discreteness
takes), below 5 % on average; coverage 93 to 99 %, and more only where no interval that holds everywhere covers less.
"""

import json
import math
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import environments
import numpy as np
from measured_rows import OURS, record_row
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array
from scipy.special import gammaln, stdtr, xlogy

import deemster as dm
from deemster.stats.paired_difference import flip_p_values

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "results"))

import make_compared_runs as made_runs

SIZES = (12, 20, 50, 100, 200, 500, 1000)
LEVEL = 0.05
MOST_COVERED = 0.99
MOST_BY_GAFFKE = 200
STUDENT, BCA, STATGATE = "t", "BCa", "statgate"


def flips(worse, better):
    def draw(rng, n):
        return rng.choice([-1.0, 1.0, 0.0], n, p=[worse, better, 1 - worse - better]), None

    return worse - better, draw


def sparse(lost, gained):
    """A share loses, a share gains, each by anything up to 1; the rest does not change."""

    def draw(rng, n):
        kind, amount = rng.random(n), rng.random(n)
        return np.where(kind < lost, -amount, np.where(kind < lost + gained, amount, 0.0)), None

    return (lost - gained) / 2, draw


def smooth(margin, spread):
    return margin, lambda rng, n: (np.clip(rng.normal(-margin, spread, n), -1, 1), None)


def skewed(margin, spread, side):
    """Gamma of shape 2: a long tail below (side -1) or above."""

    def draw(rng, n):
        values = side * (rng.gamma(2, spread / math.sqrt(2), n) - math.sqrt(2) * spread) - margin
        return np.clip(values, -1, 1), None

    return margin, draw


def rare(margin, share, loss):
    """All scores move a little, and a few lose nearly everything."""

    def draw(rng, n):
        noise = np.clip(rng.normal(0, 0.02, n), -0.1, 0.1)
        return noise + np.where(rng.random(n) < share, -loss, 0.0) + share * loss - margin, None

    return margin, draw


def repeated(margin, repetitions):
    """Samples pass with chances of their own; those of the second run are lower by a constant factor."""

    def draw(rng, n):
        chance = rng.beta(4, 1, n)
        before, after = rng.binomial(repetitions, chance), rng.binomial(repetitions, chance * (1 - margin / 0.8))
        return (after - before) / repetitions, None

    return margin, draw


def clustered(worse, better, size, *, equal):
    """Samples copy the flip of their cluster seven times in ten; cluster sizes are equal or geometric."""

    def draw(rng, n):
        count = max(2, n // size)
        sizes = np.full(count, size) if equal else rng.geometric(1 / size, count)
        codes = np.repeat(np.arange(count), sizes)
        chances = [worse, better, 1 - worse - better]
        leaders = rng.choice([-1.0, 1.0, 0.0], count, p=chances)[codes]
        own = rng.choice([-1.0, 1.0, 0.0], len(codes), p=chances)
        return np.where(rng.random(len(codes)) < 0.7, leaders, own), codes

    return worse - better, draw


FLIPS = {
    "binary, 2 % newly fail": (0.02, 0.0),
    "binary, 5 % newly fail": (0.05, 0.0),
    "binary, 10 % fail, 5 % pass": (0.1, 0.05),
    "binary, 25 % fail, 20 % pass": (0.25, 0.2),
}
KINDS = {
    **{name: flips(*rates) for name, rates in FLIPS.items()},
    "sparse, 10 % lose": sparse(0.1, 0.0),
    "sparse, 20 % lose, 10 % gain": sparse(0.2, 0.1),
    "smooth, spread 0.2": smooth(0.05, 0.2),
    "smooth, long tail below": skewed(0.05, 0.2, -1),
    "smooth, long tail above": skewed(0.05, 0.2, 1),
    "smooth, 5 % lose 0.8": rare(0.05, 0.05, 0.8),
    "5 repetitions": repeated(0.05, 5),
    "clusters of 5": clustered(0.1, 0.05, 5, equal=True),
    "clusters of 1 to 30": clustered(0.1, 0.05, 5, equal=False),
}


def flip_counts(n, rates):
    """Every likely count of samples that newly fail and newly pass."""
    spans = [6 * math.sqrt(n * rate) + 8 for rate in rates]
    grid = [
        np.arange(max(0, int(n * rate - span)), min(n, int(n * rate + span)) + 1 if rate else 1)
        for rate, span in zip(rates, spans, strict=True)
    ]
    lost, gained = (axis.ravel() for axis in np.meshgrid(*grid, indexing="ij"))
    return lost[lost + gained <= n], gained[lost + gained <= n]


def flip_chances(n, lost, gained, rates):
    kept = n - lost - gained
    logs = gammaln(n + 1) - sum(gammaln(part + 1) for part in (lost, gained, kept))
    return np.exp(logs + xlogy(lost, rates[0]) + xlogy(gained, rates[1]) + xlogy(kept, 1 - sum(rates)))


def flip_coverage(job):
    """The coverage of our two-sided 95 % interval for flips, enumerated, and the lowest that is possible there."""
    name, n = job
    rates = FLIPS[name]
    lost, gained = flip_counts(n, rates)
    chances = flip_chances(n, lost, gained, rates)
    missed = sum(
        float(chances[flip_p_values(lost, gained, n=n, mean=rates[1] - rates[0], side=side) <= LEVEL / 2].sum())
        for side in ("above", "below")
    )
    covered = 1 - missed
    return covered, lowest_coverage(n, rates) if covered > MOST_COVERED and n <= 200 else None


def lowest_coverage(n, rates):
    """The lowest coverage of this cell that an interval can have whose ends err at most 2.5 % for every rate of gains.

    Each end has a set of outcomes for which it excludes the true difference. More failures, or fewer passes, never take
    an outcome out of the set of the upper end. Of all such sets that are rare enough for 60 pairs of rates with this
    difference, an integer program finds the one that is likeliest here.
    """
    drop = rates[0] - rates[1]
    most = min(n, int(2 * n * rates[0]) + 40)
    lost, gained = np.array([(x, y) for x in range(n + 1) for y in range(min(most, n - x) + 1)]).T
    place = {pair: number for number, pair in enumerate(zip(lost.tolist(), gained.tolist(), strict=True))}
    levels = [(drop + gain, gain) for gain in np.linspace(0, (1 - drop) / 2, 60)]
    rare = LinearConstraint(np.array([flip_chances(n, lost, gained, pair) for pair in levels]), -np.inf, LEVEL / 2)
    likely, missed = flip_chances(n, lost, gained, rates), 0.0
    for step in (1, -1):
        pairs = [
            (number, place[more])
            for (x, y), number in place.items()
            for more in ((x + step, y), (x, y - step))
            if more in place
        ]
        rows, (first, second) = np.arange(len(pairs)), np.array(pairs).T
        values = np.repeat([1.0, -1.0], len(pairs))
        order = coo_array((values, (np.tile(rows, 2), np.concatenate([first, second]))), (len(pairs), len(lost)))
        monotone = LinearConstraint(order.tocsr(), -np.inf, 0)
        found = milp(-likely, constraints=[rare, monotone], integrality=np.ones(len(lost)), bounds=Bounds(0, 1))
        missed -= found.fun
    return 1 - missed


def enumerated(n):
    """Both errors of our rule for pass or fail at n samples: every count of flips, weighed by its chance."""
    found = []
    for margin in (0.01, 0.02, 0.05, 0.1, 0.2):
        for gain in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2):
            rates = margin + gain, gain
            lost, gained = flip_counts(n, rates)
            chances = flip_chances(n, lost, gained, rates)
            found.append(
                [
                    float(chances[flip_p_values(lost, gained, n=n, mean=-margin, side=side) <= LEVEL].sum())
                    for side in ("above", "below")
                ]
            )
    return found


def show_enumerated(pool, sizes):
    """Our errors for pass or fail without any simulation."""
    rows = [pair for part in pool.map(enumerated, sizes) for pair in part]
    for word, row in zip(("PASS", "FAIL"), zip(*rows, strict=True), strict=True):
        told = f"{100 * np.mean(row):.1f} % on average, {100 * max(row):.1f} % at worst"
        print(f"false {word} of pass or fail at the margin, {len(rows)} settings enumerated exactly: {told}")
    return max(map(max, rows))


def units(values, codes):
    """The total and the size of each unit."""
    if codes is None:
        return values, np.ones(len(values))
    return np.bincount(codes, weights=values), np.bincount(codes).astype(float)


def student_p(totals, sizes, margin):
    """The chance of a t as large, by the plain rule: no spread makes it certain."""
    n, mean = len(totals), totals.sum() / sizes.sum()
    error = math.sqrt(n / (n - 1) * np.square(totals - sizes * mean).sum()) / sizes.sum()
    return float(stdtr(n - 1, -(mean + margin) / error)) if error > 1e-12 else float(mean < -margin)


def bca_ends(rng, totals, sizes):
    """The ends of the two-sided 90 % BCa interval of Σu/Σs, units resampled 1,000 times."""
    n = len(totals)
    mean = totals.sum() / sizes.sum()
    if np.ptp(totals / sizes) < 1e-12:
        return mean, mean
    drawn = rng.integers(0, n, (1000, n))
    replicates = totals[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    jackknife = (totals.sum() - totals) / (sizes.sum() - sizes)
    ends = dm.stats.bca_interval(np.array([mean]), replicates[None], jackknife[None], 1 - 2 * LEVEL)
    return float(ends.lower[0]), float(ends.upper[0])


def is_in_gaffke(rng, totals, sizes, mean):
    """Whether Gaffke's two-sided 95 % interval holds a mean: the shortest known that is to hold for any differences.

    An end is the 2.5 % quantile of the mean with random weights (Dirichlet) and one imagined unit at the end of the
    range. For pass or fail it is Clopper and Pearson's.

    References: N. Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
    variable, Mathematical Methods of Statistics 14 (2005); M. Phan, P. Thomas, E. Learned-Miller, Towards practical
    mean bounds for small samples, ICML (2021).
    """
    weights = rng.standard_exponential((400, len(totals) + 1))
    spans = weights @ np.append(sizes, sizes.mean())
    low, high = (weights @ np.append(totals, end * sizes.mean()) / spans for end in (-1, 1))
    # Below the mean lie at least 2.5 % of the one, and above it of the other.
    return (low <= mean).mean() >= LEVEL / 2 and (high >= mean).mean() >= LEVEL / 2


def cell(job):
    """The errors of one kind and number of samples: ours, t and BCa, and the first comparisons for statgate."""
    name, n, draws, peers = job
    margin, draw = KINDS[name]
    rng, other = np.random.default_rng([n, *name.encode()]), np.random.default_rng(4)
    hits = {"ours": [0, 0], STUDENT: [0, 0], BCA: [0, 0]}
    covered, by_gaffke, kept = 0, 0, []
    for number in range(draws):
        values, codes = draw(rng, n)
        totals, sizes = units(values, codes)
        result = dm.stats.paired_difference(totals, sizes, margin=margin)
        hits["ours"][0] += result.p_within <= LEVEL
        hits["ours"][1] += result.p_beyond <= LEVEL
        covered += result.interval.lower - 1e-12 <= -margin <= result.interval.upper + 1e-12
        by_gaffke += n <= MOST_BY_GAFFKE and is_in_gaffke(other, totals, sizes, -margin)
        p_value = student_p(totals, sizes, margin)
        hits[STUDENT][0] += p_value <= LEVEL
        hits[STUDENT][1] += p_value >= 1 - LEVEL
        if number < peers:
            lower, upper = bca_ends(rng, totals, sizes)
            hits[BCA][0] += lower > -margin
            hits[BCA][1] += upper < -margin
            kept.append(values.tolist())
    shares = {key: [count / (peers if key == BCA else draws) for count in pair] for key, pair in hits.items()}
    return name, n, margin, shares, (covered / draws, by_gaffke / draws if n <= MOST_BY_GAFFKE else None), kept


def ask_statgate(cells):
    """Its verdicts on the same comparisons; it knows no clusters and sees samples."""
    jobs = [{"margin": margin, "comparisons": kept} for _, _, margin, _, _, kept in cells]
    script = Path(__file__).parent / "peers" / "gate_errors_statgate.py"
    command = [str(environments.python(STATGATE)), str(script)]
    done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, check=True)
    return [(told["ship"] / told["n"], told["block"] / told["n"]) for told in json.loads(done.stdout)]


def hand_over(name, errors, comparisons):
    """The mean errors over all cells. The worst cell says little about a rule that was asked less often."""
    release = environments.version(STATGATE) if name == STATGATE else None
    for word, row in zip(("PASS", "FAIL"), errors, strict=True):
        record_row(
            f"gate: false {word} of a drop exactly at the margin, mean of {len(row)} designs",
            OURS if name == "ours" else name,
            100 * float(np.mean(row)),
            "%",
            version=dm.__version__ if name == "ours" else release,
            samples=comparisons,
        )


def show_errors(pool, sizes, draws, peers):
    names = ["ours", STUDENT, BCA]
    jobs = [(name, n, draws, peers) for name in KINDS for n in sizes]
    cells = list(pool.map(cell, jobs))
    if environments.exists(STATGATE) and peers > 20:
        halves = list(pool.map(ask_statgate, [[one] for one in cells]))
        for (_, _, _, shares, _, _), told in zip(cells, halves, strict=True):
            shares[STATGATE] = told[0]
        names.append(STATGATE)
    head = "".join(f"{n:>7,}" for n in sizes)
    for place, error in enumerate(("PASS", "FAIL")):
        print(f"\nfalse {error}, true drop exactly at the margin, % of comparisons\n{'samples':42}{head}")
        for kind in KINDS:
            for name in names:
                row = [shares[name][place] for key, _, _, shares, _, _ in cells if key == kind]
                print(f"{kind if name == 'ours' else '':32}{name:10}" + "".join(f"{100 * one:7.1f}" for one in row))
    for name in names:
        both = [[shares[name][place] for *_, shares, _, _ in cells] for place in (0, 1)]
        said = ", ".join(
            f"false {word} {100 * np.mean(row):.1f} on average, {100 * max(row):.1f} at worst"
            for word, row in zip(("PASS", "FAIL"), both, strict=True)
        )
        print(f"{name}: {said}")
        hand_over(name, both, draws if name in ("ours", STUDENT) else peers)
    return cells


def show_coverage(pool, sizes, cells):
    """Our coverage, and where it is above the goal, what other intervals could reach there."""
    head = "".join(f"{n:>7,}" for n in sizes)
    print(f"\ncoverage of our two-sided 95 % interval, %; for pass or fail enumerated exactly\n{'samples':42}{head}")
    jobs = [(kind, n) for kind in FLIPS for n in sizes]
    exact = dict(zip(jobs, pool.map(flip_coverage, jobs), strict=True))
    found = {(key, n): pair for key, n, _, _, pair, _ in cells} | exact
    for kind in KINDS:
        row = [found[kind, n] for n in sizes]
        print(f"{kind:42}" + "".join(f"{100 * ours:7.1f}" for ours, _ in row))
        least = [other if ours > MOST_COVERED else None for ours, other in row]
        if any(least):
            words = "  lowest possible" if kind in FLIPS else "  Gaffke's interval"
            print(f"{words:42}" + "".join(" " * 7 if one is None else f"{100 * one:7.1f}" for one in least))
    wide = [pair for pair in found.values() if pair[0] > MOST_COVERED]
    forced = sum(other is not None and other > MOST_COVERED for _, other in wide)
    told = f"{len(wide)} of {len(found)} cells are above 99 %; in {forced} of them so is the other"
    every = [ours for ours, _ in found.values()]
    print(f"{told}; {100 * np.mean(every):.1f} % on average, the lowest of all is {100 * min(every):.1f} %")


def cohort_gates(job):
    """Gates over twenty cohorts of 30 samples: how often one fails, corrected and not, and how often all pass."""
    seed, draws, drop = job
    rng = np.random.default_rng(seed)
    corrected = plain = passed = 0
    for _ in range(draws):
        results = []
        for place in range(20):
            lost = drop if place == 0 or drop < 0.06 else 0.0
            values = rng.choice([-1.0, 1.0, 0.0], 30, p=[0.1 + lost, 0.1, 0.8 - lost])
            results.append(dm.stats.paired_difference(values, margin=0.05))
        p_values = [result.p_beyond for result in results]
        corrected += any(dm.stats.holm(p_values, level=LEVEL).rejected)
        plain += min(p_values) <= LEVEL
        passed += all(result.p_within <= LEVEL for result in results)
    return corrected, plain, passed


def show_cohorts(pool, draws):
    print("\ntwenty cohorts of 30 samples, margin 0.05, 20 % of samples flip")
    for words, drop in (("nothing is worse", 0.0), ("every cohort is worse by the margin", 0.05)):
        parts = list(pool.map(cohort_gates, [(seed, draws // 8, drop) for seed in range(4)]))
        corrected, plain, passed = (sum(column) / (draws // 8 * 4) for column in zip(*parts, strict=True))
        told = f"gate fails {corrected:.1%} with Holm's correction, {plain:.1%} without; passes {passed:.1%}"
        print(f"  {words:38} {told}")


def promised(job):
    kind, value, noise, seed, draws = job
    rng = np.random.default_rng(seed)
    drop, margin, level = (value, 0.0, LEVEL / 2) if kind == "detect" else (0.0, value, LEVEL)
    ask = dm.stats.samples_to_detect if kind == "detect" else dm.stats.samples_to_certify
    n = ask(value, dm.stats.PairedNoise(**noise))
    found = 0
    for _ in range(draws):
        if "sd" in noise:
            values = np.clip(rng.normal(-drop, noise["sd"], n), -1, 1)
        else:
            share = noise["flip_rate"]
            values = rng.choice([-1.0, 1.0, 0.0], n, p=[share / 2 + drop, share / 2, 1 - share - drop])
        result = dm.stats.paired_difference(values, margin=margin)
        found += (result.p_beyond if kind == "detect" else result.p_within) <= level
    return kind, value, noise, n, found / draws


def show_power(pool, draws):
    print("\npower that `deemster plan` promises (80 %)")
    jobs = [
        (kind, value, noise, place, draws)
        for place, noise in enumerate(({"flip_rate": 0.02}, {"flip_rate": 0.1}, {"flip_rate": 0.3}, {"sd": 0.2}))
        for kind in ("detect", "certify")
        for value in (0.05, 0.1)
    ]
    for kind, value, noise, n, reached in pool.map(promised, jobs):
        what = f"show a drop of {value}" if kind == "detect" else f"certify a margin of {value}"
        told = ", ".join(f"{key.replace('_', ' ')} {amount}" for key, amount in noise.items())
        print(f"  {what:28} {told:16} {n:5,} samples: {reached:.1%}")


def confirmed(job):
    """How often any unchanged sample is confirmed to fail, and how many broken ones are."""
    rates, history, repetitions, reruns, broken, draws, seed = job
    rng = np.random.default_rng(seed)
    needed = repetitions // 2 + 1
    wrong, found, real = 0, 0, 0
    for _ in range(draws):
        chance = rng.uniform(*rates, 40)
        now = chance.copy()
        now[:broken] = 0.05
        before, earlier = rng.binomial(repetitions, chance), rng.binomial(history, chance)
        flipped = (before >= needed) & (rng.binomial(repetitions, now) < needed)
        if not flipped.any():
            continue
        answer = dm.stats.confirm_failures(
            rng.binomial(reruns, now)[flipped],
            reruns,
            earlier_passed=earlier[flipped],
            earlier_n=history,
            baseline_passed=before[flipped],
            baseline_n=repetitions,
            needed=needed,
        ).confirmed
        is_broken = np.flatnonzero(flipped) < broken
        wrong += bool((np.array(answer) & ~is_broken).any())
        found += int((np.array(answer) & is_broken).sum())
        real += int(is_broken.sum())
    return wrong / draws, found / max(real, 1)


def show_confirming(pool, draws):
    print(
        "\nconfirm or clear: 40 samples, 10 reruns; any unchanged sample confirmed, and broken ones confirmed (5 of 40)"
    )
    designs = [
        (f"{words}, {known}", rates, history, repetitions)
        for words, rates in (("passing half of the time or more", (0.5, 1.0)), ("any chance of passing", (0.05, 0.95)))
        for known, history, repetitions in (
            ("no history", 0, 1),
            ("3 earlier runs", 3, 1),
            ("20 earlier runs", 20, 1),
            ("5 repetitions", 0, 5),
        )
    ]
    jobs = [(*design[1:], 10, broken, draws, 3) for design in designs for broken in (0, 5)]
    told, worst = list(pool.map(confirmed, jobs)), 0.0
    for place, (words, *_) in enumerate(designs):
        (alone, _), (_, found) = told[2 * place : 2 * place + 2]
        print(f"  {words:52} wrong {alone:.1%}  found {found:.0%}")
        worst = max(worst, alone)
    return worst


def attributed(seed):
    """How far the parts of a difference are from the shifts that were planted: outputs, judge, unscored, dataset."""
    draw = np.random.default_rng(seed)
    n, fresh = int(draw.integers(40, 400)), int(draw.integers(0, 30))
    before = draw.random(n) < 0.8
    kind = draw.choice(["same", "outputs", "judge", "unscored"], n, p=[0.7, 0.1, 0.1, 0.1])
    after = np.where(np.isin(kind, ["outputs", "judge"]), draw.random(n) < 0.5, before)
    said = [f"answer {place}" for place in range(n)]
    now = [f"other {place}" if kind[place] == "outputs" else said[place] for place in range(n)]
    marks = ["model_failed" if kind[place] == "unscored" else float(after[place]) for place in range(n)]
    new = (draw.random(fresh) < 0.5).astype(float).tolist()
    baseline = made_runs.run({"m": before.astype(float).tolist()}, outputs=said, keys=range(n))
    texts = now + [f"new {place}" for place in range(fresh)]
    candidate = made_runs.run({"m": marks + new}, outputs=texts, keys=range(n + fresh), name="b")
    origin = made_runs.compare(baseline, candidate).metrics["m"].origin
    passed = np.where(kind == "unscored", False, after)
    moved = passed.astype(float) - before
    planted = {name: moved[kind == name].sum() / n for name in ("outputs", "judge", "unscored")}
    planted["dataset"] = (passed.sum() + sum(new)) / (n + fresh) - passed.mean()
    return max(abs(getattr(origin, name) - value) for name, value in planted.items())


def show_attribution(draws):
    worst = max(attributed(seed) for seed in range(draws))
    print(f"\nplanted shifts of outputs, judge, unscored marks and dataset in {draws} comparisons: ", end="")
    print(f"no part is further off than {worst:.1e}")
    return worst


def main():
    quick = "--quick" in sys.argv[1:]
    is_short = "--errors" in sys.argv[1:]
    sizes, draws, peers = ((12, 100), 20, 5) if quick else ((20, 100, 500), 400, 40) if is_short else (SIZES, 2000, 100)
    if not quick:
        environments.environment(STATGATE)
    started = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        exact = show_enumerated(pool, sizes)
        cells = show_errors(pool, sizes, draws, peers)
        if is_short:
            return
        show_coverage(pool, sizes, cells)
        show_cohorts(pool, max(40, draws))
        show_power(pool, max(20, draws // 2))
        family = show_confirming(pool, max(20, draws))
    planted = show_attribution(max(20, draws // 10))
    worst = max(max(shares["ours"]) for *_, shares, _, _ in cells)
    error = math.sqrt(0.065 * 0.935 / draws)
    print(f"\n{draws} comparisons a cell, standard error {100 * math.sqrt(LEVEL * (1 - LEVEL) / draws):.1f} points")
    print(f"{time.perf_counter() - started:.0f} s")
    if family > LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / max(20, draws)):
        sys.exit(f"an unchanged sample is confirmed in {family:.1%} of all comparisons, above the goal of 5 %")
    if planted > 1e-9:
        sys.exit("a planted shift was not found again")
    if exact > 0.065 or worst > 0.065 + (3 if quick else 1) * error:
        sys.exit(f"an error of {max(exact, worst):.1%} is above the goal of 6.5 %")
    mean = max(float(np.mean([shares["ours"][place] for *_, shares, _, _ in cells])) for place in (0, 1))
    if mean >= LEVEL:
        sys.exit(f"an average error of {mean:.1%} is not below the goal of 5 %")


if __name__ == "__main__":
    main()
