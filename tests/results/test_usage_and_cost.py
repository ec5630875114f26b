"""Usage and cost: every call counts once, and an unreported number is not 0."""

from __future__ import annotations

from decimal import Decimal

from deemster.records import Execution, MetricCard, MetricScore, Output, TargetFailure, Unscored, Usage
from deemster.results.mark_table import MarkTable
from deemster.results.run_summary import summarize_run
from deemster.results.usage_and_cost import UsageAccount, sum_accounts, total_cost

CARD = MetricCard("judged", "judged", "judged v1", "custom", frozenset())


def account(*usages: Usage) -> UsageAccount:
    spending = UsageAccount()
    for usage in usages:
        spending.add(usage)
    return spending


def test_missing_usage_field_is_none_and_reporting_calls_are_counted():
    usage = sum_accounts([account(Usage(prompt_tokens=3), Usage(calls=2, prompt_tokens=0), Usage())])
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (4, 3, None)
    assert (usage.reported["prompt_tokens"], usage.reported["completion_tokens"]) == (3, 0)
    assert usage.latency_ms is None


def test_cache_hit_is_counted_separately_without_cost_and_latency():
    hit = Usage(calls=0, cached_calls=1, prompt_tokens=5, latency_ms=900.0, cost_usd=Decimal(7))
    spending = account(hit, Usage(latency_ms=10.0, cost_usd=Decimal("0.5"), model="m"))
    usage, money = sum_accounts([spending]), total_cost([spending])
    assert (usage.calls, usage.cached_calls, usage.prompt_tokens, usage.cached_call_tokens) == (1, 1, None, 5)
    assert (usage.reported["prompt_tokens"], usage.reported["cached_call_tokens"]) == (0, 1)
    assert usage.latency_ms is not None
    assert (usage.latency_ms.count, usage.latency_ms.max) == (1, 10.0)
    assert money is not None
    assert (money.total_usd, money.calls) == (Decimal("0.5"), 1)


def test_latency_is_summed_and_ranked_by_linear_interpolation():
    latency = sum_accounts([account(*(Usage(latency_ms=float(ms)) for ms in (40, 10, 30, 20)))]).latency_ms
    assert latency is not None
    assert (latency.count, latency.total, latency.mean, latency.p50, latency.max) == (4, 100.0, 25.0, 25.0, 40.0)
    assert round(latency.p95, 9) == 38.5


def test_cost_is_summed_exactly_by_source():
    tenths = [Usage(cost_usd=Decimal("0.1"), model="b") for _ in range(3)]
    money = total_cost(
        [account(*tenths), account(Usage(cost_usd=Decimal("0.00000001"), cost_source="derived", model="a"))]
    )
    assert money is not None
    assert (money.reported_usd, money.derived_usd) == (Decimal("0.3"), Decimal("0.00000001"))
    assert (money.total_usd, money.complete) == (Decimal("0.30000001"), True)
    assert [line.model for line in money.models] == ["a", "b"]


def test_one_unpriced_call_makes_total_a_lower_bound():
    priced = Usage(cost_usd=Decimal(1), model="known", prompt_tokens=2)
    money = total_cost([account(priced, Usage(calls=2, model="unknown"), Usage(model="known"))])
    assert money is not None
    assert (money.total_usd, money.complete, money.calls, money.unpriced_calls) == (Decimal(1), False, 4, 3)
    assert money.unpriced_models == ("known", "unknown")
    assert [(line.cost_usd, line.priced) for line in money.models] == [(Decimal(1), False), (None, False)]


def test_without_a_call_there_is_no_cost():
    assert total_cost([account(), account(Usage(calls=0, latency_ms=3.0))]) is None


def test_target_and_scoring_usage_are_separate_even_if_unscored():
    tally = MarkTable([CARD], samples=3, repetitions=1)
    for position in range(3):
        tally.tag(position, ())
    spent = Usage(calls=1, prompt_tokens=10)
    tally.add(
        [
            Execution(
                0, "a", 0, Output("x", usage=Usage(prompt_tokens=1), model="t"), (MetricScore(1.0, usage=spent),)
            ),
            Execution(1, "b", 0, Output("x"), (Unscored("unreadable", "no verdict", usage=spent),)),
            Execution(2, "c", 0, TargetFailure("down"), (Unscored("target_failed", "down"),)),
        ]
    )
    summary = summarize_run(tally)
    usage = summary.usage
    assert [part.calls for part in (usage.target, usage.scoring, usage.total)] == [1, 2, 3]
    assert [part.prompt_tokens for part in (usage.target, usage.scoring, usage.total)] == [1, 20, 21]
    assert usage.by_metric["judged"] == usage.scoring
    assert summary.cost is not None
    assert [line.model for line in summary.cost.models] == ["(unnamed)", "t"]
