"""Reading the `gate` section of a suite into rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypeAlias

from deemster.errors import ConfigurationError, Issue, did_you_mean
from deemster.formats.json_values import kind_of

EVERY = "*"
Place: TypeAlias = Callable[[tuple[str | int, ...]], str]

_AGGREGATE = ("min_aggregate_success", "min_aggregate_score")
KEYS = ("min_macro_f1", "min_pass_rate", *_AGGREGATE, "metrics", "cohorts", "max_unscored", "budget", "decision", "on")
_METRIC = ("min_pass_rate", "min_mean", "max_mean", "on")
_COHORT = ("min_pass_rate", "min_macro_f1", *_AGGREGATE, "metrics", "min_samples", "on")
_BUDGET = ("max_cost_usd", "max_p95_latency_s")
_SHARE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


class Rule(NamedTuple):
    """One bound on one number.

    Attributes:
        name: Its path in the suite, as reports show it.
        quantity: What it looks at.
        bound: The bound.
        where: Where it stands, for messages.
        metric: The metric it is about, if any.
        cohort: The cohort it is about, `*` for each, if any.
        upper: Whether the bound is a maximum.
        on: `point` compares the estimate, `lower` the unfavourable end of its interval.
        share: Whether an unscored bound is a share of the marks.
    """

    name: str
    quantity: str
    bound: float
    where: str
    metric: str | None = None
    cohort: str | None = None
    upper: bool = False
    on: Literal["point", "lower"] = "point"
    share: bool = False


class Allowance(NamedTuple):
    """How many marks may stay unscored: a count, or a share of all marks."""

    bound: float
    share: bool

    def __str__(self) -> str:
        return f"{self.bound:.4g}" if not self.share else f"{self.bound * 100:.4g}%"

    def exceeded(self, unscored: int, marks: int) -> bool:
        """Whether so many unscored marks are too many."""
        return (unscored / marks if self.share else unscored) > self.bound


NONE_UNSCORED = Allowance(0.0, share=False)


class Gate(NamedTuple):
    """The rules of a gate.

    Attributes:
        rules: In the order of the suite.
        min_samples: Per cohort (`*` for each), the samples it takes to be gated, and where that stands.
        decision: Whether inconclusive is an answer of its own.
        allowance: The unscored marks allowed, where the gate says so.
        idle: Metrics that the suite has and this run was told to leave out; rules about them are skipped.
    """

    rules: tuple[Rule, ...] = ()
    min_samples: Mapping[str, tuple[int, str]] = {}
    decision: Literal["two-way", "three-way"] = "two-way"
    allowance: Allowance | None = None
    idle: frozenset[str] = frozenset()


def with_allowance(gate: Gate, allowance: Allowance) -> Gate:
    """A gate that allows so many unscored marks, whatever it said before."""
    rules = tuple(
        rule._replace(bound=allowance.bound, share=allowance.share) if rule.quantity == "unscored" else rule
        for rule in gate.rules
    )
    return gate._replace(rules=rules, allowance=allowance)


def read_allowance(value: Any) -> Allowance:
    """Read an allowance: a whole number, or a share such as `2%`.

    Raises:
        ConfigurationError: It is neither.

    >>> read_allowance("2%")
    Allowance(bound=0.02, share=True)
    """
    if isinstance(value, str) and (share := _SHARE.fullmatch(value)) and float(share[1]) <= 100:
        # Decimal, since 5.6 / 100 in binary lies below 7 / 125, and exactly the share allowed is not too much.
        return Allowance(float(Decimal(share[1]) / 100), share=True)
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if type(value) is int and value >= 0:
        return Allowance(float(value), share=False)
    raise ConfigurationError(f"The unscored allowance is a count such as 3 or a share such as 2%, not {value!r}.")


def read_gate(value: Any, *, place: Place) -> Gate:
    """Read the `gate` section of a suite.

    Args:
        value: The section as plain data.
        place: Says where a path inside the section stands, as `file:line`.

    Raises:
        ConfigurationError: Something in it cannot be used; all issues are listed.
    """
    reader = _Reader(place)
    gate = reader.gate(value)
    if reader.issues:
        raise ConfigurationError(reader.issues)
    return gate


class _Reader:
    """Reads the section and collects what is wrong with it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.issues: list[Issue] = []
        self.rules: list[Rule] = []
        self.min_samples: dict[str, tuple[int, str]] = {}

    def gate(self, value: Any) -> Gate:
        section = self._map(value, (), KEYS)
        on = self._on(section, ())
        decision: Literal["two-way", "three-way"] = "two-way"
        allowance = None
        for key, entry in section.items():
            if key == "metrics":
                for name, rules in self._map(entry, (key,)).items():
                    self._metric(rules, (key, name), metric=name)
            elif key == "cohorts":
                for name, rules in self._map(entry, (key,)).items():
                    self._cohort(rules, name)
            elif key == "budget":
                for name in self._map(entry, (key,), _BUDGET):
                    self._rule((key, name), entry[name], quantity=name.removeprefix("max_"), limit=None)
            elif key == "max_unscored":
                allowance = self._allowance(entry)
            elif key == "decision":
                if entry not in ("two-way", "three-way"):
                    self._issue((key,), f"`decision` is `two-way` or `three-way`, not {entry!r}.")
                elif entry == "three-way":
                    decision = "three-way"
            elif key != "on":
                self._rule((key,), entry, quantity=key.removeprefix("min_"), on=on)
        return Gate(tuple(self.rules), self.min_samples, decision, allowance)

    def _metric(self, value: Any, path: tuple[str | int, ...], *, metric: str, cohort: str | None = None) -> None:
        rules = self._map(value, path, _METRIC)
        on = self._on(rules, path)
        for key, bound in rules.items():
            if key != "on":
                self._rule((*path, key), bound, quantity=key[4:], metric=metric, cohort=cohort, on=on)

    def _cohort(self, value: Any, cohort: str) -> None:
        path = ("cohorts", cohort)
        rules = self._map(value, path, _COHORT)
        on = self._on(rules, path)
        for key, bound in rules.items():
            if key == "metrics":
                for name, entry in self._map(bound, (*path, key)).items():
                    self._metric(entry, (*path, key, name), metric=name, cohort=cohort)
            elif key == "min_samples":
                if type(bound) is not int or bound < 0:
                    self._issue((*path, key), f"`min_samples` is a whole number of at least 0, not {bound!r}.")
                else:
                    self.min_samples[cohort] = (bound, self.place((*path, key)))
            elif key != "on":
                self._rule((*path, key), bound, quantity=key[4:], cohort=cohort, on=on)

    def _allowance(self, value: Any) -> Allowance | None:
        try:
            allowance = read_allowance(value)
        except ConfigurationError as error:
            self._issue(("max_unscored",), error.issues[0].message)
            return None
        where = self.place(("max_unscored",))
        self.rules.append(Rule("max_unscored", "unscored", allowance.bound, where, upper=True, share=allowance.share))
        return allowance

    def _rule(
        self,
        path: tuple[str | int, ...],
        bound: Any,
        *,
        quantity: str,
        metric: str | None = None,
        cohort: str | None = None,
        on: Literal["point", "lower"] = "point",
        limit: float | None = 1.0,
    ) -> None:
        number = isinstance(bound, (int, float)) and not isinstance(bound, bool)
        if not number or bound < 0 or (limit is not None and bound > limit):
            span = "a number of at least 0" if limit is None else "a number between 0 and 1"
            self._issue(path, f"`{path[-1]}` is {span}, not {bound!r}.")
            return
        name = ".".join(str(part) for part in path)
        upper = str(path[-1]).startswith("max_")
        self.rules.append(Rule(name, quantity, float(bound), self.place(path), metric, cohort, upper, on))

    def _on(self, rules: Mapping[str, Any], path: tuple[str | int, ...]) -> Literal["point", "lower"]:
        on = rules.get("on", "point")
        if on not in ("point", "lower"):
            self._issue((*path, "on"), f"`on` is `point` or `lower`, not {on!r}.")
        return "lower" if on == "lower" else "point"

    def _map(self, value: Any, path: tuple[str | int, ...], known: tuple[str, ...] | None = None) -> Mapping[str, Any]:
        name = ".".join(("gate", *map(str, path)))
        if not isinstance(value, Mapping):
            self._issue(path, f"`{name}` is a map, not {kind_of(value)}.")
            return {}
        if known is None:
            return value
        for key in value:
            if key not in known:
                self._issue((*path, key), f"`{key}` is no key of `{name}`. {did_you_mean(str(key), known)}")
        return {key: entry for key, entry in value.items() if key in known}

    def _issue(self, path: tuple[str | int, ...], message: str) -> None:
        self.issues.append(Issue(message, self.place(path)))
