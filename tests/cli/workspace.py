"""A folder with a small suite in it, and the command line called in process."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result

from deemster.cli import app

EPOCH = "1750000000"

SUITE = """\
name: refunds
dataset: golden.yml
target: { outputs: answers.yml }
metrics: [exact-match]
"""
GOLDEN = """\
name: support
samples:
  - id: window
    input: { question: How long? }
    expected_output: 30 days
    metadata: { tags: [policy] }
  - id: fee
    input: { question: What fee? }
    expected_output: none
"""
ANSWERS = """\
outputs:
  window: 30 days
  fee: ten euros
"""
FILES = {"suite.yml": SUITE, "golden.yml": GOLDEN, "answers.yml": ANSWERS}


def written(folder: Path, files: Mapping[str, str | bytes | None]) -> None:
    """Put files into a folder; None takes one away."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink(missing_ok=True)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_bytes(content.encode("utf-8", "surrogatepass"))


def called(*argv: str, **env: str | None) -> Result:
    """What `deemster ARGV` does in the current folder, without another process."""
    settings: dict[str, Any] = {"SOURCE_DATE_EPOCH": EPOCH, "NO_COLOR": None, **env}
    result = CliRunner().invoke(app, list(argv), env=settings, prog_name="deemster")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def report_of(*flags: str, codes: tuple[int, ...] = (0, 1, 3)) -> dict[str, Any]:
    """The report of a run of the suite in the current folder, as JSON."""
    result = called("run", "suite.yml", "--to", "-", *flags)
    assert result.exit_code in codes, result.stderr
    return json.loads(result.stdout)


def read_line(line: str) -> dict[str, Any]:
    """What a command reads from a line such as `deemster show latest`, without being called."""
    _, name, *words = shlex.split(line)
    command = app.get_command(click.Context(app), name)
    while isinstance(command, click.Group) and words:
        command = command.commands[words.pop(0)]
    assert command is not None
    # Groups read arguments as commands do; nothing is called.
    return command.make_context(name, words, help_option_names=["-h", "--help"]).params


def started(folder: Path, *argv: str, **options: Any) -> subprocess.Popen[str]:
    """Starts `deemster ARGV` as a process in a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "deemster", *argv],
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "COLUMNS": "120", **options.pop("env", {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
