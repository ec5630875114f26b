"""User code by its import path."""

from __future__ import annotations

import sys

import pytest

from deemster.errors import ConfigurationError
from deemster.metrics.import_user_code import import_object


def found(path, folder=None):
    return import_object(path, called="The target", search=folder)


def test_import_path_names_module_and_attribute():
    import json

    assert found("json:loads") is json.loads
    assert found("json:JSONDecoder.decode") is json.JSONDecoder.decode


@pytest.mark.parametrize("path", ["answer", ":answer", "app:", "", ":"])
def test_invalid_import_path_is_error_with_example(path):
    with pytest.raises(ConfigurationError, match="The target is an import path such as `app:answer`"):
        found(path)


@pytest.mark.parametrize("path", ["json:load.nothing", "math:pi.nothing", "json:nothing"])
def test_missing_attribute_is_error(path):
    with pytest.raises(ConfigurationError, match="has no `nothing`"):
        found(path)


@pytest.mark.parametrize("path", ["..app:x", "app.:x", "no such:x", "a/b:x", "\x00:x"])
def test_invalid_module_name_is_error(path):
    with pytest.raises(ConfigurationError, match="cannot be imported"):
        found(path)


def test_folder_is_searched_first_and_sys_path_is_restored(tmp_path):
    (tmp_path / "importing_app.py").write_text("def answer(asked): return 'here'\n")
    before = list(sys.path)
    assert found("importing_app:answer", tmp_path)({}) == "here"
    assert sys.path == before


def test_same_module_name_in_two_folders_gives_two_modules(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "importing_same.py").write_text(f"NAME = {name!r}\n")
    assert found("importing_same:NAME", tmp_path / "one") == "one"
    assert found("importing_same:NAME", tmp_path / "two") == "two"
    assert found("importing_same:NAME", tmp_path / "one") == "one"


def test_module_may_import_its_neighbours(tmp_path):
    (tmp_path / "importing_neighbour.py").write_text("WORD = 'next door'\n")
    (tmp_path / "importing_house.py").write_text("from importing_neighbour import WORD\n")
    assert found("importing_house:WORD", tmp_path) == "next door"


def test_failing_module_is_error_with_its_exception(tmp_path):
    (tmp_path / "importing_broken.py").write_text("raise RuntimeError('not today')\n")
    with pytest.raises(ConfigurationError, match="RuntimeError: not today"):
        found("importing_broken:answer", tmp_path)


def test_module_with_syntax_error_is_error(tmp_path):
    (tmp_path / "importing_syntax.py").write_text("def answer(:\n")
    with pytest.raises(ConfigurationError, match="SyntaxError"):
        found("importing_syntax:answer", tmp_path)


def test_plug_in_is_imported_by_its_name(tmp_path, monkeypatch):
    facts = tmp_path / "acme-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n", encoding="utf-8")
    points = "[deemster.targets]\nacme = acme_bot:answer\nbroken = no_such_module:answer\n"
    (facts / "entry_points.txt").write_text(points, encoding="utf-8")
    (tmp_path / "acme_bot.py").write_text("def answer(input):\n    return 'x'\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert import_object("acme", called="The target", group="deemster.targets")({}) == "x"
    with pytest.raises(ConfigurationError, match=r"or the name of a plug-in, not `acm`.*`acme`"):
        import_object("acm", called="The target", group="deemster.targets")
    with pytest.raises(ConfigurationError, match="The plug-in `broken`, `no_such_module:answer` cannot be imported"):
        import_object("broken", called="The target", group="deemster.targets")
