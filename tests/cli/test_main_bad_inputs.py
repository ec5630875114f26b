"""The catalogue of error messages. A person has read each, and a golden file keeps it."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.cli import bad_inputs as mistakes
from tests.cli.workspace import FILES, called, written

GROUPS = {
    "dataset": mistakes.DATASETS,
    "outputs": mistakes.OUTPUTS,
    "suite": mistakes.SUITES,
    "metric": mistakes.METRICS,
    "gate": mistakes.GATES,
    "flag": mistakes.FLAGS,
    "report": mistakes.REPORTS,
    "alignment": mistakes.ALIGNMENTS,
}
PLACED = re.compile(r"^(error:|      ) \S+\.\w+(:\d+)?(:\d+)?: ")


@pytest.mark.parametrize("group", GROUPS)
def test_bad_input_is_one_clear_message_and_exit_code_2(group, golden, tmp_path, monkeypatch):
    pages = []
    for number, mistake in enumerate(GROUPS[group]):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        written(folder, {**FILES, **mistake.files})
        result = called(*mistake.argv)
        assert (mistake.name, result.exit_code, result.stdout) == (mistake.name, 2, "")
        assert "Traceback" not in result.stderr, mistake.name
        assert str(tmp_path) not in result.stderr, mistake.name
        pages.append(f"## {mistake.name}\n$ deemster {shlex.join(mistake.argv)}\n{result.stderr}")
    golden(f"errors/{group}.txt", "\n".join(pages))


@pytest.mark.parametrize("group", ["dataset", "suite", "gate"])
def test_issue_in_file_has_line(group, tmp_path, monkeypatch):
    for number, mistake in enumerate(GROUPS[group]):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        written(folder, {**FILES, **mistake.files})
        lines = called(*mistake.argv).stderr.splitlines()
        assert all(PLACED.match(line) or "... and " in line for line in lines), (mistake.name, lines)


def test_bad_input_catalogue_has_forty_unique_cases():
    names = [(group, mistake.name) for group, cases in GROUPS.items() for mistake in cases]
    assert len(names) >= 40
    assert len(set(names)) == len(names)
