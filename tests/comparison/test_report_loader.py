"""Reports read back: the same bytes, and nothing hostile in them does harm."""

from __future__ import annotations

import json

import msgspec
import pytest

from deemster.comparison import load_report
from deemster.comparison.without_text import LEVELS
from deemster.errors import ReportError
from deemster.report.report_entries import PrivacyEntry
from tests.builders.report_formats import FORMATS
from tests.report.runs import full_report, small_report


@pytest.mark.parametrize("level", LEVELS)
def test_report_read_back_is_written_as_the_same_bytes(level, tmp_path):
    report = msgspec.structs.replace(full_report(), privacy=PrivacyEntry(level, ("messages",)))
    path = tmp_path / "run.json"
    path.write_text(report.to_json(), encoding="utf-8")
    assert load_report(path).to_json() == report.to_json()


@pytest.mark.parametrize("flavour", FORMATS)
def test_report_read_back_looks_the_same_in_every_format(flavour, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(full_report().to_json(), encoding="utf-8")
    assert b"".join(FORMATS[flavour](load_report(path))) == b"".join(FORMATS[flavour](full_report()))


def edited(tmp_path, edit):
    value = json.loads(full_report().to_json())
    edit(value)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


EDITS = {
    "an unknown key": lambda value: value.update(extra=1),
    "a missing list": lambda value: value.pop("failures"),
    "a text for a number": lambda value: value["totals"].update(samples="four"),
    "an unknown status": lambda value: value["run"].update(status="<b>"),
    "an unknown cause": lambda value: value["failures"][0].update(cause="::error::"),
    "an unknown gate status": lambda value: value["gate"]["checks"][0].update(status="<b>"),
    "an unknown privacy level": lambda value: value["privacy"].update(level="<b>"),
    "an unknown removal": lambda value: value["privacy"].update(removed=["<b>"]),
    "a metric without figures": lambda value: value["metrics"].pop("silent"),
    "a metric without a histogram": lambda value: value["histograms"].pop("silent"),
    "a histogram of nine bins": lambda value: value["histograms"]["silent"].pop(),
    "a cohort without a metric": lambda value: value["cohorts"][0]["metrics"].pop("silent"),
    "an execution too few": lambda value: value["executions"].pop(),
    "executions out of order": lambda value: value["executions"].reverse(),
    "a mark too few": lambda value: value["executions"][0]["marks"].pop("silent"),
    "a mark that is a list": lambda value: value["executions"][0]["marks"].update(silent=[]),
    "marks that are a list": lambda value: value["executions"][0].update(marks=[]),
    "samples that are a map": lambda value: value.update(samples={}),
    "an entry that is text": lambda value: value["samples"].append("x"),
}


@pytest.mark.parametrize("name", EDITS)
def test_damaged_report_is_error_with_its_path(name, tmp_path):
    path = edited(tmp_path, EDITS[name])
    with pytest.raises(ReportError) as caught:
        load_report(path)
    assert [fault.where for fault in caught.value.issues] == [str(path)]
    assert len(str(caught.value)) < 400


def test_hostile_text_in_gate_check_stays_text(tmp_path):
    def edit(value):
        value["gate"]["checks"][0].update(because="<img src=x> ![x](http://evil.example)", name="<b>")

    text = load_report(edited(tmp_path, edit)).to_markdown()
    assert "<img" not in text
    assert "![x]" not in text
    assert "<b>" not in text


def test_lists_of_a_report_can_be_read_any_number_of_times():
    report = small_report("a", "b")
    assert [entry.id for entry in report.samples] == [entry.id for entry in report.samples] == ["a", "b"]
    assert len(report.executions) == 2
