"""Whether the power that is promised is there, by simulation of the sentence that a user reads.

Usage: python3 bench/planned_power.py [--quick]     (2,000 comparisons a row, on two cores; --quick: 200)

Printed: for `deemster plan size` ("10 % of samples flip without any true difference ... show a drop of 0.1 in 80 % of
comparisons") the samples of the plan, the power that they have, and the samples that reach it; for plans of clusters
and of repetitions the same; for `deemster plan detect` and the line under a comparison ("finds a drop of ... with power
0.8") the power at that drop; and beside each plan what `deemster audit gate` says of the same question; for an open
gate the samples that it asks for ("if the true change is what we saw, ...") and how often they settle it. The generator
knows nothing of the plan: samples flip from run to run as they did, and of those that pass and do not flip some break,
so that the pass-rate falls by the drop. Goal: at least 80 %, as far as chance goes (3 points).
"""

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import deemster as dm
from deemster.audit.audit_gate import StatedVariance, audit_gate
from deemster.audit.gate_error_rates import TrialSettings
from deemster.evaluation.suite import load_suite
from deemster.gate.baseline_gate import _units_needed
from deemster.planning.sample_plans import Goal, Noise, plan_size, stated_noise
from deemster.results.compared_numbers import Difference
from deemster.stats import Interval

PROMISED = 0.8
# What chance makes of 80 % in 2,000 comparisons.
GOAL = 0.765
MOST_AUDITED = 350
# Drop, and the share of samples that flip without any change: eight settings of an audit, and eight more.
AUDITED = ((0.03, 0.1), (0.05, 0.1), (0.1, 0.1), (0.05, 0.05), (0.1, 0.05), (0.05, 0.02), (0.2, 0.1), (0.2, 0.3))
OTHERS = ((0.02, 0.04), (0.04, 0.2), (0.08, 0.0), (0.08, 0.4), (0.15, 0.02), (0.15, 0.25), (0.3, 0.05), (0.4, 0.3))


def two_runs(rng, n, drop, flips, *, pass_rate=0.8):
    """Marks of n samples before and now; each flips with the same chance either way, and a share breaks on top."""
    kinds = rng.random(n)
    flips_up, flips_down = kinds < flips / 2, (kinds >= flips / 2) & (kinds < flips)
    steady = kinds >= flips
    passes = steady & (rng.random(n) < max(0.0, (pass_rate - flips / 2)) / (1 - flips))
    breaks = passes & (rng.random(n) < min(1.0, drop / max(pass_rate - flips / 2, drop)))
    before, now = passes | flips_down, (passes & ~breaks) | flips_up
    return before.astype(float), now.astype(float)


def shows_drop(before, now, clusters=None):
    changes, sizes = now - before, None
    if clusters is not None:
        changes, sizes = np.bincount(clusters, weights=changes), np.bincount(clusters).astype(float)
    return dm.stats.paired_difference(changes, sizes).interval.upper < 0


def power_of_marks(drop, flips, n, draws):
    rng = np.random.default_rng([n, round(1000 * drop), round(1000 * flips)])
    return np.mean([shows_drop(*two_runs(rng, n, drop, flips, pass_rate=max(0.8, drop))) for _ in range(draws)])


def planned(job):
    drop, flips, draws = job
    n = dm.stats.samples_to_detect(drop, dm.stats.PairedNoise(flip_rate=flips))
    reached = power_of_marks(drop, flips, n, draws)
    low, high = n // 3, 3 * n
    while high - low > max(1, n // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if power_of_marks(drop, flips, middle, draws // 2) >= PROMISED else (middle, high)
    return drop, flips, n, reached, high


def planned_clusters(job):
    """Flips and breaks come to a whole cluster together with a chance, so that differences have the correlation."""
    drop, flips, size, icc, draws = job
    noise = stated_noise(flip_rate=flips, cluster_size=size, icc=icc)
    n = plan_size(drop, noise, goal=Goal()).detect
    rng, count, found = np.random.default_rng([size, n]), n // size, 0
    clusters = np.repeat(np.arange(count), size)
    for _ in range(draws):
        leader, own = (two_runs(rng, m, drop, flips) for m in (count, count * size))
        follows = rng.random(count * size) < icc**0.5
        before, now = (np.where(follows, a[clusters], b) for a, b in zip(leader, own, strict=True))
        found += shows_drop(before, now, clusters)
    return f"clusters of {size}, correlation {icc}", drop, flips, n, found / draws


def planned_repetitions(job):
    """Samples pass with chances of their own; now some of them never pass, so that the pass-rate falls by the drop."""
    drop, repetitions, draws = job
    rng, (a, b) = np.random.default_rng([repetitions]), (4.0, 1.0)
    within = a * b / ((a + b) * (a + b + 1))
    noise = Noise(source="repetitions", variance=0.16, sd=(2 * within / repetitions) ** 0.5, within=within)
    n = plan_size(drop, noise, goal=Goal()).detect
    found = 0
    for _ in range(draws):
        chance = rng.beta(a, b, n)
        after = np.where(rng.random(n) < drop / 0.8, 0.0, chance)
        before, now = (rng.binomial(repetitions, one) / repetitions for one in (chance, after))
        found += shows_drop(before, now)
    return f"{repetitions} repetitions", drop, None, n, found / draws


def detected(job):
    """The drop that a plan, and a comparison of two runs without a change, say they find: is it found?"""
    n, flips, draws = job
    rng, found = np.random.default_rng([n, round(1000 * flips)]), {"plan": [], "comparison": []}
    drop = dm.stats.detectable_drop(n, dm.stats.PairedNoise(flip_rate=flips))
    for _ in range(draws):
        before, now = two_runs(rng, n, 0.0, flips)
        told = {"plan": drop, "comparison": dm.stats.paired_difference(now - before).detectable}
        for who, value in told.items():
            found[who].append(shows_drop(*two_runs(rng, n, value, flips, pass_rate=max(0.8, value))))
    return n, flips, drop, np.mean(found["plan"]), np.mean(found["comparison"])


def settled(job):
    """What a gate of margin 0.05 asks for: "if the true change is what we saw, about N samples would show it ..."."""
    what, seen, draws = job
    found = dm.stats.paired_difference(seen, margin=0.05)
    changed = Difference(
        n=len(seen),
        units=len(seen),
        difference=found.value,
        interval=Interval(found.interval.lower, found.interval.upper),
        lower_bound=found.lower_bound,
        effect=found.effect,
        equal=int((seen == 0).sum()),
        p_beyond=found.p_beyond,
    )
    samples = _units_needed(changed, 0.05, 0.95, found.p_beyond)
    rng, hits = np.random.default_rng(7), 0
    for _ in range(draws if samples else 0):
        again = dm.stats.paired_difference(rng.choice(seen, samples), margin=0.05)
        hits += (again.p_within if found.value > -0.05 else again.p_beyond) <= 0.05
    return what, found.value, samples, hits / draws


def seen_changes():
    rng = np.random.default_rng(1)
    for n, down, up in ((15, 1, 0), (60, 6, 2), (100, 5, 5), (100, 8, 2), (200, 14, 10), (300, 25, 5)):
        yield f"{n} samples, {down} broken, {up} fixed", np.repeat([-1.0, 1.0, 0.0], [down, up, n - down - up])
    yield "50 scores that all move", np.clip(rng.normal(-0.02, 0.2, 50), -1, 1)
    yield "80 scores of which 10 % fall", np.where(rng.random(80) < 0.1, -rng.random(80), 0.0)


def audited(job):
    """How often `deemster audit gate` says that so many samples find the drop, with its own simulation."""
    drop, flips, n, folder, draws = job
    place = Path(folder) / f"{n}-{drop}-{flips}"
    place.mkdir()
    samples = "".join(f"  - {{id: s{i}, input: {{q: {i}}}, expected_output: a}}\n" for i in range(n))
    (place / "golden.yml").write_text(f"name: made\nsamples:\n{samples}")
    gate = "gate: {baseline: {margin: 0.0, confidence: 0.975}}"
    suite = f'name: made\ndataset: golden.yml\ntarget: {{python: "app:answer"}}\nmetrics: [exact-match]\n{gate}\n'
    (place / "suite.yml").write_text(suite)
    stated = StatedVariance(flip_rate=flips, pass_rate=max(0.8, drop))
    settings = TrialSettings(drops=(drop,), draws=draws // 4)
    audit = audit_gate(load_suite(place / "suite.yml"), None, stated=stated, settings=settings)
    return audit.drops[0].outcomes.failed.rate


def main():
    draws = 200 if "--quick" in sys.argv else 2000
    short = []
    with ProcessPoolExecutor(2) as pool, tempfile.TemporaryDirectory() as folder:
        rows = list(pool.map(planned, [(*setting, draws) for setting in AUDITED + OTHERS]))
        # Of 80 % that pass, no more than 32 % flip without a change.
        asked = [row[:3] for row in rows if row[1] <= 0.3 and row[2] <= MOST_AUDITED]
        told = dict(zip(asked, pool.map(audited, [(*one, folder, draws) for one in asked]), strict=True))
        print("drop  flips  plan's samples  power  samples that reach .8  audit gate at plan's samples")
        for drop, flips, n, reached, enough in rows:
            audit = told.get((drop, flips, n))
            print(
                f"{drop:4}  {flips:5}  {n:14,}  {reached:5.3f}  {enough:21,}  {'' if audit is None else f'{audit:.3f}'}"
            )
            short += [(drop, flips)] * int(reached < GOAL)
        settings = [(0.05, 0.1, 5, 0.3), (0.1, 0.1, 10, 0.2), (0.1, 0.3, 5, 0.5), (0.05, 0.02, 3, 0.6)]
        others = [*pool.map(planned_clusters, [(*one, draws) for one in settings])]
        others += pool.map(planned_repetitions, [(d, k, draws) for d in (0.05, 0.1) for k in (3, 10)])
        print("\nplans of clusters and repetitions")
        for what, drop, flips, n, reached in others:
            print(f"{what:32} drop {drop:4}  flips {flips}  {n:6,} samples: {reached:.3f}")
            short += [what] * int(reached < GOAL)
        print("\nsamples  flips  plan finds a drop of  power there  power at the drop that a comparison names")
        for n, flips, drop, *reached in pool.map(
            detected, [(n, f, draws) for n in (30, 100, 400) for f in (0.0, 0.05, 0.1, 0.3)]
        ):
            print(f"{n:7}  {flips:5}  {drop:20.3f}  {reached[0]:11.3f}  {reached[1]:.3f}")
            short += [(n, flips)] * int(min(reached) < GOAL)
        print("\na gate of margin 0.05 saw                 change   asks for   settled by so many")
        for what, change, samples, reached in pool.map(settled, [(*one, draws // 2) for one in seen_changes()]):
            print(f"{what:40}  {change:6.3f}  {samples:9,}  {reached:.3f}")
            short += [what] * int(reached < GOAL)
    if short:
        sys.exit(f"less power than promised: {short}")


if __name__ == "__main__":
    main()
