"""Usage that is split into shares sums to the original."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.records import Usage
from deemster.records.usage import cached_usage, count_tokens, divide_usage, sum_usage

COUNTS = (
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "total_tokens",
    "cached_call_tokens",
)
counts = st.none() | st.integers(0, 10**12)
amounts = st.none() | st.decimals(0, 10**6, allow_nan=False, allow_infinity=False, places=9)
usages = st.builds(
    Usage,
    calls=st.integers(0, 50),
    cached_calls=st.integers(0, 50),
    **dict.fromkeys(COUNTS, counts),
    latency_ms=st.none() | st.floats(0, 1e9),
    cost_usd=amounts,
    cost_source=st.sampled_from(["reported", "derived"]),
    model=st.none() | st.sampled_from(["a", "b"]),
)


@given(usages, st.integers(1, 40))
def test_shares_of_usage_sum_exactly(usage, parts):
    shares = divide_usage(usage, parts)
    assert len(shares) == parts
    for name in ("calls", "cached_calls", *COUNTS):
        found = [getattr(share, name) for share in shares]
        assert (None if None in found else sum(found)) == getattr(usage, name)
        assert found.count(None) in (0, parts)
    costs = [share.cost_usd for share in shares]
    assert (None if None in costs else sum(costs)) == usage.cost_usd


@given(usages, st.integers(1, 40))
def test_sum_of_shares_equals_usage(usage, parts):
    whole = sum_usage(divide_usage(usage, parts))
    for name in ("calls", "cached_calls", *COUNTS, "model"):
        assert getattr(whole, name) == getattr(usage, name)
    if usage.calls:
        assert whole.cost_usd == usage.cost_usd
        assert whole.cost_source == usage.cost_source
    if usage.latency_ms is not None:
        assert whole.latency_ms == pytest.approx(usage.latency_ms)


@given(usages, st.integers(2, 40))
def test_parts_differ_by_one_at_most(usage, parts):
    shares = divide_usage(usage, parts)
    for name in ("calls", *COUNTS):
        found = [getattr(share, name) for share in shares if getattr(share, name) is not None]
        assert not found or max(found) - min(found) <= 1


@given(st.lists(usages, max_size=6))
def test_unreported_count_stays_none(every):
    whole = sum_usage(every)
    if not every:
        assert whole is None
        return
    for name in COUNTS:
        told = [getattr(usage, name) for usage in every if getattr(usage, name) is not None]
        assert (getattr(whole, name) or None) == (sum(told) or None)
        assert told or name == "cached_call_tokens" or getattr(whole, name) is None


@given(st.lists(usages, min_size=1, max_size=6), st.integers(1, 5))
def test_tokens_of_calls_and_of_cached_calls_stay_apart_in_sums_parts_and_files(every, parts):
    billed = sum(usage.prompt_tokens or 0 for usage in every)
    cached = sum(usage.cached_call_tokens or 0 for usage in every)
    shares = [share for usage in every for share in divide_usage(usage, parts)]
    for whole in (sum_usage(every), sum_usage(shares)):
        read = msgspec.json.decode(msgspec.json.encode(whole), type=Usage)
        assert (read.prompt_tokens or 0, read.cached_call_tokens or 0) == (billed, cached)


@given(usages)
def test_cached_usage_moves_every_token_to_cached_call_tokens(usage):
    hit = cached_usage(usage)
    assert (hit.calls, hit.cached_calls, hit.cost_usd, hit.latency_ms) == (0, 1, 0, None)
    assert [getattr(hit, name) for name in COUNTS[:-1]] == [None] * 5
    assert (hit.cached_call_tokens or 0) == count_tokens(usage, 0) + (usage.cached_call_tokens or 0)
    assert cached_usage(hit) == hit


def test_usage_of_cached_calls_without_own_count_counts_its_tokens_as_cached():
    """A target says it so, and so did stored runs before `cached_call_tokens` was counted."""
    read = msgspec.json.decode(b'{"calls":0,"cached_calls":2,"prompt_tokens":7,"completion_tokens":3}', type=Usage)
    assert read == Usage(calls=0, cached_calls=2, cached_call_tokens=10)


def test_cost_is_unknown_if_one_call_has_no_price():
    paid, unknown, cached = Usage(cost_usd=Decimal("0.5")), Usage(), Usage(calls=0, cached_calls=1)
    assert sum_usage([paid, unknown]).cost_usd is None
    assert sum_usage([paid, cached]).cost_usd == Decimal("0.5")
    assert sum_usage([paid, paid, cached]).cost_usd == Decimal(1)


def test_split_of_no_usage_or_into_zero_parts_is_defined():
    assert divide_usage(None, 3) == [None, None, None]
    assert divide_usage(Usage(), 0) == []


def test_models_of_a_panel_are_named_together():
    both = sum_usage([Usage(model="b", cost_usd=1), Usage(model="a", cost_usd=2)])
    assert (both.model, both.cost_usd) == ("a + b", 3)


def test_models_that_are_added_again_and_again_are_named_once():
    total = sum_usage([Usage(model="a"), Usage(model="b")])
    for _ in range(5):
        total = sum_usage([total, Usage(model="b"), Usage(model="a")])
    assert total.model == "a + b"


@pytest.mark.parametrize("cost", ["0.01", 0.01, Decimal("0.01")])
def test_cost_is_a_number_or_its_digits_as_in_a_file(cost):
    assert Usage(cost_usd=cost).cost_usd == Decimal("0.01")


@pytest.mark.parametrize("cost", ["a cent", True, "NaN", -1, float("inf"), [1]])
def test_cost_that_is_no_amount_is_refused_by_name(cost):
    with pytest.raises(ValueError, match=r"^cost_usd"):
        Usage(cost_usd=cost)
