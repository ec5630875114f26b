"""Runs, samples and executions for tests of the store."""

from __future__ import annotations

from deemster.datasets.fingerprint import row_hash
from deemster.records import Execution, MetricCard, MetricScore, Output, SampleContent, SampleFacts, SampleLabels
from deemster.store import BaselineFacts, LabelFacts, RunFacts
from deemster.store.graded_items import grading_mark
from deemster.store.run_facts import RunEnd

MARK = MetricScore(0.5)
BASELINE = BaselineFacts(
    promoted_at="2026-01-03T00:00:00.000Z",
    fingerprint="f" * 64,
    metrics={"a": {"definition": "exact-match/1"}},
    summary={"macro_f1": 0.5},
)


def card(name="exact-match", identity="exact-match/1"):
    return MetricCard(name, name, identity, "lexical", frozenset({"b", "a"}))


CARDS = (card(),)
LABEL = LabelFacts(
    position=1,
    metric="exact-match",
    author="ada",
    at="2026-01-04T00:00:00.000000Z",
    verdict="fail",
    note="naïve",
    probability=0.5,
)


def facts(number=0, *, samples=3, **other):
    known = {
        "id": f"run-{number}",
        "dataset": "golden",
        "fingerprint": "f" * 64,
        "samples": samples,
        "started_at": f"2026-01-01T00:00:{number:02d}.000Z",
        "tool_version": "0.1.0",
        "identity": {"dataset": "f", "metrics": {"exact-match": "1"}},
        "facts": {"gate": None, "name": "naïve"},
    }
    return RunFacts(**{**known, **other})


def sample(position, **other):
    content = {"expected_output": f"answer {position}", "input": {"question": f"{position}?"}}
    known = {**content, "tags": ("easy",), "metadata": {"tags": ["easy"], "rank": position}}
    known.update(other)
    hashed = row_hash(known["input"], known["expected_output"])
    content = SampleContent(known["expected_output"], known["input"]) if known.get("content", True) else None
    return SampleFacts(position, f"s{position}", hashed, SampleLabels(known["tags"], known["metadata"]), content)


def samples(count=3):
    return [sample(position) for position in range(count)]


def execution(position=0, repetition=0, *, text="x", marks=(MARK,), **other):
    return Execution(position, f"s{position}", repetition, other.pop("answer", Output(text)), tuple(marks), **other)


def graded_item(position, **details):
    """A graded item as a grading writes it."""
    mark = grading_mark(None, None, details)
    return Execution(position, f"s{position}", 0, Output("x"), (mark,))


def begun(store, number=0, *, count=3, cards=CARDS, **other):
    """A run that has begun, with its lease held."""
    run = facts(number, samples=count, **other)
    store.begin(run, samples(count), cards=cards)
    return run.id


def written(store, number=0, *, count=3, cards=CARDS, **other):
    """A complete run."""
    name = begun(store, number, count=count, cards=cards, **other)
    with store.writer(name) as writer:
        writer.add([execution(position, marks=[MARK] * len(cards)) for position in range(count)])
    store.finish(name, RunEnd("complete", finished_at="2026-01-01T00:01:00.000Z", duration_s=1.25))
    return name


def counts(store, name):
    """How many rows each table holds of a run, counted by the database."""
    with store.pool.read_transaction() as rows:
        number = rows.read("SELECT number FROM runs WHERE id = ?", (name,))[0][0]
        return {
            table: rows.read(f"SELECT count(*) FROM {table} WHERE run = ?", (number,))[0][0]
            for table in ("samples", "outputs", "marks", "scorings")
        }
