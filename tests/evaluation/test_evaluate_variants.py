"""`evaluate_variants`: several targets over the same samples, side by side, from Python."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime
from zlib import crc32

import pytest

import deemster as dm
from deemster.engine.stop_request import Stop
from deemster.errors import ConfigurationError
from deemster.evaluation.evaluate_variants import EvaluatedExperiment
from deemster.evaluation.resolve_evaluation import SuiteOverrides, suite_of_arguments
from deemster.evaluation.run_experiment import resolve_experiment, run_experiment
from deemster.evaluation.variants import given_variants
from deemster.models.clock import FrozenClock
from deemster.runs.run_storage import NOT_STORED
from deemster.store import open_store
from deemster.targets.saved_outputs import SavedOutputs
from deemster.testing import FakeChat

SAMPLES = [{"id": f"q{n}", "input": {"n": n}, "expected_output": str(n)} for n in range(24)]
EPOCH = dm.EvaluationSettings(clock=FrozenClock(datetime(2026, 1, 2, tzinfo=UTC)))


def right(question):
    return str(question["n"])


async def half(question):
    return str(question["n"] if question["n"] % 2 else "unknown")


SAVED = SavedOutputs({sample["id"]: "3" for sample in SAMPLES})
THREE = {"right": right, "half": half, "saved": SAVED}


def test_reports_ranking_table_and_files_are_there():
    found = dm.evaluate_variants(SAMPLES, THREE, metrics=["exact-match"], settings=EPOCH)
    assert isinstance(found, EvaluatedExperiment)
    assert [variant.name for variant in found.variants] == list(found.reports) == ["right", "half", "saved"]
    assert [report.pass_rate for report in found.reports.values()] == [1.0, 0.5, 1 / 24]
    assert [report.run.label for report in found.reports.values()] == list(THREE)
    assert "right" in found.verdict
    assert list(found.to_dataframe()["variant"]) == list(THREE)
    assert "half" in found._repr_html_()
    assert "reports" not in json.loads(found.to_json())


def test_same_arguments_give_the_same_bytes():
    first, again = [dm.evaluate_variants(SAMPLES, THREE, metrics=["exact-match"], settings=EPOCH) for _ in range(2)]
    assert first.to_json() == again.to_json()
    assert [report.to_json() for report in first.reports.values()] == [
        report.to_json() for report in again.reports.values()
    ]


def test_report_of_a_variant_is_the_one_of_a_run_by_itself():
    found = dm.evaluate_variants(SAMPLES, THREE, metrics=["exact-match"], settings=EPOCH)
    alone = dm.evaluate(SAMPLES, target=half, metrics=["exact-match"], name="half", settings=EPOCH)
    theirs, own = json.loads(found.reports["half"].to_json()), json.loads(alone.to_json())
    assert theirs["run"].pop("id") != own["run"].pop("id")
    assert theirs == own


async def test_samples_are_begun_in_turn_and_concurrency_holds_for_all_together():
    begun, under_way, most = [], Counter(), 0

    def target(name, pause_s):
        async def answer(question):
            nonlocal most
            begun.append((question["n"], name))
            under_way[name] += 1
            most = max(most, sum(under_way.values()))
            await asyncio.sleep(pause_s)
            under_way[name] -= 1
            return str(question["n"])

        return answer

    targets = {"quick": target("quick", 0), "slow": target("slow", 0.004), "slower": target("slower", 0.008)}
    await dm.evaluate_variants_async(SAMPLES, targets, metrics=["exact-match"], concurrency=3)
    assert most <= 3
    assert [number for number, _ in begun] == [sample["input"]["n"] for sample in SAMPLES for _ in targets]
    orders = {tuple(name for number, name in begun if number == sample["input"]["n"]) for sample in SAMPLES}
    assert len(orders) > 2


def test_repetitions_are_run_in_turn_too():
    begun = []

    def target(name):
        def answer(question):
            begun.append((question["n"], name))
            return str(question["n"])

        return answer

    found = dm.evaluate_variants(
        SAMPLES[:4], {name: target(name) for name in "ab"}, metrics=["exact-match"], repetitions=2, concurrency=1
    )
    assert [number for number, _ in begun] == [0, 0, 1, 1, 2, 2, 3, 3] * 2
    assert [report.totals.repetitions for report in found.reports.values()] == [2, 2]


def test_judges_are_asked_in_turn_also_of_saved_outputs():
    asked = []

    def verdict(ask):
        asked.append(next(word for word in ("first", "second") if word in str(ask.messages)))
        return f'{{"reason": "it says so", "score": {crc32(str(ask.messages).encode()) % 2}}}'

    outputs = {
        name: SavedOutputs({sample["id"]: f"{name} {sample['id']}" for sample in SAMPLES})
        for name in ("first", "second")
    }
    dm.evaluate_variants(SAMPLES, outputs, metrics=["llm-as-judge"], models={"judge": FakeChat(verdict)})
    assert Counter(asked) == {"first": 24, "second": 24}
    halves = [Counter(asked[start : start + 12]) for start in range(0, 48, 12)]
    assert all(2 <= count["first"] <= 10 for count in halves)


def test_same_question_of_two_variants_is_asked_once_and_counts_for_both():
    judge = FakeChat(lambda ask: f'{{"reason": "so", "score": {crc32(str(ask.messages).encode()) % 2}}}')
    outputs = {name: SavedOutputs({sample["id"]: "the same" for sample in SAMPLES}) for name in ("one", "other")}
    found = dm.evaluate_variants(SAMPLES, outputs, metrics=["llm-as-judge"], models={"judge": judge}, settings=EPOCH)
    assert len(judge.asked) == 24
    one, other = [json.loads(report.to_json())["usage"] for report in found.reports.values()]
    assert one == other


def test_variants_ask_the_same_clients_which_are_closed_once_at_the_end():
    class Judge(FakeChat):
        closed = 0

        async def close(self):
            self.closed += 1
            self.asked_when_closed = len(self.asked)

    judge = Judge(lambda ask: f'{{"reason": "so", "score": {crc32(str(ask.messages).encode()) % 2}}}')
    outputs = {name: SavedOutputs({sample["id"]: f"{name} {sample['id']}" for sample in SAMPLES}) for name in "abc"}
    dm.evaluate_variants(SAMPLES, outputs, metrics=["llm-as-judge"], models={"judge": judge})
    assert (judge.closed, judge.asked_when_closed) == (1, 72)


def test_target_that_crashes_leaves_the_others_whole():
    def crash(question):
        raise OSError("down")

    found = dm.evaluate_variants(SAMPLES, {"right": right, "down": crash}, metrics=["exact-match"])
    assert [report.run.status for report in found.reports.values()] == ["complete", "incomplete"]
    assert found.reports["right"].pass_rate == 1.0


def test_experiment_is_resumed_as_a_whole(place):
    path = place
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deemster.evaluation.run_experiment._InTurn.execute", _broken)
        with pytest.raises(RuntimeError):
            dm.evaluate_variants(SAMPLES, THREE, metrics=["exact-match"], storage=path, settings=EPOCH)
    with open_store(path) as store:
        assert {row.status for row in store.runs()} == {"incomplete"}
        before = {row.id for row in store.runs()}

    storage = dm.Storage(path, resume=True)
    found = dm.evaluate_variants(SAMPLES, THREE, metrics=["exact-match"], storage=storage, settings=EPOCH)
    whole = dm.evaluate_variants(SAMPLES, THREE, metrics=["exact-match"], settings=EPOCH)
    assert found.to_json() == whole.to_json()
    with open_store(path) as store:
        assert {row.experiment for row in store.runs()} == {found.id}
        assert {report.run.id for report in found.reports.values()} >= before


async def _broken(self, work):
    raise RuntimeError("broken")


async def test_stop_and_time_hold_for_all():
    async def forever(question):
        await asyncio.sleep(60)

    suite = suite_of_arguments(
        SAMPLES,
        metrics=["exact-match"],
        aggregator=None,
        gate=None,
        models=None,
        calls=dm.ModelCalls(),
        repetitions=None,
        concurrency=4,
        seed=1,
        settings=dm.EvaluationSettings(),
    )
    variants = given_variants({"right": right, "one": forever, "other": forever})
    timed = resolve_experiment(suite._replace(timeout_s=0.05), variants, SuiteOverrides(), storage=NOT_STORED)
    finished = await run_experiment(timed, warn=print)
    assert {variant.report.run.status for variant in finished} == {"incomplete"}
    assert all("The run's time of 0.05 s was over" in variant.report.run.reason for variant in finished)

    stop = Stop()
    asyncio.get_running_loop().call_later(0.05, stop.request, "interrupted by SIGINT")
    usual = resolve_experiment(suite, variants, SuiteOverrides(), storage=NOT_STORED)
    finished = await run_experiment(usual, stop=stop, warn=print)
    assert all("interrupted by SIGINT" in variant.report.run.reason for variant in finished)


def test_warnings_are_told_once_with_the_variants_that_they_are_about():
    judge = FakeChat(lambda _: '{"reason": "so", "score": 1}')
    outputs = {name: SavedOutputs({sample["id"]: name for sample in SAMPLES}) for name in ("one", "other")}
    with pytest.warns(UserWarning, match="the same score and the same reason") as caught:
        dm.evaluate_variants(SAMPLES, outputs, metrics=["llm-as-judge"], models={"judge": judge})
    assert len(caught) == 1
    assert str(caught[0].message).startswith("llm-as-judge: ")


def test_gate_of_a_program_may_name_variants():
    gate = {"min_pass_rate": 0.9, "variants": ["right"]}
    found = dm.evaluate_variants(SAMPLES, THREE, metrics=["exact-match"], gate=gate)
    assert [len(report.gate.checks) for report in found.reports.values()] == [1, 0, 0]
    gate = dm.Gate(min_pass_rate=0.9, variants=["half"])
    found = dm.evaluate_variants(SAMPLES, THREE, metrics=["exact-match"], gate=gate)
    assert found.reports["half"].gate.decision == "fail"
    with pytest.raises(ConfigurationError, match=r"`gate\.variants` is for a suite that has `variants`"):
        dm.evaluate(SAMPLES, target=right, metrics=["exact-match"], gate=gate)


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ({}, "a map of at least one name"),
        ([right], "a map of at least one name"),
        ({"a\nb": right, "c": right}, "a text of one line"),
        ({3: right, "c": right}, "a text of one line"),
    ],
)
def test_what_is_no_variant_is_refused(variants, message):
    with pytest.raises(ConfigurationError, match=message):
        dm.evaluate_variants(SAMPLES, variants, metrics=["exact-match"])


@pytest.mark.parametrize("settings", [dm.EvaluationSettings(confirm=2), dm.EvaluationSettings(on="local-cluster")])
def test_settings_for_one_target_are_refused(settings):
    with pytest.raises(ConfigurationError, match="are for one target"):
        dm.evaluate_variants(SAMPLES, THREE, metrics=["exact-match"], settings=settings)
