"""The tests that a plug-in wants: each part alone, with drawn data, and all of them in a suite."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deemster_acme.chat_client import AcmeChat
from deemster_acme.politeness import Politeness
from deemster_acme.support_bot import answer
from hypothesis import given
from hypothesis import strategies as st

import deemster as dm
from deemster import testing

HERE = Path(__file__).parent
# Any text, and often one that programs read wrongly: nothing, blanks, half of JSON, another script.
TEXTS = st.sampled_from(["", " ", "[1, 2", "NaN", "日本語"]) | st.text(st.characters(codec="utf-8"))
SAMPLES = st.builds(dm.Sample, st.just("q1"), st.dictionaries(TEXTS, TEXTS, max_size=2), st.none() | TEXTS)


@given(SAMPLES, st.builds(dm.Output, TEXTS))
def test_the_metric_marks_any_output_and_twice_the_same(sample, output):
    mark = Politeness().score(sample, output)
    assert isinstance(mark, (dm.MetricScore, dm.Unscored))
    assert Politeness().score(sample, output) == mark


def test_more_courtesy_scores_higher():
    marks = [Politeness(enough=2).score(None, dm.Output(text)) for text in ("No.", "No, sorry.", "Sorry. Thanks!")]
    assert [mark.score for mark in marks] == [0.0, 0.5, 1.0]


def test_an_option_out_of_range_is_refused():
    with pytest.raises(dm.ConfigurationError, match="at least 1"):
        Politeness(enough=0)


def test_the_plug_in_is_found_by_its_names():
    assert isinstance(dm.judges.parse_metric("acme-politeness(enough=2)"), Politeness)


def test_the_report_is_the_golden_one():
    report = dm.evaluate(
        HERE.parent / "golden.yml",
        target=answer,
        metrics=["acme-politeness", "llm-as-judge"],
        models={"judge": AcmeChat(strict=True)},
        settings=dm.EvaluationSettings(clock=testing.FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))),
    )
    # `REFRESH=1 pytest` writes it anew: read the difference before you commit it.
    testing.compare_with_golden(report, HERE / "report.json", refresh="REFRESH" in os.environ)
