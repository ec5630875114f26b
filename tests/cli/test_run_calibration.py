"""A suite that names a calibration: corrected numbers in the report, and a gate that looks at them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import deemster as dm
from tests.cli.workspace import called
from tests.runs.calibration_shop import SUITE, fill_in, judge, write_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A run, and its calibration by 100 labels; a second one by scores, and one of a judge at chance."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_shop(folder)
        assert called("run", "suite.yml", "--quiet", "--outputs", "after.jsonl").exit_code == 0
        place = iter(range(1000))
        ways = {
            "verdicts": None,
            "scores": lambda row, right: "0.8" if right else "0.1",
            "chance": lambda row, right: "pass" if next(place) % 2 else "fail",
        }
        for name, way in ways.items():
            assert called("labels", "sheet", "latest", "--n", "100", "--to", f"{name}.csv").exit_code == 0
            fill_in(f"{name}.csv", verdict=way)
            done = called("agreement", "latest", "--labels", f"{name}.csv", "--to", f"{name}.json", "--quiet")
            assert done.exit_code == 0
    return folder


@pytest.fixture(autouse=True)
def here(shop, monkeypatch):
    monkeypatch.chdir(shop)


def run(calibration, gate="", *, suite=SUITE, file="own.yml", code=0):
    named = "" if calibration is None else f"calibration: {calibration}.json\n"
    Path(file).write_text(suite + named + gate)
    done = called("run", file, "--outputs", "after.jsonl", "--to", "report.json")
    assert done.exit_code == code, done.stdout + done.stderr
    return done, json.loads(Path("report.json").read_text())


def gate(rules, decision="three-way"):
    return f"gate: {{ decision: {decision}, metrics: {{ llm-as-judge: {rules} }} }}\n"


def test_report_shows_the_corrected_rate_beside_the_judges():
    done, report = run("verdicts")
    found = report["metrics"]["llm-as-judge"]["pass_rate_corrected"]
    assert found["low"] < 0.65 < found["high"]
    assert found["value"] < report["metrics"]["llm-as-judge"]["pass_rate"]
    assert (found["labels"], found["note"], found["mean"]) == (100, None, None)
    assert "llm-as-judge, corrected" in done.stdout
    assert "Corrected for the errors of judges" in called("show", "latest", "--full").stdout


def test_stored_run_is_rendered_again_with_the_same_bytes():
    run("scores")
    Path("scores.json").rename("moved.json")
    try:
        assert called("show", "latest", "--to", "again.json").exit_code == 0
        assert Path("again.json").read_bytes() == Path("report.json").read_bytes()
        assert called("show", "again.json", "--to", "again.md").exit_code == 0
        assert "Corrected for the errors" in Path("again.md").read_text()
    finally:
        Path("moved.json").rename("scores.json")


def test_scores_of_people_correct_the_mean_too():
    _, report = run("scores", gate("{ min_mean: 0.2, on: corrected }"))
    mean = report["metrics"]["llm-as-judge"]["pass_rate_corrected"]["mean"]
    assert mean["low"] < mean["value"] < mean["high"]
    (check,) = report["gate"]["checks"]
    assert (check["observed"], check["status"]) == (mean["value"], "pass")


@pytest.mark.parametrize(
    ("rules", "code", "because"),
    [
        ("{ min_pass_rate: 0.75 }", 0, "the estimate reaches"),
        ("{ min_pass_rate: 0.75, on: corrected }", 1, "the corrected estimate is below"),
        ("{ min_pass_rate: 0.4, on: corrected }", 0, "the corrected estimate reaches"),
        ("{ min_pass_rate: 0.6, on: corrected-lower }", 1, "the corrected interval's lower end is below"),
    ],
)
def test_gate_looks_at_the_corrected_rate(rules, code, because):
    _, report = run("verdicts", gate(rules), code=code)
    assert report["gate"]["checks"][0]["because"].startswith(because)


def test_judge_at_chance_makes_the_gate_inconclusive():
    _, report = run("chance", gate("{ min_pass_rate: 0.1, on: corrected }"), code=4)
    found = report["metrics"]["llm-as-judge"]["pass_rate_corrected"]
    assert found["value"] is None
    assert "from chance" in found["note"]
    assert report["gate"]["checks"][0]["status"] == "inconclusive"


def test_another_metric_than_the_labelled_one_is_not_corrected():
    suite = SUITE.replace("[llm-as-judge]", "[{ llm-as-judge: { threshold: 0.8 } }]")
    _, report = run("verdicts", gate("{ min_pass_rate: 0.1, on: corrected }"), suite=suite, code=4)
    note = report["metrics"]["llm-as-judge"]["pass_rate_corrected"]["note"]
    assert "its threshold was 0.5, and is 0.8" in note


@pytest.mark.parametrize(
    ("calibration", "rules", "said"),
    [
        (None, gate("{ min_pass_rate: 0.5, on: corrected }"), "own.yml:6: `on: corrected` needs labels of people"),
        ("verdicts", "gate: { min_pass_rate: 0.5, on: corrected }\n", "for the rules of a metric"),
        (
            "verdicts",
            "gate: { cohorts: { express: { metrics: { llm-as-judge: { min_pass_rate: 0.5, on: corrected } } } } }\n",
            "over the whole run",
        ),
        ("nowhere", "", "nowhere.json"),
        ("report", "", "This is no calibration"),
    ],
)
def test_what_cannot_be_corrected_is_refused_before_the_run(calibration, rules, said):
    if calibration == "report":
        Path("report.json").write_text("{}")
    Path("own.yml").write_text(SUITE + ("" if calibration is None else f"calibration: {calibration}.json\n") + rules)
    done = called("run", "own.yml")
    assert done.exit_code == 2
    assert said in done.stderr


def test_calibration_without_labels_of_the_suites_metrics_is_refused():
    Path("own.yml").write_text(SUITE.replace("[llm-as-judge]", "[exact-match]") + "calibration: verdicts.json\n")
    done = called("run", "own.yml")
    assert done.exit_code == 2
    assert "no labels of a metric of this run. It has labels of `llm-as-judge`" in done.stderr


def test_python_takes_a_calibration_too():
    report = dm.evaluate(
        "golden.jsonl",
        outputs="after.jsonl",
        metrics=["llm-as-judge"],
        models={"judge": judge},
        settings=dm.EvaluationSettings(calibration="verdicts.json"),
    )
    assert report.metrics["llm-as-judge"].pass_rate_corrected.value < report.metrics["llm-as-judge"].pass_rate


def test_repeated_outputs_of_a_labelled_sample_are_one_label(shop):
    _, once = run("verdicts")
    calibration = json.loads(Path("verdicts.json").read_text())
    labels = calibration["metrics"]["llm-as-judge"]["labels"]
    labels["pairs"] = [pair for pair in labels["pairs"] for _ in range(5)]
    Path("five.json").write_text(json.dumps(calibration))
    _, five = run("five")
    rates = [report["metrics"]["llm-as-judge"]["pass_rate_corrected"] for report in (once, five)]
    assert [rate["value"] for rate in rates] == pytest.approx([rates[0]["value"]] * 2)
    assert [rate["high"] - rate["low"] for rate in rates] == pytest.approx([rates[0]["high"] - rates[0]["low"]] * 2)
