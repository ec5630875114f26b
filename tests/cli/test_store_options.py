"""The store that commands find by themselves: the nearest one above the suite, else above the current folder."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.cli.workspace import FILES, called, written


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with a suite in `evals/refunds`, as the current folder."""
    written(tmp_path, {f"evals/refunds/{name}": content for name, content in FILES.items()})
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stores(project):
    return sorted(str(path.relative_to(project)) for path in project.rglob("runs.db"))


def run_count():
    return len(called("show").stdout.splitlines()) - 1


def test_runs_do_not_scatter_over_the_folders_they_are_started_in(project, monkeypatch):
    assert called("run", "evals/refunds/suite.yml", "--quiet").exit_code == 0
    monkeypatch.chdir(project / "evals")
    assert called("run", "refunds/suite.yml", "--quiet").exit_code == 0
    monkeypatch.chdir(project / "evals" / "refunds")
    assert called("run", "suite.yml", "--quiet").exit_code == 0
    assert run_count() == 3
    assert stores(project) == [".deemster/runs.db"]
    assert called("store").stdout == f"{project}/.deemster/runs.db\n"


def test_store_above_the_suite_is_taken_before_the_one_above_the_current_folder(project, monkeypatch):
    elsewhere = project.parent / f"{project.name}-elsewhere"
    shutil.copytree(project / "evals", elsewhere / "evals")
    called("run", "evals/refunds/suite.yml", "--quiet")
    monkeypatch.chdir(elsewhere)
    called("run", "evals/refunds/suite.yml", "--quiet")
    done = called("run", f"{project}/evals/refunds/suite.yml", "--quiet", "--to", "evals/refunds/suite.yml/report.json")
    assert run_count() == 1
    assert done.exit_code == 2
    called("run", f"{project}/evals/refunds/suite.yml", "--quiet")
    monkeypatch.chdir(project)
    assert run_count() == 2


def test_search_ends_at_the_root_of_the_repository(project, monkeypatch):
    called("run", "evals/refunds/suite.yml", "--quiet")
    (project / "evals" / ".git").write_text("gitdir: elsewhere\n")
    monkeypatch.chdir(project / "evals" / "refunds")
    called("run", "suite.yml", "--quiet")
    assert stores(project) == [".deemster/runs.db", "evals/refunds/.deemster/runs.db"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has no user numbers")
def test_store_of_another_user_is_not_taken(project, monkeypatch):
    called("run", "evals/refunds/suite.yml", "--quiet")
    monkeypatch.chdir(project / "evals")
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    assert called("show").exit_code == 2


def test_named_store_is_taken_as_it_is(project, monkeypatch):
    called("run", "evals/refunds/suite.yml", "--quiet")
    monkeypatch.chdir(project / "evals")
    called("run", "refunds/suite.yml", "--quiet", "--store", "own.db")
    called("run", "refunds/suite.yml", "--quiet", DEEMSTER_STORE="second.db")
    assert stores(project) == [".deemster/runs.db"]
    assert (project / "evals" / "own.db").is_file()
    assert (project / "evals" / "second.db").is_file()


def test_commands_name_the_store_that_they_find(project, monkeypatch):
    called("run", "evals/refunds/suite.yml", "--quiet")
    monkeypatch.chdir(project / "evals")
    result = called("show", "nothing")
    assert result.stderr.startswith("error: ../.deemster/runs.db: The store holds no run `nothing`.")
