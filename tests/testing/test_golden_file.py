"""Golden files are compared byte for byte."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import deemster as dm
from deemster.testing import FrozenClock, compare_with_golden


def report(answer: str = "a") -> dm.Report:
    return dm.evaluate(
        [{"id": "q1", "input": {}, "expected_output": "a"}],
        outputs={"q1": answer},
        metrics=["exact-match"],
        settings=dm.EvaluationSettings(clock=FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))),
    )


def test_report_is_the_same_each_time(tmp_path):
    file = tmp_path / "golden" / "report.json"
    compare_with_golden(report(), file, refresh=True)
    compare_with_golden(report(), file)
    assert dm.load_report(file).totals.samples == 1


def test_difference_is_shown(tmp_path):
    file = tmp_path / "report.json"
    compare_with_golden(report(), file, refresh=True)
    with pytest.raises(AssertionError, match=r'report.json differs(.|\n)*-.*"n_passed": 1(.|\n)*\+.*"n_passed": 0'):
        compare_with_golden(report("b"), file)


def test_other_line_ends_are_a_difference(tmp_path):
    file = tmp_path / "text.txt"
    file.write_bytes(b"a\r\n")
    with pytest.raises(AssertionError, match="line ends"):
        compare_with_golden("a\n", file)


def test_missing_file_says_how_to_write_it(tmp_path):
    with pytest.raises(AssertionError, match="refresh=True"):
        compare_with_golden(b"a", tmp_path / "nothing.txt")
