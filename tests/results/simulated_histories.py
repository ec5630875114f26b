"""Histories of runs whose samples pass with chances that are known, so that what an audit predicts can be checked."""

from __future__ import annotations

import numpy as np

from deemster.audit.gate_error_rates import GateTrial, TrialSettings, audit_gate_rates
from deemster.audit.simulated_runs import ExecutionPool
from deemster.errors import ConfigurationError

NAMES = {"quality": "quality"}


def draw_runs(made_runs, rng, chances, *, count, repetitions=1, tags=None):
    """Runs without a change: sample by sample, each passes with a chance of its own.

    Args:
        made_runs: The module that makes runs of plain lists.
        rng: What draws.
        chances: The chance of each sample.
        count: How many runs.
        repetitions: How often each sample is run.
        tags: The tags of each sample.
    """
    return [
        made_runs.run(
            {"quality": (rng.random((len(chances), repetitions)) < chances[:, None]).astype(float).tolist()},
            name=f"run {number} {rng.integers(1 << 60)}",
            tags=tags,
        )
        for number in range(count)
    ]


def compare_rates(made_runs, gate, draw_chances, *, histories, runs, drops, draws, real, repetitions=1, seed=0):
    """What audits predict over many histories, and what gates then really do: (predicted, realised) by drop.

    Each is a list with one row of (failed, passed) shares for each history.

    Args:
        made_runs: The module that makes runs of plain lists.
        gate: The gate.
        draw_chances: Draws the chances of all samples.
        histories: How many histories.
        runs: How many stored runs each has.
        drops: The drops of the pass-rate.
        draws: How many comparisons each audit simulates.
        real: How many real pairs of runs follow each history.
        repetitions: How often each sample is run.
        seed: The seed of all of it.
    """
    found = {drop: ([], []) for drop in (0.0, *drops)}
    for history in range(histories):
        rng = np.random.default_rng([seed, history])
        chances = draw_chances(rng)
        stored = draw_runs(made_runs, rng, chances, count=runs, repetitions=repetitions)
        settings = TrialSettings(draws=draws, drops=drops, seed=1_000_000 + history)
        pool = ExecutionPool(stored)
        told = audit_gate_rates(gate, pool, metrics=NAMES, settings=settings)
        found[0.0][0].append((told["unchanged"].failed.rate, told["unchanged"].passed.rate))
        for each in told["drops"]:
            if each.outcomes is None:
                raise ConfigurationError(each.reason or "")
            found[each.drop][0].append((each.outcomes.failed.rate, each.outcomes.passed.rate))
        trial = GateTrial(gate, pool, metrics=NAMES)
        for drop, (_, realised) in found.items():
            decisions = []
            for _ in range(real):
                (before,) = draw_runs(made_runs, rng, chances, count=1, repetitions=repetitions)
                broken = rng.random(len(chances)) < drop / chances.mean()
                now = np.where(broken, 0.0, chances)
                (after,) = draw_runs(made_runs, rng, now, count=1, repetitions=repetitions)
                decisions.append(trial.decide_columns(before, after).decision.decision)
            realised.append((decisions.count("fail") / real, decisions.count("pass") / real))
    return {drop: tuple(np.array(rows) for rows in pair) for drop, pair in found.items()}
