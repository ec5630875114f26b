"""Experiments: the runs of several targets over one dataset, stored as the variants of one start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import deemster as dm
from deemster.store import open_store

EXPERIMENT = "tone-1"


def store_experiment(place: Any, dataset: dm.Dataset, targets: Mapping[str, Any], **options: Any) -> list[str]:
    """Run every target, and store the runs as one experiment; their ids, in order."""
    ids = []
    for target_place, (name, target) in enumerate(targets.items()):
        report = dm.evaluate(dataset, target=target, storage=dm.Storage(str(place)), name=name, **options)
        variant = {"name": name, "levels": {}, "place": target_place}
        with open_store(place) as store, store.lease(report.run.id):
            store.amend(report.run.id, facts={"experiment": EXPERIMENT, "variant": variant})
        ids.append(report.run.id)
    return ids
