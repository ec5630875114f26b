"""A store of each kind: an SQLite file, and a database of a real PostgreSQL."""

from __future__ import annotations

import pytest

from deemster.store import open_store


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where an empty store can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "folder" / "runs.db")
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def store(place):
    """An open, empty store."""
    with open_store(place) as held:
        yield held
