from __future__ import annotations

import json
import shutil

import pytest

import deemster as dm
from deemster.calibration.people_labels import label_tasks, labelled_votes
from deemster.evaluation.external_run import store_external_run
from deemster.integrations.import_run import read_runs
from deemster.records import MetricScore, Unscored
from deemster.store import LabelFacts, open_store
from tests.cli.workspace import called
from tests.integrations.imported import FIXTURES, imported_report

FOLDER, PANEL = FIXTURES / "autorubric" / "capitals", FIXTURES / "autorubric" / "panel"
CRITERIA = ("names-a-city", "brief", "tone")


@pytest.fixture(scope="module")
def run():
    (found,) = read_runs(FOLDER)
    return found


def test_score_and_every_verdict_are_marks(run):
    rows = [json.loads(line) for line in (FOLDER / "items.jsonl").read_text().splitlines()]
    names = [card.name for card in run.cards]
    assert names == ["rubric", "names-a-city", "brief"]
    for row, execution in zip(sorted(rows, key=lambda row: row["item_idx"]), run.executions, strict=True):
        assert execution.id == f"item-{row['item_idx'] + 1:04d}"
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


@pytest.fixture
def panel(tmp_path):
    """The votes of a panel of three, and those of a person who says what the strict judge says."""
    (run,) = read_runs(PANEL)
    with open_store(tmp_path / "runs.db", create=True) as store:
        row = store.run(store_external_run(store, run).id)
        assert [task.title for task in label_tasks(store, row)][:4] == [
            *(f"rubric/{name}" for name in CRITERIA),
            "rubric",
        ]
        for position in range(5):
            said = "MET" if position < 2 else "UNMET"
            for name, verdict in zip(CRITERIA, (said, said, "rude"), strict=True):
                label = LabelFacts(
                    position=position, repetition=0, metric="rubric", criterion=name, author="ada",
                    at=f"2026-11-17T12:00:0{position}.000000Z", verdict=verdict, order="random", seed=0,
                )  # fmt: skip
                store.put_label(row.id, label)
        yield labelled_votes(store, row)


def test_every_vote_of_an_ensemble_is_kept_for_alignment(panel):
    rows = [json.loads(line) for line in (PANEL / "items.jsonl").read_text().splitlines()]
    value = panel.to_dict()
    assert [judge["id"] for judge in value["judges"]] == ["strict", "mild", "odd"]
    for row, item in zip(sorted(rows, key=lambda row: row["item_idx"]), value["items"], strict=True):
        for place, report in enumerate(row["report"]["criterion_reports"]):
            assert item["final"][place] == (
                report["final_verdict"] or report["final_multi_choice_verdict"]["selected_label"]
            )
            for vote in report["votes"] + report["multi_choice_votes"]:
                cell = item["votes"][vote["judge_id"]][place]
                wanted = vote["verdict"] if "verdict" in vote else vote["selected_label"]
                assert cell == wanted if vote["error"] is None else cell["failure"] == "parse"


def test_each_judge_of_an_ensemble_is_compared_with_people(panel):
    found = dm.compute_metrics(panel, per_judge=True, bootstrap=dm.agreement.BootstrapSettings(replicates=0))
    # The panel follows the strict judge where it is split, and is between the judges on the tone.
    assert [one.accuracy for one in found.per_criterion[:2]] == [1, 1]
    assert found.per_criterion[2].exact_accuracy == 0
    assert found.per_judge["strict"].criterion_accuracy == 1
    assert found.per_judge["mild"].criterion_accuracy == pytest.approx(4 / 15)


@pytest.mark.parametrize("value", [1e308, -1, "x", None, [], True])
def test_option_of_impossible_value_counts_as_no_value(tmp_path, value):
    shutil.copytree(PANEL, tmp_path / "panel")
    path = tmp_path / "panel" / "items.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["report"]["criterion_reports"][2]["final_multi_choice_verdict"]["value"] = value
    path.write_text("\n".join(map(json.dumps, rows)))
    (run,) = read_runs(tmp_path / "panel")
    tone = imported_report(run, tmp_path).metrics["rubric"].criteria["tone"]
    assert (tone.n, tone.n_judged) == (5, 4)


def test_experiment_joins_the_labels_of_its_dataset(tmp_path, panel):
    value = panel.to_dict()
    labels = [["MET", "MET", "rude"], ["MET", "MET", "rude"], *([["UNMET", "UNMET", "rude"]] * 3)]
    items = [{"submission": f"{count} words: Paris", "ground_truth": truth} for count, truth in enumerate(labels)]
    criteria = [{**one, "name": one["name"].removeprefix("rubric/")} for one in value["rubric"]["criteria"]]
    dataset = tmp_path / "dataset.json"
    dataset.write_text(json.dumps({"name": "panel", "prompt": "p", "rubric": {"criteria": criteria}, "items": items}))
    store = ("--store", str(tmp_path / "runs.db"))
    assert called("import", str(PANEL), *store).exit_code == 0
    found = called("agreement", "latest", "--labels", str(dataset), "--per-judge", "--to", "-", *store)
    assert found.exit_code == 0, found.stderr
    result = json.loads(found.stdout)
    expected = dm.compute_metrics(panel, per_judge=True)
    assert result["criterion_accuracy"] == expected.criterion_accuracy
    assert result["per_judge"]["strict"]["criterion_accuracy"] == 1
    assert [one["name"] for one in result["per_criterion"]] == ["names-a-city", "brief", "tone"]


def test_sheet_that_names_a_criterion_meets_its_options_and_not_the_metric_of_that_name(tmp_path):
    (run,) = read_runs(PANEL)
    with open_store(tmp_path / "runs.db", create=True) as store:
        name = store_external_run(store, run).id
    sheet = tmp_path / "labels.csv"
    sheet.write_text(
        "id,criterion,verdict\n"
        + "".join(f"item-{at:04d},tone,Plain\n" for at in range(1, 5))
        + "item-0005,tone,kind\n"
    )
    (tone,) = dm.calibrate(name, sheet, store=tmp_path / "runs.db").metrics.items()
    assert (tone[0], tone[1].kind, tone[1].agreement.value) == ("rubric/tone", "option", 0.8)

    sheet.write_text("id,criterion,verdict\nitem-0001,tone,banana\n")
    with pytest.raises(
        dm.InputError, match=r"1 label cannot be read: `banana`. The options of this criterion are `rude`"
    ):
        dm.calibrate(name, sheet, store=tmp_path / "runs.db")
