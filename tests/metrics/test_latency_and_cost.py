"""What an answer may cost."""

from decimal import Decimal

import pytest

from deemster.errors import ConfigurationError
from deemster.metrics.latency_and_cost import CostBelow, LatencyBelow
from deemster.records import Output, Sample, Usage


def output(**usage):
    return Output("x", usage=Usage(**usage))


def test_value_equal_to_limit_passes():
    sample = Sample("s", {})
    assert LatencyBelow(max_ms=1000).score(sample, output(latency_ms=1000.0)).score == 1.0
    mark = LatencyBelow(max_ms=1000).score(sample, output(latency_ms=1000.5))
    assert (mark.score, mark.details) == (0.0, {"measured": 1000.5, "limit": 1000.0})
    assert CostBelow(max_usd=0.1).score(sample, output(cost_usd=Decimal("0.1"))).score == 1.0
    assert CostBelow(max_usd=0.1).score(sample, output(cost_usd=Decimal("0.1000000000000000001"))).score == 0.0


def test_limit_of_sample_overrides_option():
    sample = Sample("s", {}, None, {"max_latency_ms": 5, "max_cost_usd": 0})
    assert LatencyBelow(max_ms=1000).score(sample, output(latency_ms=6.0)).score == 0.0
    assert CostBelow(max_usd=1).score(sample, output(cost_usd=Decimal(0))).score == 1.0
    assert CostBelow(max_usd=1).score(sample, output(cost_usd=Decimal("0.5"))).score == 0.0


@pytest.mark.parametrize(
    ("metric", "other"),
    [(LatencyBelow(max_ms=1), {"cost_usd": Decimal(1)}), (CostBelow(max_usd=1), {"latency_ms": 1.0})],
)
def test_missing_usage_is_unscored(metric, other):
    assert metric.score(Sample("s", {}), Output("x")).cause == "no_usage"
    assert metric.score(Sample("s", {}), output(**other)).cause == "no_usage"


@pytest.mark.parametrize(("metric", "key"), [(LatencyBelow(), "max_latency_ms"), (CostBelow(), "max_cost_usd")])
def test_missing_limit_is_warning_and_invalid_limit_stops_run(metric, key):
    (issue,) = metric.check(Sample("s", {}))
    assert issue.warning
    for wrong in (-1, "5", True, float("nan"), float("inf"), 10**400, [1]):
        (issue,) = metric.check(Sample("s", {}, None, {key: wrong}))
        assert not issue.warning
        assert key in issue.message


def test_cost_beyond_float_is_scored():
    mark = CostBelow(max_usd=1).score(Sample("s", {}), output(cost_usd=Decimal("1e999")))
    assert (mark.score, mark.details["measured"]) == (0.0, None)


@pytest.mark.parametrize("wrong", [-1, "5", True, float("inf")])
def test_option_out_of_range_is_refused(wrong):
    with pytest.raises(ConfigurationError, match="max_ms"):
        LatencyBelow(max_ms=wrong)
    with pytest.raises(ConfigurationError, match="max_usd"):
        CostBelow(max_usd=wrong)
