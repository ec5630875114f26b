"""`deemster demo`: what it shows is what the commands that it names show, and a page opens only before a person."""

from __future__ import annotations

import math
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deemster.cli.demo import PAGE
from deemster.comparison import load_comparison
from tests.cli.workspace import called


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def steps(said: str) -> list[str]:
    """The commands that the demo says to type next, and where."""
    lines = said.partition("Next:\n")[2].splitlines()
    return [line.split("   ")[0].strip() for line in lines]


def test_demo_fits_one_screen_and_says_which_version_is_worse(folder):
    shown = called("demo")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "Gate: pass" in shown.stdout
    assert "Gate: fail" in shown.stdout
    page = (folder / "deemster-demo" / PAGE).read_text(encoding="utf-8")
    assert "return-window" in page
    assert "https://" not in page


def test_numbers_of_the_demo_are_those_of_the_command_that_it_shows(folder, monkeypatch):
    said = called("demo").stdout
    monkeypatch.chdir(folder / "deemster-demo")
    compared = called("compare", "before", "after", "--to", "comparison.json")
    assert compared.exit_code == 0
    assert load_comparison("comparison.json").verdict in " ".join(said.split())


def test_every_next_step_can_be_typed(folder, monkeypatch):
    first, *commands = steps(called("demo", "there").stdout)
    assert first == "cd there"
    monkeypatch.chdir(folder / "there")
    for command in commands:
        done = called(*command.replace("~", str(folder)).split()[1:])
        assert done.exit_code == 0, command + done.stderr


@pytest.mark.parametrize("is_active", [True, False])
def test_environment_of_a_clone_is_activated_before_anything_else(is_active, folder, monkeypatch):
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "activate").touch()
    monkeypatch.setattr(sys, "prefix", str(folder / ".venv"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    if is_active:
        monkeypatch.setenv("VIRTUAL_ENV", str(folder / ".venv"))

    first, *others = steps(called("demo").stdout)
    assert (first == "source .venv/bin/activate") is not is_active
    assert "deemster init ~/my-suite" in others


def test_second_demo_runs_in_the_same_folder(folder):
    first, second = called("demo"), called("demo")
    assert second.exit_code == 0
    assert second.stdout == first.stdout


def test_file_of_the_user_stays_as_it_is(folder):
    Path("deemster-demo").mkdir()
    Path("deemster-demo/suite.yml").write_text("name: mine\n", encoding="utf-8")
    refused = called("demo")
    assert refused.exit_code == 2
    assert "deemster demo DIRECTORY" in refused.stderr
    assert [path.name for path in Path("deemster-demo").iterdir()] == ["suite.yml"]
    assert Path("deemster-demo/suite.yml").read_text(encoding="utf-8") == "name: mine\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere another program opens a page")
@pytest.mark.parametrize(("on_terminal", "screen"), [(True, ":0"), (True, None), (False, ":0")])
def test_page_opens_only_on_a_terminal_with_a_screen(on_terminal, screen, folder):
    opener = folder / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(f'#!/bin/sh\necho "$1" > {folder}/opened\n', encoding="utf-8")
    opener.chmod(0o755)
    variables = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    variables["PATH"] = f"{opener.parent}{os.pathsep}{variables['PATH']}"
    variables |= {} if screen is None else {"DISPLAY": screen}

    outer, inner = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "deemster", "demo"],
        cwd=folder,
        env=variables,
        stdout=inner if on_terminal else subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    os.close(inner)
    said = read_all(outer) if on_terminal else done.communicate()[0].decode()
    assert done.wait() == 0
    os.close(outer)

    opens = on_terminal and screen is not None
    assert ("opened in your browser" in said) == opens
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said)
    assert sum(math.ceil(len(line) / 80) or 1 for line in plain.splitlines()) <= 40
    if opens:
        assert (folder / "opened").read_text(encoding="utf-8").strip() == str(folder / "deemster-demo" / PAGE)
    else:
        assert not (folder / "opened").exists()


def read_all(terminal: int) -> str:
    """What a process printed on a terminal, until it ended."""
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            return b"".join(pieces).decode()
        if not piece:
            return b"".join(pieces).decode()
        pieces.append(piece)
