"""`dm.evaluate(..., until_decided=True)`: a run that stops once the margin of its gate is settled."""

from __future__ import annotations

import pytest

import deemster as dm

SAMPLES = [{"id": f"q{n}", "input": {"n": n}, "expected_output": f"answer {n}"} for n in range(200)]
GATE = {"decision": "three-way", "baseline": {"compare": "previous", "margin": 0.1}}


def answer(given):
    return f"answer {given['n']}"


@pytest.fixture
def store(tmp_path):
    place = str(tmp_path / "runs.db")
    dm.evaluate(SAMPLES, target=answer, metrics=["exact-match"], store=place)
    return place


def test_run_stops_early_and_is_shown_again_when_resumed(store):
    settings = {"target": answer, "metrics": ["exact-match"], "store": store, "gate": GATE}
    report = dm.evaluate(SAMPLES, **settings, until_decided=True)
    assert report.gate.decision == "pass"
    assert (report.run.part.samples, report.run.part.of) == (51, 200)
    again = dm.evaluate(SAMPLES, **settings, resume=report.run.id)
    assert again.to_json() == report.to_json()


def test_without_margin_or_baseline_it_is_refused():
    with pytest.raises(dm.InputError, match="a run needs a margin to decide"):
        dm.evaluate(SAMPLES, target=answer, metrics=["exact-match"], until_decided=True)
    with pytest.raises(dm.InputError, match="a run needs a baseline: `previous` is a stored run"):
        dm.evaluate(SAMPLES, target=answer, metrics=["exact-match"], gate=GATE, until_decided=True)
