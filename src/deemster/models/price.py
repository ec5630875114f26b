"""The price of calls: as the provider reports it, from the suite's price table, or unknown."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from deemster.records import Usage

_MILLION = Decimal(1_000_000)


class Price(NamedTuple):
    """US dollars for a million tokens sent, and for a million received."""

    input: Decimal
    output: Decimal = Decimal(0)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> Decimal:
        """What a number of tokens costs.

        >>> Price(Decimal("0.15"), Decimal("0.60")).cost(1_000, 500)
        Decimal('0.00045')
        """
        return (self.input * prompt_tokens + self.output * completion_tokens) / _MILLION


def exact_price(price: Price) -> Price:
    """A price in exact decimals.

    Raises:
        ValueError: It is not a price, or a part of it is not an amount of at least 0.

    >>> exact_price(Price(0.15, 2)).cost(1_000_000, 0)
    Decimal('0.15')
    """
    if not isinstance(price, Price):
        raise ValueError(f"A price is `Price(input, output)`, USD for a million tokens, not {price!r}.")  # noqa: TRY004 - a setting out of range
    for part in price:
        if type(part) not in (int, float, Decimal) or not Decimal(part).is_finite() or part < 0:
            raise ValueError(f"A price is USD for a million tokens, a number of at least 0, not {part!r}.")
    return Price(Decimal(str(price.input)), Decimal(str(price.output)))


FREE = Price(Decimal(0), Decimal(0))


class PriceTable:
    """A price table by the beginnings of model names; the longest that fits counts.

    Args:
        table: Prices by prefix; an empty prefix fits every model.

    >>> table = PriceTable({"gpt-6": Price(Decimal(5)), "gpt-6-luna": Price(Decimal(1))})
    >>> table.find("gpt-6-luna-fast").input, table.find("other")
    (Decimal('1'), None)
    """

    def __init__(self, table: Mapping[str, Price]) -> None:
        self._table = sorted(table.items(), key=lambda entry: -len(entry[0]))
        self._found: dict[str | None, Price | None] = {}

    def __bool__(self) -> bool:
        return bool(self._table)

    def find(self, model: str | None) -> Price | None:
        """The price of a model, or None."""
        if model not in self._found:
            name = model or ""
            self._found[model] = next((price for prefix, price in self._table if name.startswith(prefix)), None)
        return self._found[model]

    def highest(self) -> Price | None:
        """The highest price of each kind, for what a call may cost at most; None for an empty table."""
        if not self._table:
            return None
        prices = [price for _, price in self._table]
        return Price(max(price.input for price in prices), max(price.output for price in prices))

    def cost_of(self, usage: Usage, *, embeds: bool = False) -> Decimal | None:
        """What a usage costs by the table and its tokens; None where they do not say.

        Args:
            usage: What a call used.
            embeds: Whether the tokens are all sent, none received.
        """
        price = self.find(usage.model)
        if price is None:
            return None
        sent, received = usage.prompt_tokens, usage.completion_tokens
        if embeds:
            sent, received = usage.total_tokens if sent is None else sent, received or 0
        if sent is None or received is None:
            if price != FREE:
                return None
            sent = received = 0
        return price.cost(sent, received)
