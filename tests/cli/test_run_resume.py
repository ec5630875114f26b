"""`run --resume`, `report RUN` and `rescore` on the command line."""

from __future__ import annotations

import json
import os
import signal

import pytest

from deemster.records import Execution, Output, SampleContent, SampleFacts, SampleLabels
from deemster.store import RunFacts, open_store
from deemster.text.destination import Destination
from tests.cli.workspace import SUITE, called, started, written

LIVE = SUITE.replace("outputs: answers.yml", "python: 'resumed_app:answer'") + "limits: { concurrency: 1 }\n"
APP = """\
from pathlib import Path

def answer(invocation):
    with open("calls", "a") as file:
        file.write(f"{invocation.id}\\n")
    if invocation.id == "fee" and not Path("fixed").exists():
        raise TimeoutError("no answer")
    return "30 days" if invocation.id == "window" else "none"
"""


@pytest.fixture
def live(world):
    folder = world(suite_yml=LIVE)
    written(folder, {"resumed_app.py": APP})
    return folder


def test_run_is_stored_and_shown_again_in_the_same_bytes(world):
    folder = world()
    assert called("run", "suite.yml", "--quiet", "--to", "run.json").exit_code == 0
    identifier = json.loads((folder / "run.json").read_text())["run"]["id"]
    for name in (identifier, identifier[:12], "latest"):
        assert called("show", name, "--to", "-").stdout == (folder / "run.json").read_text()
    assert (folder / ".deemster" / "runs.db").stat().st_mode & 0o777 == 0o600
    assert (folder / ".deemster").stat().st_mode & 0o777 == 0o700


def test_report_command_prints_same_report(world):
    world()
    assert called("show", "latest").exit_code == 2
    shown = called("run", "suite.yml").stdout
    assert called("show", "latest").stdout == shown


def test_no_store_leaves_nothing_behind(world):
    folder = world()
    assert called("run", "suite.yml", "--store", "none").exit_code == 0
    assert not (folder / ".deemster").exists()


def test_store_may_be_named_by_flag_or_environment(world):
    folder = world(suite_yml=f"durable: true\n{SUITE}")
    assert called("run", "suite.yml", "--store", "kept/a.db").exit_code == 0
    assert called("run", "suite.yml", DEEMSTER_STORE="kept/b.db").exit_code == 0
    assert {"a.db", "b.db"} <= {path.name for path in (folder / "kept").iterdir()}
    assert called("show", "latest", DEEMSTER_STORE="kept/a.db").exit_code == 0


def test_resume_retries_only_failed_sample(live):
    first = called("run", "suite.yml", "--quiet")
    assert first.exit_code == 3
    assert "After a fix: deemster run suite.yml --only failed\n" in first.stderr
    (live / "fixed").touch()
    second = called("run", "suite.yml", "--resume", "--quiet", "--to", "run.json")
    assert (second.exit_code, second.stdout) == (0, "")
    assert "1 of 2 done, trying 1 again.\n" in second.stderr
    assert (live / "calls").read_text().split() == ["window", "fee", "fee"]
    assert called("run", "suite.yml", "--store", "none", "--to", "-").stdout == (live / "run.json").read_text()


def test_resume_of_complete_run_shows_report_with_note(world):
    world()
    shown = called("run", "suite.yml").stdout
    again = called("run", "suite.yml", "--resume")
    assert (again.exit_code, again.stdout) == (0, shown)
    assert "Nothing is left to do of the run " in again.stderr


def test_permanent_unscored_mark_suggests_no_resume(world):
    rows = "[{id: window, input: {}, expected_output: {a: 1}}, {id: fee, input: {}, expected_output: a}]"
    world(golden_yml=f"name: d\nsamples: {rows}")
    world(answers_yml="outputs: {window: a, fee: a}")
    result = called("run", "suite.yml", "--quiet")
    assert result.exit_code == 3
    assert "--resume" not in result.stderr


def test_changed_target_is_error_or_mixed_with_allow_changed(live):
    called("run", "suite.yml", "--quiet")
    written(live, {"resumed_app.py": f"{APP}\n# another thought\n", "fixed": ""})
    refused = called("run", "suite.yml", "--resume", "--quiet")
    assert refused.exit_code == 2
    assert "cannot be resumed: the code of `resumed_app:answer` changed since it started.\n" in refused.stderr
    assert "continue with `--allow-changed`" in refused.stderr
    assert "target.source" not in refused.stderr
    mixed = called("run", "suite.yml", "--resume", "--allow-changed", "--quiet", "--to", "run.md")
    assert mixed.exit_code == 0
    assert "mixed: resumed with changes: target.source: was " in mixed.stderr
    assert "mixed" in (live / "run.md").read_text().splitlines()[2]
    assert called("show", "latest", "--to", "md:-").stdout == (live / "run.md").read_text()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--resume", "--store", "none"), "`--store none` stores none"),
        (("--allow-changed",), "`--allow-changed` is for `--resume`"),
        (("--timeout", "0"), "`--timeout` is a number of seconds above 0"),
        (("--resume=20200101",), "holds no run"),
        (("--resume", "20200101"), "If `20200101` is for `--resume`, write `--resume=20200101`."),
        (("--store", "golden.yml"), "golden.yml"),
        (("--store", "mysql://host/x"), "is no kind of store"),
    ],
)
def test_flags_that_cannot_be_used_are_bad_input(world, flags, told):
    world()
    result = called("run", "suite.yml", *flags)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_allow_changed_is_not_suggested_if_useless(live):
    called("run", "suite.yml", "--quiet")
    for permission in ((), ("--allow-changed",)):
        refused = called("run", "suite.yml", "--resume", "--metric", "token-f1", *permission)
        assert refused.exit_code == 2
        assert "Start a new run: not even `--allow-changed` mixes these." in refused.stderr
        assert "go on with" not in refused.stderr
        assert "`deemster run --outputs 2" in refused.stderr


def test_run_of_other_process_is_error_with_host_and_pid(live):
    called("run", "suite.yml", "--quiet")
    with open_store(live / ".deemster" / "runs.db") as store, store.lease(store.run("latest").id):
        result = called("run", "suite.yml", "--resume")
    assert result.exit_code == 2
    assert f"{os.getpid()}" in result.stderr


def test_unwritable_report_names_command_to_render_stored_run(world):
    folder = world()
    (folder / "out").mkdir()
    check = Destination.check

    def vanishing(self):
        check(self)
        (folder / "out").rmdir()
        (folder / "out").touch()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Destination, "check", vanishing)
        result = called("run", "suite.yml", "--quiet", "--to", "out/run.json", "--store", "kept.db")
    assert result.exit_code == 3
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("The run is stored.")]
    assert called(*line.partition(": deemster ")[2].split(), "--to", "-").exit_code == 0


def test_run_that_takes_too_long_stops_and_can_be_resumed(live):
    written(live, {"resumed_app.py": "import time\ndef answer(asked):\n    time.sleep(0.3)\n    return '30 days'\n"})
    process = started(live, "run", "suite.yml", "--timeout", "0.2", "--quiet")
    _, err = process.communicate(timeout=180)
    assert process.returncode == 3
    assert "were not computed (" in err
    assert "--resume" in err
    assert called("run", "suite.yml", "--resume", "--quiet").exit_code == 0


def test_interrupted_run_prints_resume_command_and_resumes(live):
    suite = LIVE.replace("resumed_app", "stopping_app")
    stopping = "import os, signal\ndef answer(asked):\n    os.kill(os.getpid(), signal.SIGINT)\n    return '30 days'\n"
    written(live, {"suite.yml": suite, "stopping_app.py": stopping})
    process = started(live, "run", "suite.yml", "--quiet")
    _, err = process.communicate(timeout=180)
    assert process.returncode == 3
    assert "To continue: deemster run suite.yml --resume\n" in err
    assert signal.SIGINT.name in err
    with open_store(live / ".deemster" / "runs.db") as store:
        row = store.run("latest")
    assert (row.status, row.done) == ("incomplete", 1)


def test_rescoring_adds_a_metric_and_prints_the_report(world):
    folder = world()
    called("run", "suite.yml", "--quiet")
    result = called("run", "--outputs", "latest", "--metric", "rouge-l", "--to", "run.json")
    assert result.exit_code == 0
    report = json.loads((folder / "run.json").read_text())
    assert report["metric_order"] == ["exact-match", "rouge-l"]
    assert "rouge-l" in result.stdout
    assert called("show", "latest", "--to", "-").stdout == (folder / "run.json").read_text()


def test_rescoring_takes_metrics_and_models_from_a_suite(world):
    world()
    called("run", "suite.yml", "--quiet")
    world(other_yml="metrics: [{token-f1: {name: overlap, threshold: 0.9}}, cosine-embedding]\n")
    result = called("run", "other.yml", "--outputs", "latest", "--to", "-")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["metric_order"] == ["exact-match", "overlap", "cosine-embedding"]
    assert report["metrics"]["overlap"]["threshold"] == 0.9


@pytest.mark.parametrize(
    ("suite", "argv", "metrics"),
    [
        ("metrics: [token-f1]\n", (), ["exact-match", "token-f1"]),
        ("metrics: [token-f1]\ntarget: {outputs: gone.yml}\n", (), ["exact-match", "token-f1"]),
        ("models: {judge: {client: 'judge:judge'}}\n", ("--metric", "llm-as-judge"), ["exact-match", "llm-as-judge"]),
        ("models: {judge: {client: 'judge:judge'}}\nmetrics: [llm-as-judge]\n", (), ["exact-match", "llm-as-judge"]),
    ],
)
def test_suite_for_rescore_needs_no_dataset(world, suite, argv, metrics):
    fake = "import deemster as dm\njudge = dm.models.FakeChat(lambda ask: {'reason': 'r', 'score': 1})\n"
    folder = world(judge_py=fake)
    called("run", "suite.yml", "--quiet")
    (folder / "golden.yml").unlink()
    world(other_yml=suite)
    result = called("run", "other.yml", "--outputs", "latest", *argv, "--to", "-")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["metric_order"] == metrics
    assert report["totals"]["unscored"] == 0


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("latest",), "Name at least one metric"),
        (("latest", "--metric", "rogue-l"), "Did you mean `rouge-l`?"),
        (("nothing", "--metric", "rouge-l"), "holds no run `nothing`"),
        (("latest", "--metric", "llm-as-judge"), "`judge`, which is not there"),
        (("latest", "missing.yml"), "missing.yml: There is no such file."),
    ],
)
def test_unsuitable_run_for_rescore_is_bad_input(world, argv, told):
    world()
    called("run", "suite.yml", "--quiet")
    result = called("run", "--outputs", *argv)
    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("latest", "--repetitions", "2"), "`--repetitions` is for a run of its own; stored outputs are only scored"),
        (("dataset:live", "--to", "-"), "A report is of one run: name it in place of `dataset:NAME`."),
        (("dataset:dead",), "There is no recording of the dataset `dead`."),
    ],
)
def test_stored_outputs_are_only_scored_once_more(world, argv, told):
    recorded(world())
    result = called("run", "--outputs", *argv, "--metric", "contains")
    assert result.exit_code == 2
    assert told in result.stderr


def test_run_without_suite_takes_the_one_called_suite_yml(world):
    folder = world()
    assert called("run").exit_code == 0

    (folder / "suite.yml").rename(folder / "other.yml")
    result = called("run")
    assert (result.exit_code, "Suites here: `other.yml`" in result.stderr or "Did you mean" in result.stderr) == (
        2,
        True,
    )


def recorded(folder):
    """Two recordings of one output each."""
    with open_store(folder / ".deemster" / "runs.db") as store:
        for name in ("a", "b"):
            at = "2026-01-01T00:00:00.000Z"
            facts = RunFacts(
                id=name, kind="recording", dataset="live", fingerprint="", samples=0, started_at=at, tool_version="0"
            )
            with store.begin(facts, [], cards=[]), store.writer(name) as writer:
                writer.add_samples([SampleFacts(0, "r", "0" * 64, SampleLabels(), SampleContent(None, {"q": 1}))])
                writer.add([Execution(0, "r", 0, Output("short"), ())])


def test_rescore_by_dataset_scores_every_recording(world):
    recorded(world())
    result = called("run", "--outputs", "dataset:live", "--metric", "length-within(max=9)")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "b: 1 output scored\na: 1 output scored\n"
    assert json.loads(called("show", "a", "--to", "-").stdout)["metrics"]["length-within"]["n_passed"] == 1
