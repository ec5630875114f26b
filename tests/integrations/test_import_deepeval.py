from __future__ import annotations

import json

import pytest

from deemster.integrations.import_run import read_runs
from deemster.records import MetricScore, Unscored
from tests.integrations.imported import FIXTURES

FILE = FIXTURES / "deepeval" / "test_run_capitals.json"


@pytest.fixture(scope="module")
def run():
    (found,) = read_runs(FILE)
    return found


def test_every_metric_of_every_case_has_its_score_and_verdict(run):
    raw = json.loads(FILE.read_text())
    names = [card.name for card in run.cards]
    for case, execution in zip(raw["testCases"], run.executions, strict=True):
        assert execution.id == case["name"]
        for metric in case["metricsData"]:
            mark = execution.marks[names.index(metric["name"])]
            if "error" in metric:
                assert mark == Unscored("metric_failed", metric["error"])
            else:
                assert isinstance(mark, MetricScore)
                assert (mark.score, mark.success) == (metric["score"], metric["success"])


def test_threshold_and_judge_are_part_of_the_metric(run):
    exact, brief = run.cards
    assert (exact.threshold, exact.identity) == (1.0, "deepeval:Exact Match")
    assert (brief.threshold, brief.identity) == (0.8, "deepeval:Brevity(judge=words)")


def test_context_tools_cost_and_time_are_kept(run):
    france, italy, peru = (execution.answer for execution in run.executions)
    assert france.retrieved == [{"id": "1", "text": "Paris is the capital of France."}]
    assert str(france.usage.cost_usd) == "0.0002"
    assert italy.trajectory.tool_calls[0].name == "look_up"
    assert peru.usage.latency_ms == 1500


def test_model_is_the_target(run):
    assert run.target == "table"
    assert run.left_out == ()
