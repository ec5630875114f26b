from pathlib import Path

import pytest

from tests.cli.test_compare import runs
from tests.cli.workspace import called

__all__ = ["runs"]


def test_brief_of_a_stored_run(runs, golden):
    done = called("show", "--failed", "now", "--against", "before")
    assert (done.exit_code, done.stderr) == (0, "")
    golden("cli/brief.md", done.stdout)


def test_brief_compares_with_the_baseline_of_the_suite(runs):
    assert "## Since the baseline" not in called("show", "--failed", "now").stdout
    assert called("baseline", "before").exit_code == 0
    assert "## Since the baseline `before`" in called("show", "--failed", "now").stdout
    assert "## Since the baseline" not in called("show", "--failed", "before").stdout


def test_brief_of_files(runs):
    assert called("show", "--failed", "now.json").stdout.startswith("# Brief: `refunds`, run ")
    assert "## Since the baseline" in called("show", "--failed", "now.json", "--against", "before.json").stdout
    assert called("compare", "before", "now", "--to", "c.json").exit_code == 0
    assert "2 samples got worse" in called("show", "--failed", "c.json").stdout


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("nothing",), "nothing"),
        (("golden.json",), "golden.json"),
        (("c.json", "--against", "before"), "leave out `--against`"),
    ],
)
def test_what_has_no_brief_is_refused(argv, message, runs):
    called("compare", "before", "now", "--to", "c.json")
    Path("golden.json").write_text('{"schema_version": "deemster.dataset.v1"}', encoding="utf-8")
    done = called("show", "--failed", *argv)
    assert done.exit_code == 2
    assert message in done.stderr


def test_brief_is_redacted(runs):
    safe = called("show", "--failed", "now", "--against", "before", "--without-text").stdout
    assert "It takes" not in safe
    assert "How many days" not in safe


def test_brief_is_written_beside_a_report_and_alone(runs):
    assert called("show", "now", "--failed", "--to", "brief.md").stdout == ""
    printed = called("show", "now", "--failed").stdout
    # On a stream nothing is a command for the agent of a CI service.
    assert Path("brief.md").read_text(encoding="utf-8") == printed.replace("#\\x23", "##")
    assert called("run", "suite.yml", "--quiet", "--to", "brief:x.md").exit_code == 0
    assert Path("x.md").read_text(encoding="utf-8").startswith("# Brief: ")
