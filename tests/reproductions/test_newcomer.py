"""What the newcomer of November 2026 stumbled over on the first day, with the bot and the spreadsheet they brought."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.workspace import called, started, written

BROUGHT = Path(__file__).parent / "newcomer"
GOLDEN = """\
id;input.question;expected_output;tags
1;How does a return work?;You can return shoes within 30 days. They must be unworn.;policy
2;When do I get my refund?;We refund you within 5 working days.;policy
7;Do you sell tents?;No, we sell shoes.;range
8;Do you sell tents?;No, we only sell shoes.;range
"""
SUITE = """\
dataset: golden.csv
target: {{ python: "help_desk:answer" }}
metrics: [exact-match, token-f1, rouge-l]
gate: {{ max_unscored: {allowed} }}
"""
CRASH = "KeyError: 'tents' (help_desk.py:27)"


@pytest.fixture
def bot(tmp_path, monkeypatch):
    """A folder with the bot, its questions and a suite that allows so much to be unscored; the bot can be mended."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    shutil.copy(BROUGHT / "help_desk.py", tmp_path)

    def suite(allowed="0"):
        written(tmp_path, {"golden.csv": GOLDEN, "suite.yml": SUITE.format(allowed=allowed)})
        return tmp_path

    return suite


def test_crashes_are_counted_in_samples_with_what_was_raised_and_what_to_type(bot):
    bot()
    result = called("run", "suite.yml", "--quiet")
    assert result.exit_code == 3
    assert result.stderr.splitlines()[-3:] == [
        f"incomplete: 2 of 4 samples crashed: {CRASH}.",
        "What crashed, and where: deemster show latest --failed",
        "After a fix: deemster run suite.yml --only failed",
    ]
    assert "--resume" not in result.stderr + called("show", "latest").stderr


def test_commands_that_a_crash_names_show_it_and_run_it_again(bot):
    folder = bot()
    called("run", "suite.yml", "--quiet")
    shown = called("show", "latest", "--failed").stdout
    assert CRASH in shown
    assert "`7`, `8`" in shown

    again = called("run", "suite.yml", "--only", "failed", "--to", "again.csv", "--quiet")
    assert again.exit_code == 3
    assert {line.partition(",")[0] for line in (folder / "again.csv").read_text().splitlines()[1:]} == {"1", "7", "8"}


@pytest.mark.parametrize(
    ("allowed", "code", "says"),
    [
        ("2 samples", 0, f"6 of 12 scores are missing, which is allowed: {CRASH}."),
        ("1 sample", 3, f"incomplete: 2 of 4 samples crashed, above the 1 sample allowed: {CRASH}."),
        ("6", 0, f"6 of 12 scores are missing, which is allowed: {CRASH}."),
        (
            "2",
            3,
            f"incomplete: 2 of 4 samples crashed, which leaves 6 of 12 scores missing, above the 2 allowed: {CRASH}.",
        ),
    ],
)
def test_crashes_may_be_allowed_in_samples_whatever_the_number_of_metrics(bot, allowed, code, says):
    bot(allowed)
    result = called("run", "suite.yml", "--quiet")
    assert result.exit_code == code
    assert says in result.stderr.splitlines()


def test_interrupted_run_is_told_to_resume(bot):
    process = started(bot(), "run", "suite.yml", "--quiet", "--timeout", "0.000001")
    _, err = process.communicate(timeout=180)
    assert process.returncode == 3
    assert "To continue: deemster run suite.yml --resume" in err.splitlines()
