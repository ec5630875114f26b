from pathlib import Path

import pytest

from tests.cli.test_compare import runs
from tests.cli.workspace import called

__all__ = ["runs"]


def test_brief_of_a_stored_run(runs, golden):
    done = called("brief", "now", "--against", "before")
    assert (done.exit_code, done.stderr) == (0, "")
    golden("cli/brief.md", done.stdout)


def test_brief_compares_with_the_baseline_of_the_suite(runs):
    assert "## Since the baseline" not in called("brief", "now").stdout
    assert called("baseline", "promote", "before").exit_code == 0
    assert "## Since the baseline `before`" in called("brief", "now").stdout
    assert "## Since the baseline" not in called("brief", "before").stdout


def test_brief_of_files(runs):
    assert called("brief", "now.json").stdout.startswith("# Brief: `refunds`, run ")
    assert "## Since the baseline" in called("brief", "now.json", "--against", "before.json").stdout
    assert called("compare", "before", "now", "--to", "c.json").exit_code == 0
    assert "2 samples got worse" in called("brief", "c.json").stdout


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("now", "--max-chars", "10"), "A brief needs at least 1,000 characters, not 10."),
        (("nothing",), "nothing"),
        (("golden.json",), "golden.json"),
        (("c.json", "--against", "before"), "leave out `--against`"),
    ],
)
def test_what_has_no_brief_is_refused(argv, message, runs):
    called("compare", "before", "now", "--to", "c.json")
    Path("golden.json").write_text('{"schema_version": "deemster.dataset.v1"}', encoding="utf-8")
    done = called("brief", *argv)
    assert done.exit_code == 2
    assert message in done.stderr


def test_brief_is_bounded_and_redacted(runs):
    text = called("brief", "now", "--max-chars", "1200").stdout
    assert len(text) <= 1200
    safe = called("brief", "now", "--against", "before", "--without-text").stdout
    assert "It takes" not in safe
    assert "How many days" not in safe
