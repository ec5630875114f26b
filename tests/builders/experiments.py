"""Experiments of Python targets: stored, and with the levels that the variants of a grid have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import deemster as dm
from deemster.store import open_store


def store_experiment(
    place: Any,
    dataset: dm.Dataset,
    targets: Mapping[str, Any],
    *,
    levels: Mapping[str, Mapping[str, str]] | None = None,
    **options: Any,
) -> str:
    """Run every target side by side, and store their runs; the id of the experiment."""
    experiment = dm.evaluate_variants(dataset, targets, storage=dm.Storage(str(place)), **options)
    with open_store(place) as store:
        for name, of_variant in (levels or {}).items():
            run = experiment.reports[name].run.id
            known = store.run(run).facts["variant"]
            with store.lease(run):
                store.amend(run, facts={"variant": {**known, "levels": of_variant}})
    return experiment.id
