"""`deemster store`: runs that move, room that is made, damage that is found."""

from __future__ import annotations

import json

import pytest

from deemster.store import open_store
from tests.cli.workspace import called
from tests.store.make_run_files import resealed, rest
from tests.store.make_runs import written


@pytest.fixture
def old(folder):
    """A store with runs of two suites, of the first days of 2026."""
    with open_store() as store:
        for number in range(4):
            day = f"2026-01-0{number + 1}T10:00:00.000Z"
            rest(store, written(store, number, suite="ab"[number % 2], started_at=day))
    return folder


def ids():
    return [run["id"] for run in json.loads(called("show", "--to", "-").stdout)]


@pytest.mark.parametrize("command", ["check", "rm", "verify"])
def test_help_matches_golden_file(command, golden):
    result = called("store", command, "--help", COLUMNS="100", TERMINAL_WIDTH="100")
    assert result.exit_code == 0
    golden(f"cli/store-{command}.txt", result.stdout)


def test_store_path_is_absolute_without_password(folder):
    assert called("store").stdout == f"{folder}/.deemster/runs.db\n"
    assert called("store", "--store", "x/y.db").stdout == f"{folder}/x/y.db\n"
    shown = called("store", DEEMSTER_STORE="postgresql://ann:s3cret@db.example:5433/evals?sslmode=require")
    assert shown.stdout == "postgresql://ann@db.example:5433/evals\n"
    assert list(folder.iterdir()) == []


def test_moved_run_gives_same_report_bytes(ran, postgres_url):
    assert called("export", "latest", "--to", "run.jsonl").stderr == "wrote 1 run to run.jsonl\n"
    taken = called("import", "run.jsonl", "--store", "other.db")
    assert (taken.exit_code, taken.stdout) == (0, f"{ids()[0]}: taken in, 2 samples\n")
    called("import", "run.jsonl", "--store", postgres_url)
    called("export", "latest", "--to", "back.jsonl", "--store", postgres_url)
    assert (ran / "back.jsonl").read_bytes() == (ran / "run.jsonl").read_bytes()
    for form in ("json", "md", "csv", "html", "junit"):
        reports = [
            called("show", "latest", "--to", f"{form}:-", "--store", store)
            for store in (".deemster/runs.db", "other.db", postgres_url)
        ]
        assert [report.exit_code for report in reports] == [0, 0, 0]
        assert len({report.stdout for report in reports}) == 1
        assert len(reports[0].stdout) > 100


def test_import_of_existing_run_is_reported(ran):
    called("export", "--all", "--to", "run.jsonl")
    result = called("import", "run.jsonl")
    assert (result.exit_code, result.stdout) == (0, f"{ids()[0]}: was here already\n")


def test_validate_accepts_run_file(ran):
    called("export", "--all", "--to", "run.jsonl")
    assert called("check", "run.jsonl").stdout == "run.jsonl: run file, 1 run, 2 samples\n"
    (ran / "run.jsonl").write_bytes((ran / "run.jsonl").read_bytes().replace(b"ten euros", b"six euros"))
    result = called("check", "run.jsonl")
    assert result.exit_code == 2
    assert "The check sum does not fit: the lines of this run are not those that were written." in result.stderr


def test_every_run_is_exported_in_the_order_they_began(old):
    called("export", "--all", "--to", "all.jsonl")
    heads = [json.loads(line) for line in (old / "all.jsonl").read_bytes().splitlines()]
    assert [line["id"] for line in heads if line.get("line") == "run"] == ["run-0", "run-1", "run-2", "run-3"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("rm", "--until", "soon"), "`soon` is no moment: give 2026-01-31, 2026-01-31T18:30, or an age: 30d."),
        (("rm", "run-0", "--until", "30d"), "Name each RUN, or choose by flags; not both."),
        (("rm", "run-0", "run-9", "--yes"), "The store holds no run `run-9`."),
        (("rm", "--keep", "-1"), "-1 is not in the range x>=0."),
        (("check", "--store", "no.db"), "error: no.db: There is no store here."),
        (("check", "--store", "bad.jsonl"), "error: bad.jsonl: "),
        (("--store", "mysql://h/d"), "error: `mysql://` is no kind of store."),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(old, argv, said):
    (old / "bad.jsonl").write_bytes(b"\x00\xff" * 100)
    (old / "pq").mkdir()
    (old / "pq" / "runs.parquet").write_bytes(b"PAR1")
    result = called("store", *argv)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert not (old / "x.jsonl").exists()
    assert len(ids()) == 4


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--to", "x.jsonl"), "Say which runs go: RUN... or `--all`, one of the two."),
        (("run-0", "--all", "--to", "x.jsonl"), "Say which runs go: RUN... or `--all`, one of the two."),
        (("run-9", "--to", "x.jsonl"), "The store holds no run `run-9`."),
        (("run-0", "--to", "no/x.jsonl"), "error: no/x.jsonl: The file cannot be written: No such file"),
        (("run-0", "--to", "."), "The name does not say what is written."),
        (("run-0",), "Missing option '--to'"),
    ],
)
def test_export_that_cannot_be_made_is_one_message(old, argv, message):
    result = called("export", *argv)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not (old / "x.jsonl").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("no.jsonl",), "error: no.jsonl: There is no such file."),
        (("run.jsonl", "--name", "x"), "error: run.jsonl: A run file is taken in as it is: leave out the flags."),
        (("cut.jsonl",), "cut.jsonl"),
    ],
)
def test_file_that_cannot_be_taken_in_is_one_message(ran, argv, message):
    called("export", "--all", "--to", "run.jsonl")
    (ran / "cut.jsonl").write_bytes((ran / "run.jsonl").read_bytes()[:500])
    result = called("import", *argv, "--store", "other.db")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_parquet_export_says_it_cannot_be_imported(old):
    result = called("export", "--all", "--to", "tables.parquet")
    assert (result.exit_code, result.stderr) == (0, "wrote 4 runs to tables.parquet; no store imports Parquet\n")
    assert (old / "tables.parquet" / "marks.parquet").is_file()


def test_prune_lists_runs_and_asks(old, golden):
    result = called("store", "rm", "--keep", "1")
    assert result.exit_code == 2
    golden("cli/store-prune-asked.txt", result.stderr)
    assert len(ids()) == 4


def test_old_runs_are_pruned(old):
    # The tenth of January 2026, at noon.
    noon = "1768046400"
    result = called("store", "rm", "--until", "8d", "--yes", SOURCE_DATE_EPOCH=noon)
    assert result.exit_code == 0
    assert result.stderr.startswith("removed 2 runs and 0 sample contents that nothing used, ")
    assert ids() == ["run-3", "run-2"]
    result = called("store", "rm", "--keep", "0", "--status", "complete", "--yes")
    assert result.stderr.startswith("removed 2 runs and 3 sample contents that nothing used, ")
    assert ids() == []


def test_runs_between_two_days_are_removed(old):
    result = called("store", "rm", "--since", "2026-01-02", "--until", "2026-01-03", "--yes")
    assert result.exit_code == 0
    assert ids() == ["run-3", "run-0"]


def test_prune_selects_by_status(old):
    assert called("store", "rm", "--status", "incomplete", "--yes").stderr.startswith("removed 0 runs")
    assert len(ids()) == 4


def test_prune_without_flag_removes_no_run_and_does_not_ask(old):
    result = called("store", "rm")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("removed 0 runs and 0 sample contents that nothing used, ")


def test_check_of_sound_store_reports_no_damage(old):
    result = called("store", "check")
    assert (result.exit_code, result.stdout) == (0, ".deemster/runs.db: 4 runs, nothing is damaged.\n")


def test_check_of_damaged_store_is_exit_code_1(old):
    with open_store() as store, store.pool.write_transaction() as rows:
        rows.write("UPDATE outputs SET body = '{}' WHERE run = 2 AND position = 1")
        rows.write("UPDATE runs SET seed = '7' WHERE number = 3")
    result = called("store", "check")
    assert result.exit_code == 1
    assert result.stdout == (
        "The run 'run-2' is damaged (its facts do not fit their check sum).\n"
        "The run `run-1` is damaged: 1 execution of 3 cannot be read, the first at position 1, repetition 0.\n"
    )
    assert result.stderr == "2 damages found in .deemster/runs.db\n"


def test_newer_store_is_one_line_error(old):
    with open_store() as store, store.pool.write_transaction() as rows:
        rows.write("PRAGMA user_version = 99")
    for argv in (("store", "check"), ("show",), ("store", "rm")):
        result = called(*argv)
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
        assert "This store has schema 99" in result.stderr


def test_import_whose_facts_give_no_report_leaves_nothing_behind(ran):
    called("run", "suite.yml", "--quiet")
    called("export", "--all", "--to", "all.jsonl")
    lines = (ran / "all.jsonl").read_bytes().splitlines()
    at = [place for place, line in enumerate(lines) if line.startswith(b'{"line":"run"')][1]
    broken = {**json.loads(lines[at]), "facts": {"a": 1}}
    lines[at] = json.dumps(broken, separators=(",", ":")).encode()
    (ran / "all.jsonl").write_bytes(resealed(lines))
    result = called("import", "all.jsonl", "--store", "other.db")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "The stored report settings cannot be read" in result.stderr
    assert called("show", "--store", "other.db").stdout == "No run in other.db fits.\n"


def test_run_file_that_is_refused_leaves_no_store(folder):
    (folder / "broken.jsonl").write_text('{"schema_version":"deemster.run.v1","tool_version":"0.2.0","runs":1}\n{}\n')
    refused = called("import", "broken.jsonl", "--store", "new.db")
    assert (refused.exit_code, [path.name for path in folder.iterdir()]) == (2, ["broken.jsonl"])
