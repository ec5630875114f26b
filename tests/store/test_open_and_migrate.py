"""Stores of every earlier schema open with their content; many processes may create one store."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deemster.records import Exchange, Execution, Message, MetricScore, Output, TargetFailure, Unscored
from deemster.store import open_and_migrate as migration
from deemster.store import open_store
from tests.store.make_runs import BASELINE, LABEL, MARK, graded_item, sample, samples, written

DATABASES = Path(__file__).parent / "databases"
SCHEMAS = [file.stem for file in sorted(migration._FOLDER.glob("*.sql"))]


@pytest.fixture(params=["sqlite", "postgres"])
def earlier(request, tmp_path):
    """Makes a store of an earlier schema and returns its path."""

    def make(version):
        if request.param == "sqlite":
            return shutil.copy(DATABASES / f"v{version}.db", tmp_path / "runs.db")
        import psycopg

        url = request.getfixturevalue("postgres_url")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute((DATABASES / f"v{version}.sql").read_text(encoding="utf-8"))
        return url

    return make


def test_every_schema_has_its_stored_databases():
    assert (
        [f"{int(name):04d}" for name in SCHEMAS]
        == SCHEMAS
        == [f"{number:04d}" for number in range(1, len(SCHEMAS) + 1)]
    )
    for number in range(1, len(SCHEMAS) + 1):
        assert (DATABASES / f"v{number}.db").is_file()
        assert (DATABASES / f"v{number}.sql").is_file()


@pytest.mark.parametrize("version", range(1, len(SCHEMAS) + 1))
def test_store_of_earlier_schema_opens_with_all_runs(earlier, version):
    with open_store(earlier(version), create=False) as store:
        rows = store.runs()
        assert [(row.id, row.kind, row.status, row.done) for row in rows] == [
            ("run-3", "recording", "running", 1),
            ("run-2", "grading", "running", 1),
            ("run-1", "run", "incomplete", 2),
            ("run-0", "run", "complete", 3),
        ]
        assert (rows[3].suite, rows[3].seed, rows[3].facts) == ("support-bot", 2**70, {"gate": None, "name": "naïve"})
        assert [card.identity for card in store.cards("run-0")] == ["exact-match/1", "b/2"]
        newer = MetricScore(0.25, {"k": "v"})
        shown = [each.marks for each in store.executions("run-0")]
        assert shown == [(MARK, newer), (MetricScore(1.0), newer), (MARK, newer)]
        assert [each.marks for each in store.executions("run-0", scoring=0, settled=False)] == [(MARK, MARK)] * 3
        assert list(store.samples("run-0")) == samples(3)
        failed, answered = store.executions("run-1")
        assert (failed.answer, failed.marks) == (TargetFailure("refused"), (Unscored("target_failed", "refused"),))
        assert (answered.answer.text, str(answered.answer.usage.cost_usd), answered.repetition) == ("é", "0.25", 1)
        assert list(store.output_times("run-1")) == [(0, None), (1, "2026-01-01T00:00:05.000Z")]
        assert list(store.executions("run-2")) == [
            Execution(0, "s0", 0, None if version < 7 else Output("x"), graded_item(0, votes=[]).marks)
        ]
        assert list(store.samples("run-3")) == [sample(0)]
        calls = [(7, b'{"id":7,"key":"AAEC","counted":[12,"0.5",0,"0"]}')]
        assert list(store.calls("run-1")) == ([] if version == 1 else calls)
        asked = Exchange(role="judge", messages=(Message("user", "Is it?"),), reply="No.")
        name = store.cards("run-1")[0].name
        assert store.prompts("run-1", 0) == ({} if version < 3 else {(0, name): (asked,)})
        assert [(row.run, row.suite, row.facts) for row in store.baselines()] == (
            [] if version < 4 else [("run-0", "support-bot", BASELINE)]
        )
        assert store.labels("run-0") == ([] if version < 6 else [LABEL])
        assert [row.id for row in store.runs(experiment="trial")] == ([] if version < 8 else ["run-1"])


@pytest.mark.parametrize("version", range(1, len(SCHEMAS) + 1))
def test_store_of_earlier_schema_accepts_new_runs(earlier, version):
    with open_store(earlier(version)) as store:
        assert written(store, 4) == store.run("latest").id


OPENING = "import sys\nfrom deemster.store import open_store\nopen_store(sys.argv[1]).close()\n"


def test_many_processes_may_create_one_store(place):
    processes = [
        subprocess.Popen([sys.executable, "-c", OPENING, place], stderr=subprocess.PIPE, text=True) for _ in range(6)
    ]
    assert [process.communicate()[1] for process in processes] == [""] * 6
    with open_store(place, create=False) as store:
        assert store.runs() == []


def test_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "migrations"
    shutil.copytree(migration._FOLDER, folder)
    path = shutil.copy(DATABASES / "v1.db", tmp_path / "runs.db")
    before = Path(path).read_bytes()
    further = folder / f"{len(SCHEMAS) + 1:04d}.sql"
    further.write_text("CREATE TABLE notes (id TEXT);\n\nALTER TABLE absent ADD COLUMN x TEXT;\n", encoding="utf-8")
    monkeypatch.setattr(migration, "_FOLDER", folder)
    with pytest.raises(ValueError, match="no such table: absent"):
        open_store(path)
    assert Path(path).read_bytes() == before
    further.write_text("CREATE TABLE notes (id TEXT);\n", encoding="utf-8")
    with open_store(path) as store, store.pool.read_transaction() as rows:
        assert rows.read("SELECT count(*) FROM notes") == [(0,)]
        assert rows.read("PRAGMA user_version") == [(len(SCHEMAS) + 1,)]
