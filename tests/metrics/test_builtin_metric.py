"""Marks, and how every metric handles unreadable input."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deemster.errors import ConfigurationError
from deemster.metrics.metric_spec import parse_spec
from deemster.metrics.option_checks import LARGEST, check_whole_number
from deemster.metrics.retrieval_metrics import RetrievalHitAtK
from deemster.metrics.text_match import ExactMatch, LengthWithin
from deemster.records import CAUSES, MetricScore, Output, Sample, Unscored

ENDLESS = 10**5000


@pytest.mark.parametrize(
    ("given", "score"), [(True, 1.0), (False, 0.0), (1, 1.0), (np.float32(0.25), 0.25), (np.float64(0.5), 0.5)]
)
def test_booleans_and_numpy_numbers_become_floats(given, score):
    mark = MetricScore(given)
    assert (mark.score, type(mark.score)) == (score, float)


@pytest.mark.parametrize("given", [-0.0001, 1.0000001, math.nan, math.inf, None, "0.5", [1], 2])
def test_score_out_of_range_is_error_not_clamped(given):
    with pytest.raises(ValueError, match="between 0 and 1"):
        MetricScore(given)


def test_score_reaches_threshold_that_differs_by_rounding_only():
    assert MetricScore(4 / 5, threshold=0.8).success
    assert MetricScore(math.nextafter(0.8, 0), threshold=0.8).success
    assert not MetricScore(0.8 - 1e-9, threshold=0.8).success
    assert MetricScore(0.2, threshold=0.2, higher_is_better=False).success
    assert MetricScore(math.nextafter(0.2, 1), threshold=0.2, higher_is_better=False).success
    assert not MetricScore(0.2 + 1e-9, threshold=0.2, higher_is_better=False).success


def test_mark_has_the_defaults_of_the_contract():
    mark = MetricScore(0.5)
    assert (mark.details, mark.rubric_score, mark.threshold, mark.higher_is_better, mark.usage) == (
        {},
        None,
        0.5,
        True,
        None,
    )


@pytest.mark.parametrize("details", [{"a": math.nan}, {"a": [math.inf]}, {1: 2}, {"a": {1, 2}}, {"a": object()}])
def test_details_are_finite_json(details):
    with pytest.raises(ValueError, match="details"):
        MetricScore(0.5, details)


def test_details_are_frozen_all_the_way_down():
    details = {"a": [1, {"b": 2}]}
    mark = MetricScore(0.5, details)
    details["a"].append(3)
    assert mark.details == {"a": (1, {"b": 2})}
    for change in (lambda: mark.details.update(a=1), mark.details["a"][1].clear):
        with pytest.raises(TypeError, match="cannot be changed"):
            change()


def test_cause_is_one_of_the_thirteen():
    assert len(CAUSES) == 13
    with pytest.raises(ValueError, match="`lazy` is no cause"):
        Unscored("lazy", "x")


def test_huge_number_in_place_of_text_gets_no_hint():
    mark = ExactMatch().score(Sample("s", {}, ENDLESS), Output("x"))
    assert mark == Unscored("bad_sample", "`expected_output` is text here, not a number.")


def test_integer_options_are_bounded():
    metric = RetrievalHitAtK(k=LARGEST)
    assert RetrievalHitAtK(**parse_spec(str(metric)).options) == metric
    assert metric.score(Sample("s", {}, ["a"]), Output("", ["a"])).details["k"] == LARGEST
    for wrong in (LARGEST + 1, ENDLESS):
        with pytest.raises(ConfigurationError, match=f"of at least 1 and at most {LARGEST}, not"):
            RetrievalHitAtK(k=wrong)
        with pytest.raises(ConfigurationError, match="`max` of length-within"):
            LengthWithin(max=wrong)
        (issue,) = RetrievalHitAtK().check(Sample("s", {}, ["a"], {"k": wrong}))
        assert not issue.warning
        assert f"at most {LARGEST}" in issue.message
    with pytest.raises(ConfigurationError, match="from 1 to 9, not a number"):
        check_whole_number(ENDLESS, least=1, most=9, option="o", metric="m")
