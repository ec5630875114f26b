"""Laws of aggregators, over all of them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.results import (
    AggregationResult,
    AtLeast,
    Critical,
    GeometricAggregator,
    MetricResult,
    MetricsAggregator,
    MinAggregator,
    WeightedMetricsAggregator,
)

NAMES = ("a", "b", "c", "d", "e")
UP = {1: 0.0, 2: 0.1, 3: 0.7, 4: 1.0}
DOWN = {1: 1.0, 2: 0.9, 3: 1 / 3, 4: 0.0}
AGGREGATORS = {
    "and": MetricsAggregator(),
    "min": MinAggregator(),
    "geometric": GeometricAggregator(),
    "at-least": AtLeast(2),
    "critical": Critical(["a"]),
    "weighted": WeightedMetricsAggregator(
        dict(zip(NAMES, (0.4, 0.3, 0.3, 0.0, 1e-9), strict=True)),
        {name: UP if name < "c" else DOWN for name in NAMES},
    ),
}
GATES = ("and", "min", "geometric", "weighted")
MEANS = ("and", "at-least", "critical")

scored = st.builds(
    MetricResult,
    st.floats(0, 1),
    st.sampled_from([1, 2, 3, 4]),
    st.booleans(),
    st.just(0.5),
    st.booleans(),
)
errored = st.builds(
    MetricResult, st.none() | st.floats(0, 1), st.none() | st.integers(1, 4), st.booleans(), error=st.text(min_size=1)
)


@st.composite
def results(draw, kinds=scored, least=1):
    """Results by name, that of `a` always among them."""
    count = draw(st.integers(least, len(NAMES)))
    return {name: draw(kinds) for name in NAMES[:count]}


every = pytest.mark.parametrize("kind", AGGREGATORS)


@every
@given(results(scored | errored))
def test_score_lies_between_0_and_1(kind, named):
    assert 0.0 <= AGGREGATORS[kind].aggregate(named).aggregate_score <= 1.0


@every
@given(results(scored | errored), st.randoms())
def test_order_of_the_metrics_does_not_matter(kind, named, chance: random.Random):
    entries = list(named.items())
    chance.shuffle(entries)
    assert AGGREGATORS[kind].aggregate(dict(entries)) == AGGREGATORS[kind].aggregate(named)


@pytest.mark.parametrize("kind", GATES)
@given(results())
def test_and_aggregator_succeeds_only_if_every_metric_does(kind, named):
    expected = all(result.success for result in named.values())
    assert AGGREGATORS[kind].aggregate(named).aggregate_success is expected


@every
@given(results(), st.sampled_from(NAMES), errored)
def test_further_error_never_raises_the_score_and_never_succeeds(kind, named, name, error):
    alone = {key: result for key, result in named.items() if key != name}
    if kind == "critical":
        alone = {"a": named["a"], **alone}
    before = AGGREGATORS[kind].aggregate(alone)
    after = AGGREGATORS[kind].aggregate({**alone, f"{name}!": error})
    assert after == AggregationResult(False, before.aggregate_score)


@every
@given(results(scored | errored))
def test_one_error_prevents_success_of_every_aggregator(kind, named):
    if any(result.error is not None for result in named.values()):
        assert AGGREGATORS[kind].aggregate(named).aggregate_success is False


@every
@given(results(), st.sampled_from(NAMES))
def test_additional_success_never_prevents_success(kind, named, name):
    if name in named:
        old = named[name]
        better = MetricResult(old.score, old.rubric_score, True, old.threshold, old.higher_is_better)
        before = AGGREGATORS[kind].aggregate(named).aggregate_success
        assert AGGREGATORS[kind].aggregate({**named, name: better}).aggregate_success >= before


@pytest.mark.parametrize("kind", MEANS)
@given(results())
def test_weakest_geometric_and_mean_are_in_this_order(kind, named):
    weakest, middle, mean = (AGGREGATORS[name].aggregate(named).aggregate_score for name in ("min", "geometric", kind))
    assert weakest <= middle <= mean + 1e-12


@pytest.mark.parametrize("kind", [*MEANS, "min", "geometric"])
@given(st.floats(0, 1), st.integers(1, 5))
def test_equal_qualities_give_same_aggregate(kind, score, count):
    named = dict.fromkeys(NAMES[:count], MetricResult(score))
    assert AGGREGATORS[kind].aggregate(named).aggregate_score == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize("kind", [*MEANS, "min", "geometric"])
@given(results())
def test_reversed_metric_has_same_quality(kind, named):
    # Scores of 1/64 steps, since 1 - (1 - s) is s only where nothing is rounded.
    exact = {
        name: MetricResult(round(result.score * 64) / 64, None, result.success, None, result.higher_is_better)
        for name, result in named.items()
    }
    turned = {
        name: MetricResult(1.0 - result.score, None, result.success, None, not result.higher_is_better)
        for name, result in exact.items()
    }
    assert AGGREGATORS[kind].aggregate(exact) == AGGREGATORS[kind].aggregate(turned)


@given(results(least=5), st.floats(0.001, 1000))
def test_weights_count_only_relative_to_each_other(named, factor):
    aggregator = AGGREGATORS["weighted"]
    scaled = WeightedMetricsAggregator(
        {name: weight * factor for name, weight in aggregator.weights.items()}, aggregator.score_mapping
    )
    assert scaled.compute_score(named) == pytest.approx(aggregator.compute_score(named), abs=1e-9)
