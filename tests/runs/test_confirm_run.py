"""`dm.evaluate(..., confirm=N)`: newly failing samples are run again, and what that takes is counted."""

from __future__ import annotations

from decimal import Decimal

import pytest

import deemster as dm
from deemster.runs.build_report import stored_report
from deemster.store import open_store

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
        dm.evaluate(SAMPLES, target=App(), metrics=["exact-match"], store=place)
    return place


def test_reruns_confirm_clear_and_count_in_usage_and_cost(store):
    app = App(broken=[7], flaky=[1, 2])
    report = dm.evaluate(SAMPLES, target=app, metrics=["exact-match"], store=store, gate=GATE, confirm=8)
    check = next(check for check in report.gate.checks if check.name == "baseline.max_newly_failing")
    assert (report.gate.decision, check.observed) == ("pass", 1)
    assert check.because.endswith("1 confirmed by running them again, 2 flaky")
    assert len(app.calls) == 30 + 3 * 8
    assert (report.usage.target.calls, report.usage.reruns.calls, report.usage.total.calls) == (30, 24, 54)
    assert (report.usage.reruns.prompt_tokens, report.usage.reruns.latency_ms) == (240, None)
    assert (report.cost.total_usd, report.cost.calls) == (Decimal("0.54"), 54)
    assert "run again" in report.to_markdown()
    with open_store(store) as opened:
        again = stored_report(opened, report.run.id)
    assert (again.usage, again.cost) == (report.usage, report.cost)


def test_reruns_count_for_the_budget_of_the_gate(store):
    gate = {**GATE, "budget": {"max_cost_usd": 0.35}}
    plain = dm.evaluate(SAMPLES, target=App(broken=[7]), metrics=["exact-match"], store=store, gate=gate)
    again = dm.evaluate(SAMPLES, target=App(broken=[7, 8]), metrics=["exact-match"], store=store, gate=gate, confirm=8)
    checks = [next(check for check in one.gate.checks if "cost" in check.name) for one in (plain, again)]
    assert [(check.status, check.observed) for check in checks] == [("pass", 0.3), ("fail", 0.38)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"confirm": 3}, "the gate needs a section `baseline`"),
        ({"confirm": -1}, "`confirm` is a whole number of at least 0"),
        ({"confirm": 3, "gate": GATE, "target": None, "outputs": {"q0": "no"}, "partial": True}, "saved outputs"),
    ],
)
def test_what_cannot_be_confirmed_is_refused(given, said):
    with pytest.raises(dm.InputError, match=said):
        dm.evaluate(SAMPLES, **{"target": App(), "metrics": ["exact-match"], **given})
