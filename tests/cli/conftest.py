from __future__ import annotations

import pytest

from tests.cli.workspace import FILES, called, written


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A folder with a suite that runs, as the current one; call it with files to change something."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path, FILES)

    def change(**files):
        written(tmp_path, {name.replace("_", ".", 1): content for name, content in files.items()})
        return tmp_path

    return change


@pytest.fixture
def ran(world):
    """A folder in which a suite has run once."""
    assert called("run", "suite.yml", "--quiet").exit_code == 0
    return world()
