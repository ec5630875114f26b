"""From recorded traffic to a pass-rate over time and to golden samples."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

import deemster as dm
from deemster.cli import app
from deemster.errors import ConfigurationError
from deemster.models.clock import SystemClock
from deemster.store import open_store

SUITE = """\
schema_version: deemster.suite.v1
name: watch
dataset: none.yml
metrics:
  - regex: { pattern: "yes", name: says-yes }
"""


class Ticking(SystemClock):
    """A clock that advances by an hour at every reading."""

    def __init__(self):
        self.at = datetime(2026, 3, 1, tzinfo=UTC)

    def now(self):
        self.at += timedelta(hours=1)
        return self.at

    def elapsed_s(self):
        return None


def record(texts):
    with dm.Recorder("bot", store="runs.db", clock=Ticking()) as recorder:
        for number, text in enumerate(texts):
            recorder.record({"n": number}, text, tags=["live"])


def call(*arguments):
    return CliRunner().invoke(app, [*arguments, "--store", "runs.db"])


@pytest.fixture
def world(folder):
    (folder / "suite.yml").write_text(SUITE)
    return folder


@pytest.fixture
def scored(world):
    record(["yes"] * 60 + ["no"] * 20)
    done = call("run", "suite.yml", "--outputs", "latest", "--quiet")
    assert done.exit_code == 0, done.output
    return world


def test_fall_of_pass_rate_is_shown_by_period_and_flagged(scored):
    done = call("monitor", "bot", "--every", "4", "--baseline", "40")
    assert done.exit_code == 0
    assert "80 records, 0 without a score." in done.stdout
    assert "Baseline: of the first 40 scored records 1.0000 passed." in done.stdout
    assert "The pass-rate has dropped" in done.stdout
    assert done.stdout.count("outside") == 5


def test_html_of_monitor_begins_with_the_drift_and_draws_every_period(scored):
    done = call("monitor", "bot", "--every", "4", "--baseline", "40", "--to", "monitor.html", "--to", "m.json")
    assert done.exit_code == 0
    page = (scored / "monitor.html").read_text(encoding="utf-8")
    assert '<p class="verdict">The pass-rate has dropped.</p>' in page
    assert page.count('<rect class="band"') == 20
    assert page.count('<circle class="outside"') == 5
    assert call("monitor", "bot", "--to", "html:-", "--to", "-").exit_code == 2
    assert call("monitor", "bot", "--to", "suite.yml/m.html").exit_code == 2


def test_fail_on_drift_is_exit_code_1(scored):
    assert call("monitor", "bot", "--every", "4", "--baseline", "40", "--fail-on-drift").exit_code == 1
    assert call("monitor", "bot", "--every", "4", "--baseline", "80", "--fail-on-drift").exit_code == 0


def test_json_of_monitor_equals_python_result(scored):
    done = call("monitor", "bot", "--every", "4", "--baseline", "40", "--to", "-")
    shown = json.loads(done.stdout)
    assert [period["pass_rate"] for period in shown["periods"]] == [1.0] * 15 + [0.0] * 5
    found = dm.monitor("bot", store="runs.db", every="4", baseline=40, metric="says-yes")
    assert found.drift.evidence == shown["drift"]["evidence"]
    assert found.drift.direction == "down"

    found.save(scored / "saved.json")
    assert json.loads((scored / "saved.json").read_text()) == shown
    assert shown["dataset"] == "bot"


def test_python_result_saves_what_the_command_prints(scored):
    printed = call("monitor", "bot", "--every", "4", "--baseline", "40", "--to", "told.html").stdout
    found = dm.monitor("bot", store="runs.db", every="4", baseline=40)
    found.save(scored / "saved.html")
    found.save(scored / "saved.md")

    assert (scored / "saved.html").read_bytes() == (scored / "told.html").read_bytes()
    assert "Pass-rate of bot" in printed
    assert "80 records, 0 without a score." in (scored / "saved.md").read_text()


def test_failed_call_is_record_that_did_not_pass(world):
    with dm.Recorder("bot", store="runs.db", clock=Ticking()) as recorder:
        for number in range(4):
            recorder.record({"n": number}, "yes")
            recorder.record({"n": number}, error="it broke")
    assert call("run", "suite.yml", "--outputs", "latest", "--quiet").exit_code in (0, 3)
    (period,) = dm.monitor("bot", store="runs.db").periods
    assert (period.n, period.passed, period.unscored) == (8, 4, 0)


def test_since_leaves_out_earlier_records(scored):
    found = dm.monitor("bot", store="runs.db", since="2026-03-02")
    assert found.n == 80 - 23


def test_unscored_records_are_reported(world):
    record(["yes"] * 3)
    done = call("monitor", "bot")
    assert done.exit_code == 0
    assert "None of 3 records is scored" in done.stderr
    assert "No test yet: 0 of the 500 scored records of the baseline are there." in done.stdout


def test_store_without_recordings_says_so(world):
    open_store("runs.db").close()
    done = call("monitor", "bot")
    assert (done.exit_code, "The store holds no recording." in done.stderr) == (2, True)


def test_records_after_rescoring_are_unscored_until_next_rescoring(scored):
    record(["yes"] * 5)
    assert dm.monitor("bot", store="runs.db").unscored == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("monitor", "bott"), "Nothing is recorded for `bott`. Did you mean `bot`"),
        (("monitor", "bot", "--every", "fortnight"), "A period is hour, day, week, month or a number of records"),
        (("monitor", "bot", "--since", "yesterday"), "`yesterday` is no time"),
        (("monitor", "bot", "--metric", "say-yes"), "is called `say-yes`. Did you mean `says-yes`"),
        (("export", "latest", "--only", "failed", "--to", "g.yml", "--metric", "x"), "is called `x`"),
        (("export", "latest", "--to", "g.yml", "--only", "id:nobody"), "There is no record `nobody`"),
        (("export", "latest", "--to", "g.yml", "--only", "id:x", "--metric", "y"), "give one"),
        (("export", "latest", "--only", "failed", "--to", "g.txt"), "g.txt"),
        (("export", "latest", "--only", "tag:x", "--to", "g.yml"), "`--only failed` of RUN, or by `--only id:ID`"),
        (("export", "latest", "--only", "failed", "--to", "otel:x"), "otel gets whole runs"),
        (("export", "latest", "--limit", "1", "--to", "x.jsonl"), "runs are written whole"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(scored, arguments, message):
    done = call(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output


def test_failing_records_become_golden_samples_to_complete(scored):
    done = call("export", "latest", "--only", "failed", "--to", "golden.yml", "--limit", "2")
    assert done.exit_code == 0, done.output
    assert "2 samples written to golden.yml." in done.stderr
    dataset = dm.Dataset.load("golden.yml")
    assert dataset.name == "golden"
    first = next(iter(dataset))
    assert first.input == {"n": 60}
    assert first.expected_output is None
    assert first.tags == ("live", "to-complete")
    assert first.metadata["promoted"]["said"] == "no"
    assert first.metadata["promoted"]["failed"] == {"says-yes": 0.0}


def test_export_again_adds_only_new_records_and_keeps_edits(scored):
    call("export", "latest", "--only", "failed", "--to", "golden.yml", "--limit", "2")
    text = (scored / "golden.yml").read_text().replace("expected_output: null", "expected_output: yes  # by Ada", 1)
    (scored / "golden.yml").write_text(text)
    done = call("export", "latest", "--only", "failed", "--to", "golden.yml", "--limit", "3")
    assert "3 samples written to golden.yml; 2 samples left out whose input is there already." in done.stderr
    assert (scored / "golden.yml").read_text().startswith(text)
    assert [sample.input["n"] for sample in dm.Dataset.load("golden.yml")] == [60, 61, 62, 63, 64]


def test_monitor_saves_the_records_that_failed(scored):
    assert call("monitor", "bot", "--save-failing", "golden.yml").exit_code == 0
    assert next(iter(dm.Dataset.load("golden.yml"))).input == {"n": 60}


def test_passed_record_is_exported_by_id(scored):
    call("export", "latest", "--only", "failed", "--to", "golden.yml", "--limit", "1")
    name = next(iter(dm.Dataset.load("golden.yml"))).id.rsplit("-", 1)[0]
    done = call("export", "latest", "--to", "other.jsonl", "--only", f"id:{name}-1")
    assert done.exit_code == 0, done.output
    assert [sample.input["n"] for sample in dm.Dataset.load("other.jsonl")] == [0]


def test_export_without_failures_writes_nothing(world):
    record(["yes"] * 3)
    call("run", "suite.yml", "--outputs", "latest", "--quiet")
    done = call("export", "latest", "--only", "failed", "--to", "golden.yml")
    assert done.exit_code == 0
    assert "Nothing failed that could be written to golden.yml." in done.stderr
    assert not (world / "golden.yml").exists()


def test_export_of_unscored_records_is_error(world):
    record(["yes"])
    done = call("export", "latest", "--only", "failed", "--to", "golden.yml")
    assert done.exit_code == 2
    assert "is not scored yet" in done.stderr


def test_monitoring_without_a_store_is_an_error_that_names_it(world):
    with pytest.raises((ConfigurationError, dm.errors.StoreError), match=r"runs\.db"):
        dm.monitor("bot", store="runs.db")


def test_record_that_lacks_one_score_counts_neither_as_passed_nor_as_failed(scored):
    call("run", "--outputs", "latest", "--metric", "cost-below(max_usd=1)", "--quiet")
    found = dm.monitor("bot", store="runs.db")
    assert (found.n, found.unscored) == (80, 80)
    assert "None of 80 records is scored by every metric; `--metric` looks at one.\n" in call("monitor", "bot").stderr
    assert dm.monitor("bot", store="runs.db", metric="says-yes").unscored == 0


def test_unknown_dataset_is_error_with_suggestion(scored):
    done = call("run", "suite.yml", "--outputs", "dataset:bott")
    assert done.exit_code == 2
    assert "There is no recording of the dataset `bott`. Did you mean `bot`?" in done.stderr
