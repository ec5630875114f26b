"""Experiments: the runs of several targets over one dataset, stored as the variants of one start."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

import msgspec

import deemster as dm
from deemster.store import open_store
from deemster.store._run_table import _encode_run, _run_checksum
from deemster.store.run_facts import RunFacts

EXPERIMENT = "tone-1"


def store_experiment(
    place: Any,
    dataset: dm.Dataset,
    targets: Mapping[str, Any],
    *,
    levels: Mapping[str, Mapping[str, str]] | None = None,
    **options: Any,
) -> list[str]:
    """Run every target, and store the runs as one experiment; their ids, in order."""
    ids = []
    for target_place, (name, target) in enumerate(targets.items()):
        report = dm.evaluate(dataset, target=target, storage=dm.Storage(str(place)), name=name, **options)
        variant = {"name": name, "levels": (levels or {}).get(name, {}), "place": target_place}
        with open_store(place) as store:
            with store.lease(report.run.id):
                store.amend(report.run.id, facts={"variant": variant})
            row = store.run(report.run.id)
        facts = RunFacts(**{field: getattr(row, field) for field in RunFacts.__struct_fields__})
        values = _encode_run(msgspec.structs.replace(facts, experiment=EXPERIMENT))
        with sqlite3.connect(place) as connection:
            changed = (EXPERIMENT, _run_checksum(values), row.id)
            connection.execute("UPDATE runs SET experiment = ?, checksum = ? WHERE id = ?", changed)
        ids.append(report.run.id)
    return ids
