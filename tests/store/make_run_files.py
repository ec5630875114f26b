"""A run with every kind of content, and the content of a run in a store."""

from __future__ import annotations

import hashlib
import json

from msgspec import structs

from deemster.records import Execution, MetricScore, Output, SampleFacts, SampleLabels, TargetFailure, Unscored, Usage
from deemster.store.graded_items import GRADING_CARD
from deemster.store.run_facts import RunEnd
from tests.store.make_runs import card, facts, graded_item, sample

TWO = (card(), card("rouge-l", "rouge-l/1"))
HELD = Output(
    "It is 30\u2028days \U0001f600.",
    [{"id": "d1", "text": "thirty"}, "d2"],
    {"tool_calls": [{"name": "search", "arguments": {"q": "x"}}]},
    Usage(prompt_tokens=7, cost_usd=0.25, model="m"),
    "m",
)


def rich(store, name="rich", *, status="incomplete"):
    """A run of four samples, twice each, with failures, a cut output, settled marks and a second scoring."""
    given = [sample(0), sample(1, expected_output=None), sample(2, metadata=None, tags=())]
    given.append(SampleFacts(3, "s3", "ab" * 32, SampleLabels(), None))
    run = facts(samples=4, repetitions=2, suite="support", seed=2**70, kind="run")
    store.begin(run, given, cards=TWO)
    marks = (MetricScore(1.0, {"big": 2**70, "deep": [{"a": 1e-7}]}, threshold=0.6), Unscored("no_expected", "none"))
    answers = [HELD, TargetFailure("boom\x1b[31m"), Output("\ud800 lone"), None, Output("x" * (3 << 20)), Output("")]
    executions = [
        Execution(position, f"s{position}", repetition, answer, marks)
        for (position, repetition), answer in zip(
            [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (3, 0)], answers, strict=True
        )
    ]
    with store.writer(run.id) as writer:
        writer.add(executions[:4], at="2026-01-01T00:00:01.000Z")
        writer.add(executions[4:])
    settled = Execution(0, "s0", 0, HELD, (marks[0], MetricScore(0.0)))
    store.settle(run.id, 0, [settled])
    store.finish(run.id, RunEnd(status, reason="stopped", finished_at="2026-01-01T00:01:00.000Z", duration_s=1.25))
    again = store.open_scoring(run.id, (card("citation"),), identity={"metric": "citation"})
    with store.writer(run.id, scoring=again, outputs=False) as writer:
        writer.add([Execution(0, "s0", 0, HELD, (MetricScore(0.125),))])
    store.finish_scoring(run.id, again, RunEnd("complete", finished_at="2026-01-01T00:02:00.000Z"))
    return rest(store, run.id)


def rest(store, name):
    """A run without a writer."""
    store._leases[name].release()
    return name


def graded(store, **other):
    """A grading of two items."""
    run = facts(1, samples=2, kind="grading", **other)
    store.begin(run, [sample(0), sample(1)], cards=[GRADING_CARD])
    with store.writer(run.id) as writer:
        writer.add([graded_item(0, votes=[1.5, "x"]), graded_item(1, votes=[])])
    store.finish(run.id, RunEnd("complete", finished_at="2026-01-01T00:01:00.000Z", duration_s=0.5))
    return rest(store, run.id)


def run_content(store, name):
    """Everything that a store holds about a run, except its origin and its number there."""
    row = store.run(name)
    row = structs.replace(row, number=0, facts={key: fact for key, fact in row.facts.items() if key != "received"})
    known = {"row": row, "samples": list(store.samples(name)), "cards": store.cards(name)}
    each = [
        list(store.executions(name, scoring=scoring.number, settled=settled))
        for scoring in row.scorings
        for settled in (False, True)
    ]
    return {**known, "shown": list(store.executions(name)), "each": each, "moments": list(store.output_times(name))}


def with_entries(lines):
    """Lines of a run file with gradings as earlier versions wrote them, by entries in place of outputs and marks."""
    is_grading = False
    for line in lines:
        value = json.loads(line)
        kind = value.get("line")
        is_grading = value["kind"] == "grading" if kind == "run" else is_grading
        if is_grading and kind == "scoring":
            yield json.dumps({**value, "cards": []}, separators=(",", ":")).encode()
        elif is_grading and kind == "marks":
            entry = {"line": "entry", "position": value["position"], "body": value["marks"][0]["details"]}
            yield json.dumps(entry, separators=(",", ":")).encode()
        elif not (is_grading and kind == "output"):
            yield line


def resealed(lines):
    """Lines of a run file with matching counts and checksums, as in a forged file."""
    out, digest, counts = [], hashlib.sha256(), dict.fromkeys(("sample", "output", "marks", "entry"), 0)
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        kind = value.get("line") if isinstance(value, dict) else None
        if kind == "end":
            plural = {"sample": "samples", "output": "outputs", "marks": "marks", "entry": "entries"}
            value.update({plural[name]: count for name, count in counts.items()}, sha256=digest.hexdigest())
            out.append(json.dumps(value, separators=(",", ":")).encode())
            digest, counts = hashlib.sha256(), dict.fromkeys(counts, 0)
            continue
        if isinstance(kind, str) and kind in counts:
            counts[kind] += 1
        if out:
            digest.update(line + b"\n")
        out.append(line)
    return b"\n".join(out) + b"\n"
