"""What a run used and cost, as reports show it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from deemster.errors import plural
from deemster.records import Usage
from deemster.results import Cost, UsageTotals
from deemster.text.text_sections import DataText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.report.report_document import Report


def usage_section(report: Report) -> TextSection:
    """Calls, tokens and latency of target and judges, what they cost, and whether the budget ended the run."""
    usage = report.usage
    title = ("Usage and cost",)
    if not usage.total.calls and not usage.total.cached_calls and usage.total.latency_ms is None:
        return TextSection(title, [("No model call was recorded.",), *_budget_lines(report)], key="usage")

    totals_by_part = {"target": usage.target, "scoring": usage.scoring}
    if usage.reruns is not None:
        totals_by_part["beside the samples"] = usage.reruns
    totals_by_part["total"] = usage.total

    head = ("part", "calls", "cache hits", "prompt tokens", "completion tokens", "cache hit tokens", "p50 ms", "p95 ms")
    rows = [(part, *_usage_cells(totals)) for part, totals in totals_by_part.items()]
    after = [*_cost_lines(report.cost), *_budget_lines(report)]
    return TextSection(title, table=TextTable(head, rows), after=after, key="usage")


def _usage_cells(totals: UsageTotals) -> TextLine:
    latency = totals.latency_ms
    return (
        str(totals.calls),
        str(totals.cached_calls),
        _count_cell(totals.prompt_tokens),
        _count_cell(totals.completion_tokens),
        _count_cell(totals.cached_call_tokens),
        "n/a" if latency is None else f"{latency.p50:.1f}",
        "n/a" if latency is None else f"{latency.p95:.1f}",
    )


def _cost_lines(cost: Cost | None) -> Iterator[TextLine]:
    if cost is None:
        return
    yield (f"Cost: {format_cost(cost)} for {plural(cost.calls, 'call')}.",)

    for model in cost.models:
        price = "no price known" if model.cost_usd is None else f"{_money(model.cost_usd)} USD"
        tokens = f"{model.prompt_tokens:,} + {model.completion_tokens:,} tokens"
        yield ("- ", DataText(model.model), f": {plural(model.calls, 'call')}, {tokens}, {price}")


def format_cost(cost: Cost) -> str:
    """What a run cost; at least that where a model has no price."""
    if cost.complete:
        return f"{_money(cost.total_usd)} USD"
    if any(model.cost_usd is not None for model in cost.models):
        return f"at least {_money(cost.total_usd)} USD"
    return "not known"


def describe_usage(usage: Usage) -> str:
    """What one score or output used: calls, tokens, time and cost, as far as they are known.

    >>> describe_usage(Usage(prompt_tokens=120, completion_tokens=8))
    '1 call, 120 + 8 tokens, cost not known'
    """
    parts = [plural(usage.calls, "call")] if usage.calls else []
    if usage.cached_calls:
        parts.append(f"{plural(usage.cached_calls, 'call')} answered from the cache")
    if usage.prompt_tokens is not None or usage.completion_tokens is not None:
        parts.append(f"{_count_cell(usage.prompt_tokens)} + {_count_cell(usage.completion_tokens)} tokens")
    if usage.latency_ms is not None:
        parts.append(f"{usage.latency_ms:,.0f} ms")
    if usage.cost_usd is not None:
        origin = ", by the price table" if usage.cost_source == "derived" else ""
        parts.append(f"{usage.cost_usd.normalize():f} USD{origin}")
    elif usage.calls:
        parts.append("cost not known")
    return ", ".join(parts)


def _budget_lines(report: Report) -> list[TextLine]:
    if report.budget is None or not report.budget.halted:
        return []
    return [("The budget stopped the run: ", DataText(report.budget.reason or "spent"), ".")]


def _count_cell(count: int | None) -> str:
    return "n/a" if count is None else f"{count:,}"


def _money(amount: Decimal) -> str:
    return f"{amount:.4f}"
