"""Aggregators: one success and one score of several results."""

from __future__ import annotations

import msgspec
import pytest

from deemster.errors import ConfigurationError
from deemster.records import MetricScore, Unscored
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
from deemster.results.metric_aggregators import aggregator_name, result_from_mark

UP = {1: 0.0, 2: 0.5, 3: 1.0}
DOWN = {1: 1.0, 2: 0.5, 3: 0.0}


def up(score, success, rubric_score=None):
    return MetricResult(score, rubric_score, success)


def down(score, success):
    return MetricResult(score, None, success, higher_is_better=False)


def named(*results):
    return {f"m{place}": result for place, result in enumerate(results)}


ERRORED = MetricResult(error="unreadable: no JSON")


@pytest.mark.parametrize(
    ("results", "success", "score"),
    [
        ((), False, 0.0),
        ((up(1.0, True),), True, 1.0),
        ((down(0.2, True),), True, 0.8),
        ((up(1.0, True), down(0.25, True)), True, 0.875),
        ((up(1.0, True), down(0.75, False)), False, 0.625),
        ((up(1.0, True), ERRORED), False, 1.0),
        ((ERRORED,), False, 0.0),
    ],
)
def test_success_needs_all_metrics_and_score_is_mean_quality(results, success, score):
    assert MetricsAggregator().aggregate(named(*results)) == AggregationResult(success, score)


def test_success_and_score_of_no_results_are_false_and_zero():
    aggregator = MetricsAggregator()
    assert aggregator.compute_success({}) is False
    assert aggregator.compute_score({}) == 0.0


def test_errors_are_left_out_of_score():
    results = named(up(1.0, True), MetricResult(0.0, error="late"))
    assert MetricsAggregator().compute_score(results) == 1.0
    assert MetricsAggregator().compute_success(results) is False


@pytest.mark.parametrize("success", [True, False])
def test_weighted_score_maps_rubric_values_and_keeps_the_and_gate(success):
    aggregator = WeightedMetricsAggregator({"c": 2, "r": 1}, {"c": UP, "r": UP})
    result = aggregator.aggregate({"c": up(0.1, True, 3), "r": up(0.1, success, 2)})
    assert result.aggregate_success is success
    assert result.aggregate_score == pytest.approx(5 / 6)


@pytest.mark.parametrize(("rubric", "score"), [((3, 3, 1), 1.0), ((2, 3, 1), 0.8), ((3, 3, 2), 0.85), ((1, 1, 3), 0.0)])
def test_query_transformation_is_weighted_with_redundancy_reversed(rubric, score):
    names = ("completeness", "groundedness", "redundancy")
    aggregator = WeightedMetricsAggregator(
        dict(zip(names, (0.4, 0.3, 0.3), strict=True)), dict(zip(names, (UP, UP, DOWN), strict=True))
    )
    # The mapping carries the direction: that redundancy is better when lower must not turn it round once more.
    results = {
        name: MetricResult(0.5, value, True, higher_is_better=name != "redundancy")
        for name, value in zip(names, rubric, strict=True)
    }
    result = aggregator.aggregate(results)
    assert result.aggregate_success is True
    assert result.aggregate_score == pytest.approx(score)


def test_weighted_score_counts_only_the_metrics_present_and_without_error():
    aggregator = WeightedMetricsAggregator({"c": 2, "r": 1}, {"c": UP, "r": UP})
    assert aggregator.aggregate({"r": up(0.5, True, 2)}) == AggregationResult(True, 0.5)
    assert aggregator.aggregate({"c": ERRORED, "r": up(0.5, True, 2)}) == AggregationResult(False, 0.5)
    assert aggregator.aggregate({"c": ERRORED}) == AggregationResult(False, 0.0)
    assert aggregator.compute_score({}) == 0.0


def test_weighted_score_without_any_weight_is_zero():
    assert WeightedMetricsAggregator({"c": 0}, {"c": UP}).compute_score({"c": up(1.0, True, 3)}) == 0.0


def test_mapping_may_be_a_function():
    aggregator = WeightedMetricsAggregator({"c": 1, "r": 1}, {"c": lambda value: value / 10, "r": UP})
    assert aggregator.compute_score({"c": up(0.0, True, 5), "r": up(0.0, True, 3)}) == 0.75


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({"x": up(1.0, True, 3)}, "The metric `x` has no weight in the aggregator. Known: `cool`, `fn`."),
        ({"col": up(1.0, True, 3)}, "The metric `col` has no weight in the aggregator. Did you mean `cool`?"),
        ({"cool": up(1.0, True, 4)}, "The mapping of `cool` does not hold the rubric score 4, but 1, 2, 3."),
        ({"cool": up(1.0, True)}, "`cool` gives no rubric score, which a weighted aggregator maps."),
        ({"fn": up(1.0, True, 7)}, "The mapping of `fn` gives 7 the value 7; it lies between 0 and 1."),
    ],
)
def test_unmapped_rubric_value_is_error(results, message):
    aggregator = WeightedMetricsAggregator({"cool": 1, "fn": 1}, {"cool": UP, "fn": lambda value: value})
    with pytest.raises(ConfigurationError) as caught:
        aggregator.aggregate(results)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("weights", "mapping", "messages"),
    [
        ({"c": -1}, {"c": UP}, ["The weight of `c` is a finite number of at least 0, not -1."]),
        ({"c": float("inf")}, {"c": UP}, ["The weight of `c` is a finite number of at least 0, not inf."]),
        ({"c": float("nan")}, {"c": UP}, ["The weight of `c` is a finite number of at least 0, not nan."]),
        ({"c": True}, {"c": UP}, ["The weight of `c` is a finite number of at least 0, not True."]),
        ({"c": 1e308, "r": 1e308}, {"c": UP, "r": UP}, ["The weights are too large to be added."]),
        (
            {"c": 1, "d": 1},
            {"c": UP, "r": UP},
            [
                "`d` has a weight and no mapping: add it to `score_mapping`.",
                "`r` has a mapping and no weight: add it to `weights`.",
            ],
        ),
        ({"c": 1}, {"c": {1: 1.5}}, ["The mapping of `c` gives 1 the value 1.5; it lies between 0 and 1."]),
        ({"c": 1}, {"c": {"x": 1}}, ["The mapping of `c` has the key 'x', which is no rubric value."]),
        (
            {"c": 1},
            {"c": {}},
            ["The mapping of `c` is a map of rubric values to numbers from 0 to 1, not an empty one."],
        ),
        ({"c": 1}, {"c": 3}, ["The mapping of `c` is a map of rubric values to numbers from 0 to 1, not a number."]),
        ([], {}, ["`weights` is a map by metric name, not a list."]),
    ],
)
def test_weights_and_mappings_are_checked_when_built(weights, mapping, messages):
    with pytest.raises(ConfigurationError) as caught:
        WeightedMetricsAggregator(weights, mapping)
    assert [fault.message for fault in caught.value.issues] == messages


RESULTS = named(up(1.0, True), up(0.25, False), down(0.5, True))


@pytest.mark.parametrize(
    ("aggregator", "success", "score"),
    [
        (MinAggregator(), False, 0.25),
        (GeometricAggregator(), False, 0.5),
        (AtLeast(2), True, 1.75 / 3),
        (AtLeast(3), False, 1.75 / 3),
        (Critical(["m0", "m2"]), True, 1.75 / 3),
        (Critical(["m1"]), False, 1.75 / 3),
    ],
)
def test_other_aggregators_follow_their_definitions(aggregator, success, score):
    result = aggregator.aggregate(RESULTS)
    assert result.aggregate_success is success
    assert result.aggregate_score == pytest.approx(score)
    assert aggregator.aggregate({}) == AggregationResult(False, 0.0)
    assert aggregator.compute_success({}) is False
    assert aggregator.compute_score({}) == 0.0


@pytest.mark.parametrize("aggregator", [AtLeast(1), Critical(["m0"])])
def test_error_is_no_success_even_if_other_results_suffice(aggregator):
    assert aggregator.aggregate(named(up(1.0, True), ERRORED)) == AggregationResult(False, 1.0)


def test_geometric_mean_is_zero_if_one_quality_is_zero():
    assert GeometricAggregator().compute_score(named(up(1.0, True), down(1.0, False))) == 0.0


def test_geometric_mean_of_many_small_qualities_does_not_underflow():
    results = named(*(up(1e-300, False) for _ in range(50)))
    assert GeometricAggregator().compute_score(results) == pytest.approx(1e-300)


def test_critical_metric_that_is_absent_is_an_error_with_the_nearest_name():
    with pytest.raises(
        ConfigurationError, match=r"^The critical metric `rigth` is not among the results. Did you mean `right`"
    ):
        Critical(["rigth"]).aggregate({"right": up(1.0, True)})


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "2", None])
def test_at_least_with_invalid_number_is_error(k):
    with pytest.raises(ConfigurationError, match="`at-least` is a whole number of at least 1, not"):
        AtLeast(k)


@pytest.mark.parametrize("names", [[], "m0", [""], [1]])
def test_invalid_critical_names_are_error(names):
    with pytest.raises(ConfigurationError, match="`critical` is a list of metric names, not"):
        Critical(names)


class Lenient(MetricsAggregator):
    """Replaces both parts."""

    seen = ()

    def compute_success(self, named_results):
        self.seen = tuple(named_results)
        return any(result.success for result in named_results.values())

    def compute_score(self, named_results):
        return max(result.quality for result in named_results.values())


def test_aggregate_uses_overrides_of_subclass():
    assert Lenient().aggregate(RESULTS) == AggregationResult(True, 1.0)


def test_subclass_sees_no_errors_and_cannot_turn_them_into_success():
    lenient = Lenient()
    assert lenient.aggregate(named(up(0.5, True), ERRORED)) == AggregationResult(False, 0.5)
    assert lenient.aggregate({}) == AggregationResult(False, 0.0)
    lenient.aggregate(RESULTS)
    assert lenient.seen == ("m0", "m1", "m2")


def test_aggregate_is_frozen_and_finite():
    result = AggregationResult(True, 0.5)
    with pytest.raises(AttributeError):
        result.aggregate_score = 0.6
    with pytest.raises(ValueError, match="An aggregate score is a finite number, not nan"):
        AggregationResult(True, float("nan"))
    assert msgspec.structs.asdict(result) == {"aggregate_success": True, "aggregate_score": 0.5}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "A result has a score, or an error that says why it has none."),
        ({"score": 1.5}, "A score is a finite number between 0 and 1, not 1.5."),
        ({"score": float("nan")}, "A score is a finite number between 0 and 1, not nan."),
    ],
)
def test_result_refuses_impossible_values(options, message):
    with pytest.raises(ValueError, match="^" + message):
        MetricResult(**options)


def test_mark_has_reason_and_unscored_mark_is_error():
    mark = MetricScore(0.2, {"reason": "short"}, rubric_score=2, threshold=0.3, higher_is_better=False)
    assert result_from_mark(mark) == MetricResult(0.2, 2, True, 0.3, False, "short")
    assert result_from_mark(MetricScore(0.2, {"reason": ["no", "text"]})).explanation is None
    assert result_from_mark(MetricScore(0.2, {"judge_reason": "wordy", "reason": 7})).explanation == "wordy"
    assert result_from_mark(Unscored("unreadable", "no JSON")) == MetricResult(error="unreadable: no JSON")


class Duck:
    """An aggregator that inherits nothing."""

    def aggregate(self, named_results):
        return AggregationResult(True, 1.0)


@pytest.mark.parametrize(
    ("aggregator", "name"),
    [
        (MetricsAggregator(), "and"),
        (MinAggregator(), "min"),
        (GeometricAggregator(), "geometric"),
        (AtLeast(2), "at-least 2"),
        (Critical(["a", "b", "a"]), "critical a, b"),
        (
            WeightedMetricsAggregator({"c": 0.4, "f": 1}, {"c": UP, "f": abs}),
            "weighted c 0.4 (1: 0, 2: 0.5, 3: 1), f 1 (builtins:abs)",
        ),
        (Lenient(), "tests.results.test_metric_aggregators:Lenient"),
        (Duck(), "tests.results.test_metric_aggregators:Duck"),
    ],
)
def test_aggregator_name_is_suite_name_or_import_path(aggregator, name):
    assert aggregator_name(aggregator) == name


def test_result_converts_to_plain_data():
    assert AggregationResult(aggregate_success=True, aggregate_score=0.5).to_dict() == {
        "aggregate_success": True,
        "aggregate_score": 0.5,
    }
