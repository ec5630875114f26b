"""The viewer over PostgreSQL answers as it does over SQLite."""

from __future__ import annotations

import pytest

from deemster.store import open_store
from tests.view.conftest import evaluate
from tests.view.viewer_client import running_viewer

# What differs between any two runs.
OWN = {"id", "started_at", "finished_at", "duration_s", "run"}


def without_own(value):
    """An answer without what differs between any two runs."""
    if isinstance(value, dict):
        return {name: without_own(each) for name, each in value.items() if name not in OWN or "row_hash" in value}
    return [without_own(each) for each in value] if isinstance(value, list) else value


@pytest.fixture
def clients(tmp_path, postgres_url):
    places = (tmp_path / "runs.db", postgres_url)
    for place in places:
        evaluate(place, name="only", gate={"min_macro_f1": 0.1})
    with (
        open_store(places[0]) as sqlite,
        open_store(places[1]) as postgres,
        running_viewer(sqlite, author="ada") as first,
        running_viewer(postgres, author="ada") as second,
    ):
        yield first, second


def test_postgresql_answers_as_sqlite_does(clients):
    paths = (
        "runs",
        "runs/only",
        "runs/only/samples?metric=exact-match&passed=no&sort=rouge-l&order=desc&columns=meta.author",
        "runs/only/samples?only=tag:odd&only=level=1&min_ms=50",
        "runs/only/samples?text=PERHAPS&in=output",
        "runs/only/progress",
        "labels/queue?run=only&n=6&seed=3",
    )
    for path in paths:
        sqlite, postgres = (without_own(client.get(path)) for client in clients)
        assert postgres == sqlite, path
    assert clients[1].get("runs/only/samples?text=PERHAPS&in=output")["matched"] == 6


def test_labels_are_stored_in_postgresql(clients):
    request = {"run": "only", "position": 9, "metric": "exact-match", "metrics": ["exact-match"], "verdict": "pass"}
    answers = [client.post("labels", {**request, "note": "néar\u2028 it"}) for client in clients]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[1].json["revealed"] == answers[0].json["revealed"]
    sample = "labels/sample?run=only&position=9&metric=exact-match"
    (label,) = clients[1].get(sample)["decided"]
    assert (label["author"], label["verdict"], label["note"]) == ("ada", "pass", "néar\u2028 it")
    assert clients[1].post("labels/undo", {"run": "only"}).json["undone"]["position"] == 9
    assert clients[1].get(sample)["decided"] == []
