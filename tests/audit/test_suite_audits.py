"""The audits and the calibration from Python: they find what the commands find, and their reports can be written."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import deemster as dm
from bench.judge_biases import CHOICE
from tests.builders.biased_judges import biased_judge
from tests.cli.workspace import called
from tests.runs.calibration_shop import fill_in, write_shop

TRIPS = {f"How long does trip {n} take?": f"Trip {n} takes {n + 2} days." for n in range(12)}
judge = biased_judge("authority", TRIPS)
first_option_judge = biased_judge("order", TRIPS)
SUITE = """\
name: trips
dataset: trips.json
target: { outputs: trips-outputs.json }
models: { judge: { client: "tests.audit.test_suite_audits:judge" } }
metrics: [{ rouge-l: { threshold: 0.6 } }, llm-as-judge]
gate: { metrics: { rouge-l: { min_pass_rate: 0.9 } } }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trips")
    rows = [
        {"id": f"trip-{n}", "input": {"question": question}, "expected_output": answer}
        for n, (question, answer) in enumerate(TRIPS.items())
    ]
    (folder / "trips.json").write_text(json.dumps({"name": "trips", "samples": rows}))
    (folder / "trips-outputs.json").write_text(
        json.dumps({"outputs": {row["id"]: row["expected_output"] for row in rows}})
    )
    (folder / "suite.yml").write_text(SUITE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_shop(folder, size=60)
        (folder / "shop.yml").write_text((folder / "suite.yml").read_text())
        (folder / "suite.yml").write_text(SUITE)
        for name in ("before", "after"):
            argv = ("run", "shop.yml", "--quiet", "--outputs", f"{name}.jsonl", "--name", name)
            assert called(*argv).exit_code == 0
            assert called("labels", "sheet", name, "--n", "40", "--to", f"{name}.csv").exit_code == 0
            fill_in(f"{name}.csv")
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.mark.parametrize(
    ("audit", "argv"),
    [
        (
            lambda: dm.audit.judge(settings=dm.audit.BiasSettings(probes=["authority"])),
            ("judge", "--probe", "authority"),
        ),
        (
            lambda: dm.audit.metrics("suite.yml", settings=dm.audit.DefectSettings(draws=2)),
            ("metrics", "suite.yml", "--set", "draws=2"),
        ),
        (
            lambda: dm.audit.gate("suite.yml", settings=dm.audit.TrialSettings(2, flip_rate=0.1, pass_rate=0.8)),
            ("gate", "suite.yml", "--set", "pass_rate=0.8", "--set", "flip_rate=0.1", "--set", "draws=2"),
        ),
        (lambda: dm.audit.dataset("golden.jsonl"), ("dataset", "golden.jsonl")),
    ],
    ids=["judge", "metrics", "gate", "dataset"],
)
def test_audit_finds_what_the_command_finds(audit, argv):
    report = audit()
    assert called("audit", *argv, "--quiet", "--to", "a.json", "--to", "a.html").exit_code == 0
    assert report.to_json() == Path("a.json").read_text()
    assert report.to_html() == Path("a.html").read_text()
    report.save("b.md")
    assert Path("b.md").read_text() == report.to_markdown()


def test_audit_works_inside_an_event_loop_and_flags_the_bias():
    async def audit():
        return dm.audit.judge(
            "judge", suite="suite.yml", metrics=["llm-as-judge"], settings=dm.audit.BiasSettings(max_samples=12)
        )

    assert asyncio.run(audit()).flags == [("llm-as-judge", "authority")]


def test_calibration_finds_what_the_command_finds_and_takes_a_report():
    report = dm.calibrate("before", "before.csv", settings=dm.calibration.CalibrationSettings(min_agreement=0.99))
    assert called("agreement", "before", "--labels", "before.csv", "--quiet", "--to", "c.json",
                  "--min-agreement", "0.99").exit_code == 1  # fmt: skip
    assert report.to_json() == Path("c.json").read_text()
    assert [check.status for check in report.checks] == ["fail"]
    assert called("show", "before", "--to", "before.json").exit_code == 0
    assert dm.calibrate(dm.load_report("before.json"), "before.csv").metrics == report.metrics


def test_comparison_with_labels_is_corrected():
    compared = dm.compare("before", "after", labels=["before.csv", "after.csv"])
    found = compared.corrected["llm-as-judge"]
    assert found.labels == (40, 40)
    assert found.difference < found.naive
    with pytest.raises(dm.ConfigurationError, match="`--labels` twice"):
        dm.compare("before", "after", labels="before.csv")


def test_judge_that_takes_the_first_option_is_told_in_a_calibration_of_a_rubric():
    dataset = dm.Dataset.load("trips.json")
    outputs = {sample.id: f"{sample.expected_output} Note {n}." for n, sample in enumerate(dataset)}
    report = dm.evaluate(
        dataset,
        outputs=outputs,
        metrics=[{"rubric": {"rubric": CHOICE, "threshold": 0.5, "judges": ["judge"]}}],
        models={"judge": first_option_judge},
        repetitions=1,
    )
    Path("options.csv").write_text(
        "id,criterion,verdict\n" + "".join(f"{sample.id},right,right\n" for sample in dataset)
    )
    found = dm.calibrate(report, "options.csv").metrics["rubric/right"]
    assert found.option_order_bias.n == len(outputs)
    assert found.option_order_bias.first > found.option_order_bias.expected
    assert "Position: mean place of the chosen option" in dm.calibrate(report, "options.csv").to_markdown()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: dm.audit.judge("jugde"), "asks the role `jugde`"),
        (lambda: dm.audit.judge(metrics=["rogue-l"]), "no metric `rogue-l`"),
        (lambda: dm.audit.judge(settings=dm.audit.BiasSettings(probes=["lenght"])), "Did you mean `length`"),
        (
            lambda: dm.audit.metrics("suite.yml", settings=dm.audit.DefectSettings(defects=["negatoin"])),
            "Did you mean `negation`",
        ),
        (lambda: dm.audit.metrics("nowhere.yml"), "nowhere.yml"),
        (lambda: dm.audit.gate("suite.yml", settings=dm.audit.TrialSettings(pass_rate=0.8)), "needs `flip_rate`"),
        (
            lambda: dm.audit.gate("suite.yml", settings=dm.audit.TrialSettings(draws=0)),
            "draws must be .* at least 1, not 0",
        ),
        (
            lambda: dm.audit.judge(settings=dm.audit.BiasSettings(max_samples=0)),
            "max_samples must be .* at least 1, not 0",
        ),
        (lambda: dm.audit.dataset("nowhere"), "nowhere"),
        (lambda: dm.calibrate("before"), "Name the labels"),
        (lambda: dm.calibrate("before", "nowhere.csv"), "nowhere.csv"),
        (lambda: dm.calibrate("before", "viewer"), "Nobody has labelled"),
        (lambda: dm.calibrate(dm.load_report("before.json"), "viewer"), "name a stored run"),
    ],
)
def test_bad_input_is_refused(call, said):
    assert called("show", "before", "--to", "before.json").exit_code == 0
    with pytest.raises(dm.DeemsterError, match=said):
        call()


def test_report_of_unknown_extension_is_refused():
    with pytest.raises(dm.DeemsterError, match="says no format"):
        dm.audit.dataset("golden.jsonl").save("audit.pdf")
