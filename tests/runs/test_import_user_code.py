"""User code by its import path."""

from __future__ import annotations

import sys

import pytest

from deemster.errors import ConfigurationError
from deemster.runs.import_user_code import import_object


def found(path, folder=None):
    return import_object(path, called="The target", search=folder)


def test_a_path_names_a_module_and_what_is_in_it():
    import json

    assert found("json:loads") is json.loads
    assert found("json:JSONDecoder.decode") is json.JSONDecoder.decode


@pytest.mark.parametrize("path", ["answer", ":answer", "app:", "", ":"])
def test_what_is_no_path_says_what_one_looks_like(path):
    with pytest.raises(ConfigurationError, match="The target is an import path such as `app:answer`"):
        found(path)


@pytest.mark.parametrize("path", ["json:load.nothing", "math:pi.nothing", "json:nothing"])
def test_a_name_that_is_not_there_is_a_clear_error(path):
    with pytest.raises(ConfigurationError, match="has no `nothing`"):
        found(path)


@pytest.mark.parametrize("path", ["..app:x", "app.:x", "no such:x", "a/b:x", "\x00:x"])
def test_a_module_name_that_cannot_be_one_is_a_clear_error(path):
    with pytest.raises(ConfigurationError, match="cannot be imported"):
        found(path)


def test_a_folder_is_searched_first_and_leaves_the_path_as_it_was(tmp_path):
    (tmp_path / "importing_app.py").write_text("def answer(asked): return 'here'\n")
    before = list(sys.path)
    assert found("importing_app:answer", tmp_path)({}) == "here"
    assert sys.path == before


def test_two_folders_with_one_module_name_do_not_stand_in_for_each_other(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "importing_same.py").write_text(f"NAME = {name!r}\n")
    assert found("importing_same:NAME", tmp_path / "one") == "one"
    assert found("importing_same:NAME", tmp_path / "two") == "two"
    assert found("importing_same:NAME", tmp_path / "one") == "one"


def test_a_module_may_import_its_neighbours(tmp_path):
    (tmp_path / "importing_neighbour.py").write_text("WORD = 'next door'\n")
    (tmp_path / "importing_house.py").write_text("from importing_neighbour import WORD\n")
    assert found("importing_house:WORD", tmp_path) == "next door"


def test_a_module_that_fails_is_told_with_what_it_raised(tmp_path):
    (tmp_path / "importing_broken.py").write_text("raise RuntimeError('not today')\n")
    with pytest.raises(ConfigurationError, match="RuntimeError: not today"):
        found("importing_broken:answer", tmp_path)


def test_a_module_that_cannot_be_parsed_is_told_as_such(tmp_path):
    (tmp_path / "importing_syntax.py").write_text("def answer(:\n")
    with pytest.raises(ConfigurationError, match="SyntaxError"):
        found("importing_syntax:answer", tmp_path)
