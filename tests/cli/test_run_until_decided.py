"""`--until-decided`: samples in random order, until the margin against the baseline is settled."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.cli.make_baselines import dataset
from tests.cli.make_baselines import suite as saved_suite
from tests.cli.workspace import called, started, written

APP = """\
import json, pathlib, re, time


def answer(input):
    number = int(re.search(r"\\d+", input["question"])[0])
    with open("calls.txt", "a") as calls:
        calls.write(f"{number}\\n")
    if pathlib.Path("hang").exists() and number % 10 == 7:
        time.sleep(600)
    return "wrong" if number in json.loads(pathlib.Path("wrong.json").read_text()) else f"answer {number}"
"""


@pytest.fixture
def folder(world):
    return world()


def suite(*given, **other):
    text = saved_suite(*given, **other)
    return text.replace("{ outputs: answers.yml }", "{ python: until_app:answer }") + "limits: { concurrency: 4 }\n"


def ready(folder, gate, *, count=400, **other):
    """A folder whose suite calls a function, and has a baseline."""
    files = {"golden.yml": dataset(count), "suite.yml": suite(gate, **other), "until_app.py": APP, "wrong.json": "[]"}
    written(folder, files)
    assert "is the baseline" in called("run", "suite.yml", "--quiet", "--promote-baseline").stderr
    (folder / "calls.txt").unlink()


def ran(folder, *flags, wrong=()):
    written(folder, {"wrong.json": json.dumps(list(wrong))})
    return called("run", "suite.yml", "--quiet", *flags)


def report(name="latest"):
    return json.loads(called("report", name, "--json", "-").stdout)


def margin_check(name="metrics.exact-match"):
    return next(check for check in report()["gate"]["checks"] if check["name"] == f"baseline.margin.{name}")


def test_nothing_changes_and_the_run_stops_early_and_passes(folder, golden):
    ready(folder, "margin: 0.1")
    result = ran(folder, "--until-decided", "--json", "first.json")
    assert result.exit_code == 0, result.stderr
    found = report()
    part = found["run"]["part"]
    assert part == {"samples": 51, "of": 400, "selection": "--until-decided"}
    assert (found["run"]["status"], found["totals"]["not_run"]) == ("complete", 0)
    check = margin_check()
    assert check["status"] == "pass"
    assert "settled after 51 samples: the drop is at most 0.1, anytime-valid p" in check["because"]
    called("report", "latest", "--json", "again.json")
    assert (folder / "again.json").read_bytes() == (folder / "first.json").read_bytes()
    golden("cli/until-decided.txt", result.stderr)


def test_clear_drop_stops_early_and_fails(folder):
    ready(folder, "margin: 0.1")
    result = ran(folder, "--until-decided", wrong=range(0, 400, 2))
    assert result.exit_code == 1
    assert report()["run"]["part"]["samples"] < 200
    assert "the drop is larger than 0.1" in margin_check()["because"]


def test_margin_that_is_never_settled_runs_everything_and_is_open(folder):
    ready(folder, "margin: 0.02", count=60)
    result = ran(folder, "--until-decided")
    assert result.exit_code == 4
    found = report()
    assert (found["run"]["part"], found["totals"]["samples"]) == (None, 60)
    assert "60 samples, looked at one by one, did not settle a drop of 0.02" in margin_check()["because"]


def test_same_seed_draws_the_same_samples(folder):
    ready(folder, "margin: 0.1", count=300)
    ran(folder, "--until-decided")
    first = [sample["id"] for sample in report()["samples"]]
    ran(folder, "--until-decided")
    assert [sample["id"] for sample in report()["samples"]] == first
    assert first != sorted(first)


def test_cohorts_and_several_metrics_are_all_settled(folder):
    ready(folder, 'margin: 0.2, cohorts: "*"', metrics="exact-match, token-f1")
    assert ran(folder, "--until-decided").exit_code == 0
    for name in ("pass_rate", "metrics.token-f1", "cohorts.policy.metrics.exact-match"):
        assert margin_check(name)["status"] == "pass"
    assert report()["run"]["part"]["samples"] < 200


def test_clusters_are_drawn_whole(folder):
    ready(folder, "margin: 0.3, cluster: document")
    assert ran(folder, "--until-decided").exit_code == 0
    found = report()
    assert found["totals"]["samples"] % 5 == 0
    assert found["totals"]["samples"] < 200


def test_run_that_is_not_stored_stops_early_too(folder):
    ready(folder, "margin: 0.1")
    called("report", "latest", "--json", "report.json")
    written(folder, {"suite.yml": suite("margin: 0.1, compare: report.json")})
    result = ran(folder, "--until-decided", "--no-store", "--json", "-")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["run"]["part"]["samples"] == found["totals"]["samples"] < 400
    assert len(found["executions"]) == found["totals"]["samples"]


def test_it_cannot_become_a_baseline(folder):
    ready(folder, "margin: 0.1")
    result = ran(folder, "--until-decided", "--promote-baseline")
    assert result.exit_code == 2
    assert "it ran a part of its dataset" in result.stderr


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("max_newly_failing: 3", "a run needs a margin to decide"),
        ("margin: 0.1", "a run needs a baseline: there is no baseline yet"),
    ],
)
def test_without_a_margin_or_a_baseline_it_is_bad_input_before_anything_runs(folder, gate, said):
    written(folder, {"golden.yml": dataset(20), "until_app.py": APP, "wrong.json": "[]", "suite.yml": suite(gate)})
    result = called("run", "suite.yml", "--until-decided")
    assert (result.exit_code, said in result.stderr) == (2, True)
    assert "No run" in called("runs").stdout


def test_store_is_sound_after_samples_were_left_out(folder):
    ready(folder, "margin: 0.1")
    ran(folder, "--until-decided")
    assert "nothing is damaged" in called("store", "verify").stdout
    assert called("compare", "baseline", "latest").exit_code == 0
    assert called("store", "export", "latest", "--to", "run.jsonl").exit_code == 0


def test_killed_run_goes_on_in_the_same_order_and_decides_the_same(folder):
    ready(folder, "margin: 0.1")
    whole = ran(folder, "--until-decided")
    assert whole.exit_code == 0
    expected = [(sample["id"], sample["metrics"]) for sample in report()["samples"]]
    written(folder, {"hang": "", "calls.txt": ""})
    process = started(folder, "run", "suite.yml", "--quiet", "--durable", "--until-decided")
    deadline = time.monotonic() + 180
    while sum(number.endswith("7") for number in (folder / "calls.txt").read_text().split()) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = len((folder / "calls.txt").read_text().split())
    written(folder, {"hang": None})
    result = ran(folder, "--resume")
    assert (result.exit_code, "Resuming the run" in result.stderr) == (0, True)
    assert [(sample["id"], sample["metrics"]) for sample in report()["samples"]] == expected
    assert before > 4


def test_decided_run_has_nothing_left_when_it_is_resumed_with_or_without_the_flag(folder):
    ready(folder, "margin: 0.1")
    first = ran(folder, "--until-decided", "--json", "first.json")
    assert first.exit_code == 0
    for flags in (("--resume",), ("--resume", "latest"), ("--resume", "--until-decided")):
        again = ran(folder, *flags, "--json", "again.json")
        assert again.exit_code == 0
        assert "it was decided after 51 of 400 samples; this is its report" in again.stderr
        assert (folder / "again.json").read_bytes() == (folder / "first.json").read_bytes()
