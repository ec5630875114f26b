"""`dm.evaluate(..., confirm=N)`: newly failing samples are run again, in a run with numbers of its own."""

from __future__ import annotations

from decimal import Decimal

import pytest

import deemster as dm
from deemster.comparison.compare_runs import compare_sources
from deemster.comparison.stored_source import StoredSource
from deemster.evaluation.confirm_run import stored_confirmation
from deemster.report.stored_report import stored_report
from deemster.store import open_store
from tests.builders.arguments import arguments

SAMPLES = [{"id": f"q{n}", "input": {"n": n}, "expected_output": f"answer {n}"} for n in range(30)]
GATE = {"baseline": {"compare": "previous", "margin": 0.3, "max_newly_failing": 1}}


class App:
    """Answers `broken` samples wrongly, `flaky` ones only the first time, and says what each call used."""

    def __init__(self, *, broken=(), flaky=()):
        self.broken, self.flaky, self.calls = broken, flaky, []

    def __call__(self, given):
        number = given["n"]
        self.calls.append(number)
        wrong = number in self.broken or (number in self.flaky and self.calls.count(number) == 1)
        usage = dm.Usage(prompt_tokens=10, cost_usd=Decimal("0.01"), latency_ms=5.0, model="small")
        return dm.Output("no" if wrong else f"answer {number}", usage=usage)


@pytest.fixture
def store(tmp_path):
    """A store with a history: three runs in which every sample passed, and the baseline after them."""
    place = str(tmp_path / "runs.db")
    for _ in range(4):
        dm.evaluate(SAMPLES, target=App(), metrics=["exact-match"], storage=place)
    return place


def test_samples_are_confirmed_and_cleared_by_a_run_with_its_own_usage_and_cost(store):
    app = App(broken=[7], flaky=[1, 2])
    report = dm.evaluate(
        SAMPLES,
        target=app,
        metrics=["exact-match"],
        storage=store,
        gate=GATE,
        settings=dm.EvaluationSettings(confirm=8),
    )
    check = next(check for check in report.gate.checks if check.name == "baseline.max_newly_failing")
    assert (report.gate.decision, check.observed) == ("pass", 1)
    assert check.because.endswith("1 confirmed by running them again, 2 flaky")
    assert len(app.calls) == 30 + 3 * 8
    assert (report.usage.target.calls, report.usage.total.calls) == (30, 30)
    assert (report.cost.total_usd, report.cost.calls) == (Decimal("0.30"), 30)
    with open_store(store) as opened:
        again = stored_report(opened, report.run.id)
        (row,) = opened.runs(kind="confirmation")
        confirming = stored_report(opened, row.id)
        assert opened.run("latest").id == report.run.id
    assert (again.usage, again.cost, again.gate) == (report.usage, report.cost, report.gate)
    assert row.facts["confirms"] == report.run.id
    assert (confirming.usage.target.calls, confirming.usage.target.prompt_tokens) == (24, 240)
    assert (confirming.cost.total_usd, confirming.run.status) == (Decimal("0.24"), "complete")


class Judge:
    """Fails what an application said wrongly, and counts what it is asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, request):
        self.asked.append(request.messages[-1].content)
        return {"score": float("no" not in self.asked[-1].split()), "reason": f"reason {len(self.asked)}"}


def judged(judge, app, place, **more):
    models = {"judge": dm.models.FakeChat(judge)}
    return dm.evaluate(SAMPLES, target=app, metrics=["llm-as-judge"], models=models, **arguments(where=place, **more))


def test_judges_are_asked_anew_in_every_rerun(tmp_path):
    """An answer about the run itself, or about another rerun, is not taken from the cache."""
    judge, place, cache = Judge(), str(tmp_path / "runs.db"), str(tmp_path / "cache.jsonl")
    judged(judge, App(), place)
    report = judged(judge, App(broken=[7]), place, gate=GATE, confirm=4, cache=cache)
    assert len(judge.asked) == 30 + 30 + 4
    check = next(check for check in report.gate.checks if check.name == "baseline.max_newly_failing")
    assert check.observed == 1


def test_what_is_left_of_a_budget_holds_for_the_reruns(tmp_path):
    place = str(tmp_path / "runs.db")
    spent = judged(Judge(), App(), place, budget_tokens=10**9).budget.spent_tokens
    report = judged(Judge(), App(broken=[7]), place, gate=GATE, confirm=8, budget_tokens=spent + spent // 10)
    assert report.run.status == "complete"
    with open_store(place) as opened:
        (row,) = opened.runs(kind="confirmation")
    assert row.status == "incomplete"


def test_samples_that_another_run_confirmed_are_run_again_only_so_often_as_is_missing(store):
    app = App(broken=[7])
    report = dm.evaluate(
        SAMPLES,
        target=app,
        metrics=["exact-match"],
        storage=store,
        gate=GATE,
        settings=dm.EvaluationSettings(confirm=3),
    )
    before = len(app.calls)
    dm.evaluate(
        SAMPLES,
        target=app,
        metrics=["exact-match"],
        storage=dm.Storage(store, resume=report.run.id),
        gate=GATE,
        settings=dm.EvaluationSettings(confirm=8),
    )
    assert len(app.calls) == before + 5
    with open_store(store) as opened:
        assert sorted(row.repetitions for row in opened.runs(kind="confirmation")) == [3, 5]


def test_without_a_store_the_gate_reads_the_reruns_too(store, tmp_path):
    baseline = str(tmp_path / "before.json")
    dm.evaluate(SAMPLES, target=App(), metrics=["exact-match"]).save(baseline)
    gate = {"baseline": {"compare": baseline, "max_newly_failing": 1}}
    report = dm.evaluate(
        SAMPLES, target=App(flaky=[1, 2]), metrics=["exact-match"], gate=gate, settings=dm.EvaluationSettings(confirm=3)
    )
    check = next(check for check in report.gate.checks if check.name == "baseline.max_newly_failing")
    assert (check.status, check.observed) == ("pass", 0)


def test_budget_of_the_gate_is_that_of_the_run_itself(store):
    gate = {**GATE, "budget": {"max_cost_usd": 0.35}}
    plain = dm.evaluate(SAMPLES, target=App(broken=[7]), metrics=["exact-match"], storage=store, gate=gate)
    again = dm.evaluate(
        SAMPLES,
        target=App(broken=[7, 8]),
        metrics=["exact-match"],
        storage=store,
        gate=gate,
        settings=dm.EvaluationSettings(confirm=8),
    )
    checks = [next(check for check in one.gate.checks if "cost" in check.name) for one in (plain, again)]
    assert [(check.status, check.observed) for check in checks] == [("pass", 0.3), ("pass", 0.3)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"confirm": 3}, "the gate needs a section `baseline`"),
        ({"confirm": -1}, "`confirm` is a whole number of at least 0"),
        ({"confirm": 3, "gate": GATE, "target": None, "outputs": {"q0": "no"}, "only_answered": True}, "saved outputs"),
    ],
)
def test_what_cannot_be_confirmed_is_refused(given, said):
    with pytest.raises(dm.InputError, match=said):
        dm.evaluate(SAMPLES, **arguments(**{"target": App(), "metrics": ["exact-match"], **given}))


def test_reruns_that_an_earlier_version_kept_with_a_run_still_count(store):
    report = dm.evaluate(SAMPLES, target=App(broken=[7], flaky=[1]), metrics=["exact-match"], storage=store, gate=GATE)
    usage = [{"prompt_tokens": 160, "cost_usd": "0.16", "model": "small", "calls": 16}]
    kept = {"metrics": ["exact-match"], "samples": {"q7": [[False]] * 8, "q1": [[True]] * 8}, "usage": usage}
    with open_store(store) as opened:
        with opened.lease(report.run.id):
            opened.amend(report.run.id, facts={"reruns": kept})
        again = stored_report(opened, report.run.id)
        assert (again.usage.reruns.calls, again.cost.total_usd) == (16, Decimal("0.46"))
        before, now = StoredSource(opened, opened.run("previous")), StoredSource(opened, opened.run(report.run.id))
        found = stored_confirmation(compare_sources(before, now), now)
    assert {sample.id: sample.state for sample in found.samples} == {"q7": "confirmed", "q1": "flaky"}
