"""Reports of runs with an aggregator, byte for byte; those without one have no such section."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import jsonschema_rs
import pytest

import deemster as dm
from deemster.comparison import load_report
from deemster.errors import ReportError
from deemster.report.report_sections import report_sections
from tests.builders.printed import printed
from tests.builders.report_formats import FORMATS
from tests.report.runs import CLOCK, full_report, small_report

SCHEMAS = Path(__file__).parents[2] / "schemas"
NAMES = {
    "json": "aggregate.json",
    "md": "aggregate.md",
    "csv": "aggregate.csv",
    "html": "aggregate.html",
    "github": "aggregate.github.md",
}


class Padding:
    """The share of words beyond three: lower is better. It cannot read an empty answer."""

    # The golden reports, which do not change, hold this name.
    __module__ = "tests.report.test_aggregate"
    name = "padding"

    def score(self, sample, output):
        words = len(output.text.split())
        if not words:
            return dm.Unscored("bad_output", "There is no word in it.")
        return dm.MetricScore(max(0, words - 3) / words, threshold=0.25, higher_is_better=False)


@functools.cache
def aggregated():
    rows = (("window", "30 days", ["policy"]), ("fee", "none", ["policy", "money"]), ("hours", "9 to 5", []))
    return dm.evaluate(
        dm.Dataset([dm.Sample(name, {}, expected, {"tags": tags}) for name, expected, tags in rows], name="support"),
        outputs={
            "window": ["30 days", "It is 30 days"],
            "fee": ["a fee of ten euros", ""],
            "hours": ["9 to 5", "9 to 5"],
        },
        metrics=["exact-match", "contains", Padding()],
        aggregator={"at-least": 2},
        gate={"min_aggregate_success": 0.6, "cohorts": {"money": {"min_aggregate_score": 0.5}}, "max_unscored": 1},
        settings=dm.EvaluationSettings(clock=CLOCK),
    )


@pytest.mark.parametrize("flavour", NAMES)
def test_report_matches_golden_file(flavour, golden):
    golden(f"report/{NAMES[flavour]}", b"".join(FORMATS[flavour](aggregated())))


def test_terminal_report_matches_golden_file(golden):
    golden("report/aggregate.txt", printed(report_sections(aggregated())))


def test_samples_and_run_have_hand_computed_aggregates():
    found = {entry.id: (entry.aggregate.success, entry.aggregate.score) for entry in aggregated().samples}
    # window: (1 + 1 + 1) / 3, then (0 + 1 + 3/4) / 3; fee: (0 + 0 + 3/5) / 3, then (0 + 0) / 2 beside an error.
    assert found == {
        "window": (True, pytest.approx((1 + 1.75 / 3) / 2, abs=1e-9)),
        "fee": (False, pytest.approx(0.1)),
        "hours": (True, 1.0),
    }
    aggregate = aggregated().aggregate
    assert (aggregate.aggregator, aggregate.success_rate) == ("at-least 2", 4 / 6)
    assert aggregate.mean_score == pytest.approx((1 + 1.75 / 3 + 0.2 + 0 + 1 + 1) / 6)
    assert aggregated().cohorts["money"].aggregate.success_rate == 0.0


def test_records_have_every_field_in_the_order_of_the_format_and_fit_the_schema():
    value = json.loads(aggregated().to_json())
    fields = ["aggregator", "success_rate", "interval", "mean_score", "mean_score_interval", "samples"]
    assert list(value["aggregate"]) == list(value["cohorts"][0]["aggregate"]) == fields
    assert list(value["samples"][0]["aggregate"]) == ["success", "score"]
    schema = json.loads((SCHEMAS / "deemster.report.v1.json").read_text(encoding="utf-8"))
    jsonschema_rs.validator_for(schema).validate(value)


@pytest.mark.parametrize("flavour", FORMATS)
def test_report_read_back_looks_the_same_in_every_format(flavour, tmp_path):
    path = tmp_path / "run.json"
    aggregated().save(path)
    assert b"".join(FORMATS[flavour](load_report(path))) == b"".join(FORMATS[flavour](aggregated()))


@pytest.mark.parametrize(
    "edit",
    [
        lambda value: value["samples"][0].update(aggregate=None),
        lambda value: value["cohorts"][0].update(aggregate=None),
        lambda value: value.update(aggregate=None),
    ],
)
def test_report_with_incomplete_aggregates_is_error(edit, tmp_path):
    value = json.loads(aggregated().to_json())
    edit(value)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(ReportError, match="do not fit each other"):
        load_report(path)


def test_failed_samples_are_shown_first():
    ids = [f"s{place:02}" for place in range(60)]
    outputs = {name: "no" if name in ("s41", "s58") else "yes" for name in ids}
    text = small_report(*ids, outputs=outputs, aggregator="and").to_markdown()
    section = text.partition("## Aggregate by sample")[2].partition("##")[0]
    rows = [line.split("|")[1:4] for line in section.splitlines() if "<code>" in line]
    assert [[cell.strip() for cell in row] for row in rows[:3]] == [
        ["<code>s41</code>", "fail", "0.0000"],
        ["<code>s58</code>", "fail", "0.0000"],
        ["<code>s00</code>", "pass", "1.0000"],
    ]
    assert len(rows) == 50
    assert "... and 10 more." in section


@pytest.mark.parametrize("flavour", ["md", "csv", "html", "github", "junit"])
def test_report_without_aggregator_has_no_aggregate_section(flavour):
    text = b"".join(FORMATS[flavour](full_report())).decode().replace("Per-metric aggregates", "")
    assert "ggregate" not in text


def test_hostile_aggregator_name_is_escaped():
    class Loud(dm.results.MetricsAggregator):
        def __str__(self):
            return "<b>\x1b[31m`x`"

    text = small_report(aggregator=Loud()).to_markdown()
    assert "<b>" not in text
    assert "\x1b" not in text


def test_aggregator_is_part_of_the_run_s_id():
    ids = {small_report(aggregator=given).run.id for given in (None, "and", "min", {"at-least": 1})}
    assert len(ids) == 4
