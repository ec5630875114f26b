"""A suite with a ready-made group, from the file to the exit code."""

from __future__ import annotations

import json

import pytest

import deemster as dm
from tests.cli.workspace import SUITE, called

JUDGE = """\
import deemster as dm


def opinion(ask):
    # The best there is of completeness and groundedness; in the middle of redundancy.
    return {"reason": "r", "score": 2 if "superfluous" in ask.messages[0].content or "serves no search" in
            ask.messages[0].content else 3}


judge = dm.models.FakeChat(opinion)
"""
MODELS = "models:\n  judge: { client: 'voices:judge' }\n"
GROUP = "group: query-transformation\n"


@pytest.fixture
def suite(world):
    def change(text):
        world(suite_yml=text, voices_py=JUDGE)

    return change


def ran(*flags):
    result = called("run", "suite.yml", "--to", "-", *flags)
    return json.loads(result.stdout), result.exit_code


def test_aggregator_of_group_uses_only_metrics_of_group(suite):
    suite(SUITE + MODELS + GROUP + "gate: { min_aggregate_success: 1, min_aggregate_score: 0.85 }\n")
    report, code = ran()
    assert set(report["metrics"]) == {"exact-match", "completeness", "groundedness", "redundancy"}
    assert report["metrics"]["exact-match"]["pass_rate"] < 1
    # 0.4 x 1 + 0.3 x 1 + 0.3 x 0.5, whatever exact-match says.
    assert [entry["aggregate"] for entry in report["samples"]] == [{"success": True, "score": 0.85}] * 2
    assert report["aggregate"]["aggregator"].endswith(" over completeness, groundedness, redundancy")
    assert code == 0


def test_suite_with_group_needs_no_metrics(suite):
    suite(SUITE.replace("metrics: [exact-match]\n", "") + MODELS + GROUP)
    report, code = ran()
    assert [entry["aggregate"]["score"] for entry in report["samples"]] == [0.85, 0.85]
    assert " over " not in report["aggregate"]["aggregator"]
    assert code == 0


def test_run_without_the_groups_metrics_has_no_aggregate(suite):
    suite(SUITE + MODELS + GROUP)
    report, _ = ran("--metric", "exact-match")
    assert set(report["metrics"]) == {"exact-match"}
    assert report["aggregate"] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group: generatoin\n", "No group is called `generatoin`. Did you mean `generation`?"),
        (GROUP + "aggregator: and\n", "The group `query-transformation` has an aggregator of its own"),
        (GROUP + "models: {}\n", "judge"),
    ],
)
def test_unusable_group_is_error_with_line(suite, text, message):
    suite(SUITE + text)
    result = called("run", "suite.yml")
    assert result.exit_code == 2
    assert message in result.stderr
    assert "suite.yml:" in result.stderr or "judge" in message


def test_evaluate_takes_a_group_beside_metrics():
    report = dm.evaluate(
        [{"id": "a", "input": {"question": "q"}, "expected_output": "x"}],
        outputs={"a": "y"},
        metrics=["exact-match", "group:summarisation"],
        models={"judge": dm.models.FakeChat(lambda _: {"reason": "r", "score": 5})},
    )
    assert report.metrics["exact-match"].pass_rate == 0.0
    assert (report.samples[0].aggregate.success, report.samples[0].aggregate.score) == (True, 1.0)
