"""A report with something of everything in it, byte for byte in every format."""

from __future__ import annotations

import pytest

from deemster.comparison import report_without_text
from tests.builders.report_formats import FORMATS
from tests.report.runs import full_report, quotes_of

NAMES = {"json": "run.json", "md": "run.md", "csv": "run.csv", "html": "run.html", "junit": "run.xml"}


@pytest.mark.parametrize("flavour", NAMES)
def test_report_matches_golden_file(flavour, golden):
    golden(f"report/{NAMES[flavour]}", b"".join(FORMATS[flavour](full_report())))


def test_github_summary_matches_golden_file(golden):
    golden("report/github.md", b"".join(FORMATS["github"](full_report())))


def test_publish_safe_report_matches_golden_file(golden):
    golden("report/safe.json", report_without_text(full_report(), quotes=quotes_of).to_json())
