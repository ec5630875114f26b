from __future__ import annotations

import json

import pytest

from deemster.integrations.import_run import read_runs
from deemster.records import MetricScore, Unscored
from tests.integrations.imported import FIXTURES

FOLDER = FIXTURES / "autorubric" / "capitals"


@pytest.fixture(scope="module")
def run():
    (found,) = read_runs(FOLDER)
    return found


def test_score_and_every_verdict_are_marks(run):
    rows = [json.loads(line) for line in (FOLDER / "items.jsonl").read_text().splitlines()]
    names = [card.name for card in run.cards]
    assert names == ["rubric", "names-a-city", "brief"]
    for row, execution in zip(sorted(rows, key=lambda row: row["item_idx"]), run.executions, strict=True):
        assert execution.id == f"item-{row['item_idx']}"
        if row["error"]:
            assert execution.marks[0] == Unscored("metric_failed", row["error"])
            continue
        assert isinstance(execution.marks[0], MetricScore)
        assert execution.marks[0].score == row["report"]["score"]
        for report in row["report"]["criterion_reports"]:
            mark = execution.marks[names.index(report["name"])]
            if report["verdict"] == "CANNOT_ASSESS":
                assert isinstance(mark, Unscored)
            else:
                assert mark.success is (report["verdict"] == "MET")


def test_what_the_folder_lacks_is_listed(run):
    assert any("the submissions" in sentence for sentence in run.left_out)
    assert run.dataset.name == "capitals"
