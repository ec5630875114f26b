"""Votes of panels whose errors have a known correlation."""

from __future__ import annotations

import numpy as np

FACTS = {"name": "facts", "weight": 1, "requirement": "Every claim is supported."}


def correlated_errors(rng, n, *, judges, rate, correlation):
    """Whether each judge errs on each item: all at this rate, and each two of them with this correlation."""
    shared = rng.random(n) < rate
    alone = rng.random((n, judges)) < rate
    follows = rng.random((n, judges)) < correlation**0.5
    return np.where(follows, shared[:, None], alone).astype(float)


def panel_votes(errors, costs=None):
    """The map of a votes file in which people say MET and UNMET in turn, and judges err as told."""
    names = "abcdefghijkl"[: errors.shape[1]]
    words = ("MET", "UNMET")
    judges = [{"id": name} for name in names]
    for judge, cost in zip(judges, costs or (), strict=False):
        judge["cost_usd"] = cost
    items = [
        {
            "id": f"i{n:05}",
            "ground_truth": [words[n % 2]],
            "votes": {name: [words[(n + int(wrong)) % 2]] for name, wrong in zip(names, row, strict=True)},
        }
        for n, row in enumerate(errors)
    ]
    return {
        "schema_version": "deemster.votes.v1",
        "rubric": {"criteria": [FACTS]},
        "judges": judges,
        "items": items,
    }
