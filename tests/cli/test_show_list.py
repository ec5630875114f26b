"""`deemster show`: lists runs, shows one, and removes runs."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from deemster.cli import app
from deemster.store import open_store
from tests.cli.workspace import called
from tests.store.make_run_files import graded, rest, rich
from tests.store.make_runs import begun, facts, written


@pytest.fixture
def many(folder):
    """A store with runs of several suites, days, kinds and endings."""
    with open_store() as store:
        rich(store)
        graded(store)
        for number, (suite, day) in enumerate([("a", "02-01"), ("b", "02-02"), ("a", "02-03")], start=2):
            rest(store, written(store, number, suite=suite, started_at=f"2026-{day}T10:00:00.000Z"))
    return folder


def listed(*argv):
    result = called("show", *argv)
    assert (result.exit_code, result.stderr) == (0, "")
    return [line.split()[0] for line in result.stdout.splitlines()[1:]]


def test_runs_are_listed_newest_first(many, golden):
    golden("cli/runs-list-80.txt", called("show").stdout)


@pytest.mark.parametrize(
    ("argv", "numbers"),
    [
        ((), [4, 3, 2, 1, 0]),
        (("--suite", "a"), [4, 2]),
        (("--suite", "A"), []),
        (("--since", "2026-02-02"), [4, 3]),
        (("--since", "2026-02-02T10:00:00.001Z"), [4]),
        (("--since", "2026-02-02T12:00+02:00"), [4, 3]),
        (("--until", "2026-02-02"), [3, 2, 1, 0]),
        (("--until", "2026-02-02T10:00"), [2, 1, 0]),
        (("--since", "2026-02-01", "--until", "2026-02-01"), [2]),
        (("--since", "1d"), [4, 3]),
        (("--since", "25h"), [4, 3]),
        (("--since", "0m"), [4]),
        (("--until", "1w"), [1, 0]),
    ],
)
def test_list_can_be_filtered(many, argv, numbers):
    # Three in the morning of 3 February 2026: the last run starts later that day.
    result = called("show", *argv, SOURCE_DATE_EPOCH="1770087600")
    assert result.exit_code == 0
    found = [line.split()[0] for line in result.stdout.splitlines()[1:]]
    assert found == [f"run-{number}" for number in numbers]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--since", "yesterday"), "`yesterday` is no moment: give 2026-01-31, 2026-01-31T18:30, or an age: 30d."),
        (("--since", "2026-02-30"), "`2026-02-30` is no moment"),
        (("--until", "9999-12-31"), "`9999-12-31` is no moment"),
        (("--since", "999999w"), "`999999w` is no moment"),
        (("--suite", "a", "latest"), "`--since`, `--until` and `--suite` choose from the list of runs: leave out RUN."),
        (("--failed",), "`--failed` is for one run: `deemster show RUN --failed`."),
        (("run-0", "--against", "run-1"), "`--against` is for `--failed`."),
        (("run-0", "--prompts"), "`--prompts` is for one sample: `deemster show RUN SAMPLE --prompts`."),
        (("run-0", "--failed", "--to", "x.html"), "What failed is written to `--to brief.md`"),
        (("--to", "x.html"), "The list of runs is written as JSON alone, not as html: name a RUN."),
        (("run-9",), "error: .deemster/runs.db: The store holds no run `run-9`. Did you mean `run-4`?"),
        (("run-",), "error: .deemster/runs.db: Several runs begin with `run-`:"),
        (("\x1b[31m",), "error: .deemster/runs.db: The store holds no run `\\x1b[31m`."),
        (("--store", "nowhere.db"), "error: nowhere.db: There is no store here."),
        (("latest", "--store", "mysql://h/d"), "error: `mysql://` is no kind of store."),
        (("--to", ".deemster/runs.db/place.json"), ".deemster/runs.db/place.json: The report cannot be written"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(many, argv, said):
    result = called("show", *argv)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert len(listed()) == 5


def test_list_as_json_has_every_fact(many):
    runs = json.loads(called("show", "--to", "-").stdout)
    assert [run["id"] for run in runs] == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    first = runs[-1]
    assert (first["seed"], first["repetitions"], first["done"], first["reason"]) == (2**70, 2, 6, "stopped")
    assert [[metric["name"] for metric in scoring["metrics"]] for scoring in first["scorings"]] == [
        ["exact-match", "rouge-l"],
        ["citation"],
    ]
    called("show", "--to", "runs.json", "--suite", "b")
    assert [run["id"] for run in json.loads((many / "runs.json").read_text())] == ["run-3"]


def test_grading_has_no_report_but_its_facts_and_what_shows_it(many):
    shown = called("show", "run-1")
    assert shown.exit_code == 0
    assert "kind      grading\n" in shown.stdout
    assert "`deemster grade DATASET --resume=run-1`" in shown.stderr


def test_unfinished_run_says_how_it_is_continued(world):
    suite = "name: refunds\ndataset: golden.yml\ntarget: { command: ['false'] }\nmetrics: [exact-match]\n"
    called("run", str(world(suite_yml=suite) / "suite.yml"), "--quiet")
    (run,) = json.loads(called("show", "--to", "-").stdout)
    assert f"To continue: deemster run SUITE --resume={run['id']}" in called("show", "latest").stderr


def test_run_in_progress_is_not_removed(folder):
    with open_store("runs.db") as store:
        begun(store)
        removed = called("store", "rm", "run-0", "--yes", "--store", "runs.db")
    assert removed.exit_code == 2
    assert "The run `run-0` cannot go: process " in removed.stderr
    assert listed("--store", "runs.db") == ["run-0"]


def test_killed_run_is_distinguished_from_running_one(folder):
    with open_store("runs.db") as store:
        begun(store)
        living = called("show", "--store", "runs.db").stdout
        with store.pool.write_transaction() as rows:
            rows.write("UPDATE runs SET owner_pid = ?, owner_start = ?", (2**22 + 1, None))
        killed = called("show", "--store", "runs.db").stdout
    assert ("stopped" in living, "running" in living) == (False, True)
    assert ("stopped" in killed, "running" in killed) == (True, False)


def test_hostile_names_reach_no_terminal(folder):
    hostile = "\x1b[31m\u202e::error::"
    with open_store() as store:
        run = facts(samples=0, kind="grading", suite=hostile, dataset=hostile, fingerprint=hostile)
        store.begin(run, [], cards=()).release()
    for argv in ((), ("latest",)):
        result = called("show", *argv)
        assert result.exit_code == 0
        assert "\x1b" not in result.stdout
        assert "\u202e" not in result.stdout


def test_runs_are_removed_after_confirmation(many):
    asked = called("store", "rm", "run-0", "run-1")
    assert asked.exit_code == 2
    assert "Nothing was removed: the question got no answer. `--yes` removes without asking." in asked.stderr
    assert "Remove 2 runs? [y/N]" in asked.stderr
    assert len(listed()) == 5
    done = called("store", "rm", "run-0", "run-1", "run-0", "--yes")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("removed 2 runs and ")
    assert listed() == ["run-4", "run-3", "run-2"]


def test_damaged_run_is_left_out_of_the_list_and_can_be_removed(many):
    with open_store() as store, store.pool.write_transaction() as rows:
        rows.write("UPDATE runs SET dataset = 'x' WHERE id = 'run-2'")
    result = called("show")
    assert result.exit_code == 0
    assert "run-2" not in result.stdout
    assert result.stderr.startswith("warning: The run 'run-2' is damaged")
    assert called("show", "run-2").exit_code == 3
    assert called("store", "rm", "run-2", "--yes").stderr.startswith("removed 1 run and ")
    assert called("show").stderr == ""


def test_store_may_be_named_by_the_environment_the_group_or_the_command(many):
    (many / ".deemster" / "runs.db").rename(many / "moved.db")
    assert called("show").exit_code == 2
    assert called("show", DEEMSTER_STORE="moved.db").exit_code == 0
    assert called("show", "run-1", "--store", "moved.db", DEEMSTER_STORE="nowhere.db").exit_code == 0
    assert called("store", "--store", "moved.db", "check", DEEMSTER_STORE="nowhere.db").exit_code == 0
    assert called("store", "--store", "nowhere.db", "check", "--store", "moved.db").exit_code == 0


def test_filter_without_matches_is_reported(many):
    assert called("show", "--suite", "none").stdout == "No run in .deemster/runs.db fits.\n"


@pytest.mark.parametrize(("answer", "left", "said"), [("y\n", 4, "removed 1 run"), ("n\n", 5, "Nothing was removed.")])
def test_runs_rm_follows_the_answer(many, answer, left, said):
    result = CliRunner().invoke(app, ["store", "rm", "run-0"], input=answer, prog_name="deemster")
    assert result.exit_code == 0
    assert said in result.stderr
    assert len(listed()) == left


@pytest.mark.parametrize("width", [60, 80])
def test_list_fits_its_terminal_and_names_the_columns_without_room(many, golden, monkeypatch, width):
    called("show")
    monkeypatch.setattr("deemster.cli._run_list.terminal_width", lambda: width)
    text = called("show").stdout
    golden(f"cli/runs-list-{width}.txt", text)
    assert max(map(len, text.splitlines())) <= width
