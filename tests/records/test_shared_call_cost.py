"""The first mark in order is charged for a shared call, whichever was answered first. Every call counts once."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from deemster.records import Call, Execution, MetricScore, Output, Unscored, Usage
from deemster.records.shared_call_cost import (
    CallPayments,
    PaidExecutions,
    SpendingSum,
    distinct_calls,
    itemized_calls,
    split_calls,
    with_calls,
)
from deemster.records.usage import cached_usage

USD = Decimal("0.001")


def used(number, **changes):
    return Usage(prompt_tokens=number, completion_tokens=1, latency_ms=5.0, cost_usd=USD * number, **changes)


def mark(*numbers):
    """A mark with calls; each call used as many tokens as its number."""
    if not numbers:
        return MetricScore(1.0)
    if len(numbers) == 1:
        return MetricScore(1.0, usage=used(numbers[0]), calls=(Call(numbers[0]),))
    whole = Usage(calls=len(numbers), prompt_tokens=sum(numbers), cost_usd=USD * sum(numbers))
    return MetricScore(1.0, usage=whole, calls=tuple(Call(number, used(number)) for number in numbers))


def execution(position, *marks, repetition=0):
    return Execution(position, f"s{position}", repetition, Output("x"), marks)


def test_first_is_charged_and_later_ones_count_cached_call():
    first, second = [each.marks[0] for each in PaidExecutions([execution(0, mark(7)), execution(1, mark(7))])]
    assert first.usage == used(7)
    assert (second.usage.calls, second.usage.cached_calls) == (0, 1)
    assert (second.usage.prompt_tokens, second.usage.cached_call_tokens) == (None, 8)
    assert (second.usage.cost_usd, second.usage.latency_ms) == (0, None)
    assert (first.calls, second.calls) == ((), ())


def test_only_shared_calls_are_free():
    _, second = [each.marks[0] for each in PaidExecutions([execution(0, mark(7)), execution(1, mark(7, 5))])]
    assert (second.usage.calls, second.usage.cached_calls) == (1, 1)
    assert (second.usage.prompt_tokens, second.usage.cached_call_tokens, second.usage.cost_usd) == (5, 8, USD * 5)


def test_metrics_of_one_execution_are_charged_in_order():
    (only,) = PaidExecutions([execution(0, mark(7), mark(7))])
    assert [each.usage.calls for each in only.marks] == [1, 0]


def test_script_asking_twice_is_charged_once():
    (only,) = PaidExecutions([execution(0, mark(7, 7))])
    assert (only.marks[0].usage.calls, only.marks[0].usage.cached_calls) == (1, 1)


def test_share_of_charged_call_is_cached_tokens_without_a_call():
    part = used(3, calls=0)
    marks = [MetricScore(1.0, usage=part, calls=(Call(1),)) for _ in range(2)]
    assert [CallPayments().usage(marks[0]), *map(CallPayments().usage, marks[1:])] == [part, part]
    payer = CallPayments()
    assert [payer.usage(each) for each in marks] == [part, cached_usage(part, calls=0)]
    assert cached_usage(part, calls=0).cached_call_tokens == 4


def test_unshared_calls_are_charged_to_each():
    marks = [MetricScore(1.0, usage=used(3)), Unscored("unreadable", "x", used(3))]
    (only,) = PaidExecutions([execution(0, *marks)])
    assert list(only.marks) == marks


def test_executions_can_be_iterated_again():
    paid = PaidExecutions([execution(0, mark(7)), execution(1, mark(7))])
    assert list(paid) == list(paid)


numbers = st.lists(st.lists(st.integers(1, 9), max_size=4), max_size=12)


@given(numbers)
def test_every_call_is_charged_exactly_once(rows):
    paid = PaidExecutions([execution(position, mark(*row)) for position, row in enumerate(rows)])
    usages = [usage for each in paid for one in each.marks if (usage := one.usage) is not None]
    distinct = {number for row in rows for number in row}
    assert sum(usage.calls for usage in usages) == len(distinct)
    assert sum(usage.calls + usage.cached_calls for usage in usages) == sum(map(len, rows))
    assert sum((usage.cost_usd for usage in usages), Decimal(0)) == USD * sum(distinct)


@given(numbers)
def test_cost_of_run_equals_charges_of_marks(rows):
    spending = SpendingSum()
    for position, row in enumerate(rows):
        spending.add(execution(position, mark(*row)))
    spent = spending.total()
    distinct = {number for row in rows for number in row}
    assert spent.call_ids == distinct
    assert spent.usd == USD * sum(distinct)


def test_shares_of_call_sum_and_repeated_share_counts_once():
    usage = Usage(prompt_tokens=7, completion_tokens=3, cost_usd=Decimal("0.001"))
    two = split_calls([MetricScore(1.0), MetricScore(1.0)], [Call(5, usage), Call(0, usage)])
    assert sum(one.usage.prompt_tokens for one in two) == 14
    assert sum(one.usage.cost_usd for one in two) == Decimal("0.002")
    repeated = (*itemized_calls(two[0]), *itemized_calls(two[0])[:1])
    assert with_calls(two[0], distinct_calls(repeated)).usage == two[0].usage


def test_payments_record_charged_calls():
    payments = CallPayments(shared={5})
    assert payments.paid == frozenset()
    assert [payments.pay(5), payments.pay(5), payments.pay(6), payments.pay(0)] == [True, False, True, True]
    assert payments.paid == {5}
