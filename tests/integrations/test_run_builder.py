from __future__ import annotations

import math

import pytest

from deemster.errors import DatasetError
from deemster.integrations.run_builder import RunBuilder, parse_time, read_mark, read_usage
from deemster.records import MetricScore, Output, Unscored


def test_score_within_bounds_is_the_score():
    assert read_mark(0.7) == MetricScore(0.7)


def test_verdict_counts_where_it_is_not_what_the_score_says():
    assert read_mark(0.9, passed=False, reason="off topic") == MetricScore(
        0.0, {"reason": "off topic"}, rubric_score=0.9
    )
    assert read_mark(0.2, passed=True).success


def test_score_outside_bounds_with_a_verdict_is_the_verdict():
    assert read_mark(7, passed=True) == MetricScore(1.0, rubric_score=7.0)


def test_score_outside_bounds_without_a_verdict_is_unscored():
    found = read_mark(7)
    assert isinstance(found, Unscored)
    assert found.cause == "unreadable"


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "0.5", {}, 10**400])
def test_no_number_and_no_verdict_is_unscored(value):
    found = read_mark(value)
    assert isinstance(found, Unscored)
    assert found.cause == "metric_failed"


def test_threshold_on_another_scale_is_not_used():
    assert read_mark(1, passed=True, threshold=5000) == MetricScore(1.0)


def test_samples_of_one_id_are_numbered():
    builder = RunBuilder("tool 1.0", "data")
    assert [builder.add_sample("a", {}), builder.add_sample("a", {})] == ["a", "a-2"]


def test_not_finite_number_in_a_sample_becomes_null_and_is_listed():
    builder = RunBuilder("tool", "data")
    sample = builder.add_sample("a", {"x": math.nan})
    builder.add_execution(sample, Output("said"), {builder.add_metric("m"): read_mark(1)})
    run = builder.build()
    assert next(iter(run.dataset)).input == {"x": None}
    assert run.left_out == ("NaN or infinity in the data of a sample became null",)


def test_identity_is_tool_name_and_options():
    builder = RunBuilder("tool 1.2.3", "data")
    builder.add_sample("a", {})
    builder.add_metric("judge", options="judge=m")
    (card,) = builder.build().cards
    assert card.identity == "tool:judge(judge=m)"


def test_time_is_read_from_text_and_from_numbers():
    assert parse_time("2026-01-02T03:04:05Z") == parse_time(1767323045)
    assert parse_time(1767323045) == parse_time(1767323045000) == parse_time(1767323045000000000)
    assert parse_time("yesterday") is None
    assert parse_time(10**300) is None


def test_usage_leaves_out_what_is_no_count():
    assert read_usage(prompt=-1, completion="7", cost_usd=math.nan) is None
    assert read_usage(prompt=3, latency_ms=2).prompt_tokens == 3


def test_metric_without_a_known_scale_is_left_out_as_a_whole():
    builder = RunBuilder("tool", "data")
    sample = builder.add_sample("a", {})
    marks = {builder.add_metric("perplexity"): read_mark(23.4), builder.add_metric("right"): read_mark(1)}
    builder.add_execution(sample, Output("said"), marks)
    run = builder.build()
    assert [card.name for card in run.cards] == ["right"]
    assert run.left_out == ("the metric `perplexity`: its numbers are on a scale that is not known",)
    assert len(run.executions[0].marks) == 1


def test_number_of_a_repetition_is_bounded():
    builder = RunBuilder("tool", "data")
    sample = builder.add_sample("a", {})
    with pytest.raises(DatasetError, match="at most 1,000 repetitions"):
        builder.add_execution(sample, Output("said"), {}, repetition=10**30)
