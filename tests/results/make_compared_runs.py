"""Runs as columns, made from plain lists."""

from __future__ import annotations

import hashlib

import numpy as np

from deemster.comparison.compare_columns import ComparisonSettings, compare_columns
from deemster.records import CAUSES, MetricCard
from deemster.results.mark_table import MarkTable
from deemster.results.run_columns import ComparedRun, RunColumns


def run(
    scores, *, name="run", keys=None, ids=None, outputs=None, tags=None, clusters=None, identities=None, usage=None
):
    """A run of metrics with the threshold 0.5.

    Args:
        scores: By metric, a row for each sample: a score, a cause, or a list of those, one for each repetition.
        name: The id of the run.
        keys: What makes each sample the same as one of another run; its place unless given.
        ids: The ids of the samples.
        outputs: What the target said, like the scores; every output is different unless given.
        tags: The tags of each sample.
        clusters: The cluster of each sample.
        identities: By metric, what must be equal to compare it.
        usage: By sample, cost, tokens and latency.
    """
    rows = {metric: [one if isinstance(one, list) else [one] for one in column] for metric, column in scores.items()}
    first = next(iter(rows.values()))
    samples, repetitions = len(first), len(first[0])
    cards = [MetricCard(metric, metric, f"{metric} v1", "lexical", None, 0.5) for metric in rows]
    table = MarkTable(cards, samples=samples, repetitions=repetitions)
    for place, column in enumerate(rows.values()):
        for at, marks in enumerate(column):
            for repetition, mark in enumerate(marks):
                if isinstance(mark, str):
                    table.causes[at, repetition, place] = CAUSES.index(mark) + 1
                else:
                    table.causes[at, repetition, place] = 0
                    table.scores[at, repetition, place] = mark
                    table.passed[at, repetition, place] = mark >= 0.5
    said = outputs or [[f"{name} {at} {repetition}" for repetition in range(repetitions)] for at in range(samples)]
    for at, texts in enumerate(said):
        for repetition, text in enumerate(texts if isinstance(texts, list) else [texts]):
            table.outputs[at, repetition] = 0 if text is None else digest(text)[0]
    for at in range(samples):
        table.tag(at, () if tags is None else tags[at])
    if usage is not None:
        table.usage = np.array(usage, dtype=np.float64).reshape(samples, repetitions, 3)
    names = [f"s{at}" for at in range(samples)] if ids is None else ids
    hashes = [hashlib.sha256(repr(key).encode()).digest() for key in (range(samples) if keys is None else keys)]
    whole = table.passed.all(axis=2)
    return RunColumns(
        run=ComparedRun(
            id=name,
            dataset="golden",
            fingerprint=None,
            started_at="2026-01-01T00:00:00.000Z",
            status="complete",
            samples=samples,
            repetitions=repetitions,
            macro_f1=float(table.passed.mean()),
            pass_rate=float(whole.mean()),
        ),
        marks=table,
        digests=np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(-1, 32),
        identities=identities or {metric: {"definition": f"{metric} v1"} for metric in rows},
        clusters=clusters,
        ids=lambda positions: [names[position] for position in positions],
    )


def digest(text):
    """A number for a text."""
    return np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.int64)


def compare(baseline, candidate, **settings):
    """The comparison of two runs."""
    return compare_columns(baseline, candidate, settings=ComparisonSettings(**settings), tool_version="0")
