"""Reads what a request asks for: numbers, yes or no, words, and which samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deemster.errors import InputError
from deemster.view.comparison_pages import ChangeQuery
from deemster.view.experiment_pages import SHOWN, SORTS, GridQuery
from deemster.view.label_queue import QueueRequest
from deemster.view.sample_query import TEXT_FIELDS, SampleQuery

_MOST_ROWS = 500
_YES_NO = {"yes": True, "no": False}


class Query:
    """What a request asks: the parts of its path and of its query.

    Args:
        path: The parts of the path, by name.
        pairs: The names and values of the query, in order.
    """

    def __init__(self, path: Mapping[str, Any], pairs: list[tuple[str, str]]) -> None:
        self.path, self._pairs = path, pairs
        self.texts = {name: value for name, value in pairs if value}

    def many(self, name: str) -> tuple[str, ...]:
        """Every value of a name."""
        return tuple(value for each, value in self._pairs if each == name and value)

    def whole(self, name: str, default: int) -> int:
        """A whole number from 0.

        Raises:
            InputError: It is none.
        """
        text = self.texts.get(name, str(default))
        if not text.isdecimal() or len(text) > 12:
            raise InputError(f"`{name}` is a whole number from 0, not {text!r:.40}.")
        return int(text)

    def limit(self) -> int:
        """How many entries a page has.

        Raises:
            InputError: It is no whole number.
        """
        return min(self.whole("limit", 100), _MOST_ROWS)

    def number(self, name: str) -> float | None:
        """A number; None where it is not given.

        Raises:
            InputError: It is none.
        """
        text = self.texts.get(name)
        try:
            value = None if text is None else float(text)
        except ValueError:
            value = float("nan")
        if value is not None and value != value:  # noqa: PLR0124 - NaN is no number
            raise InputError(f"`{name}` is a number, not {text!r:.40}.")
        return value

    def yes_no(self, name: str) -> bool | None:
        """Yes, no, or None where it is not given.

        Raises:
            InputError: It is something else.
        """
        text = self.texts.get(name)
        if text is not None and text not in _YES_NO:
            raise InputError(f"`{name}` is `yes` or `no`, not {text!r:.40}.")
        return None if text is None else _YES_NO[text]

    def choice(self, name: str, known: tuple[str, ...]) -> str:
        """One of some words; the first unless given.

        Raises:
            InputError: It is none of them.
        """
        text = self.texts.get(name, known[0])
        if text not in known:
            raise InputError(f"`{name}` is one of {', '.join(known)}, not {text!r:.40}.")
        return text

    def samples(self) -> SampleQuery:
        """Which samples are wanted.

        Raises:
            InputError: A value is not of its kind.
        """
        return SampleQuery(
            metric=self.texts.get("metric"),
            min=self.number("min"),
            max=self.number("max"),
            passed=self.yes_no("passed"),
            unstable=self.yes_no("unstable"),
            cause=self.texts.get("cause"),
            only=self.many("only"),
            min_ms=self.number("min_ms"),
            max_ms=self.number("max_ms"),
            text=self.texts.get("text", ""),
            fields=self._fields(),
            sort=self.texts.get("sort", "position"),
            descending=self.choice("order", ("asc", "desc")) == "desc",
        )

    def changes(self) -> ChangeQuery:
        """Which samples of a comparison are wanted.

        Raises:
            InputError: A value is not of its kind.
        """
        return ChangeQuery(
            statuses=tuple(part for value in self.many("status") for part in value.split(",")),
            metric=self.texts.get("metric"),
            text=self.texts.get("text", ""),
            fields=self._fields(),
            sort=self.texts.get("sort", "change"),
            descending=self.choice("order", ("asc", "desc")) == "desc",
        )

    def grid(self) -> GridQuery:
        """Which samples of an experiment are wanted.

        Raises:
            InputError: A value is not of its kind.
        """
        return GridQuery(
            columns=self.many("column"),
            show=self.choice("show", SHOWN),
            failing=self.texts.get("failing"),
            metric=self.texts.get("metric"),
            text=self.texts.get("text", ""),
            fields=self._fields(),
            sort=self.choice("sort", SORTS),
        )

    def queue(self) -> QueueRequest:
        """How samples come to a person who labels.

        Raises:
            InputError: A value is not of its kind.
        """
        # A name may hold a comma, so that each stands in a parameter of its own.
        names = tuple(filter(None, self.many("metric")))
        return QueueRequest(
            run=self.texts.get("run", "latest"),
            order=self.texts.get("order", "random"),
            metrics=names,
            n=self.whole("n", 50),
            seed=self.whole("seed", 0),
        )

    def _fields(self) -> tuple[str, ...]:
        fields = tuple(part for value in self.many("in") for part in value.split(",")) or TEXT_FIELDS
        if unknown := [name for name in fields if name not in TEXT_FIELDS]:
            raise InputError(f"`in` names {', '.join(TEXT_FIELDS)}, not {unknown[0]!r:.40}.")
        return fields
