"""Flags of `deemster run` that replace what a suite says."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from deemster.cli.options import BUDGET_OPTIONS, CACHE_OPTIONS, Command, Decorator, add_options
from deemster.errors import ConfigurationError

DELTA = 0.05


def override_options(command: Command) -> Command:
    """Add the flags; the command receives them as one ``overrides``."""

    @functools.wraps(command)
    def collect(**flags: Any) -> Any:
        from deemster.cli._load_suite_job import Overrides
        from deemster.results import read_allowance

        given = {name: flags.pop(name) for name in _NAMES}
        no_cache, cache, allowance = given.pop("no_cache"), given.pop("cache"), given.pop("max_unscored")
        overrides = Overrides(
            **{**given, "thresholds": _parse_thresholds(given["thresholds"])},
            allowance=read_allowance(allowance) if allowance is not None else None,
            cache=None if no_cache else Path(cache),
        )
        return command(overrides=overrides, **flags)

    return add_options(collect, _OPTIONS)  # type: ignore[return-value]


def _parse_thresholds(given: tuple[str, ...]) -> dict[str, float]:
    parsed = {}
    for text in given:
        name, sign, value = text.rpartition("=")
        try:
            parsed[name] = float(value)
        except ValueError:
            sign = ""
        if not sign or not name:
            raise ConfigurationError(f"`--threshold` is NAME=T, such as rouge-l=0.7, not `{text}`.")
    return parsed


_NAMES = (
    "outputs",
    "repetitions",
    "delta",
    "metrics",
    "thresholds",
    "concurrency",
    "timeout_s",
    "max_unscored",
    "budget_usd",
    "budget_tokens",
    "cache",
    "no_cache",
    "offline",
    "strict",
)
_OPTIONS: Sequence[Decorator] = (
    click.option("--outputs", metavar="FILE", help="Grade saved outputs; call no target."),
    click.option("--repetitions", type=int, metavar="R", help="Run each sample R times."),
    click.option(
        "--delta",
        type=float,
        default=DELTA,
        show_default=True,
        help="The difference that repeated runs should be able to show.",
    ),
    click.option(
        "--metric",
        "metrics",
        multiple=True,
        metavar="SPEC",
        help="Use this metric, with its default options, in place of the suite's; repeatable.",
    ),
    click.option(
        "--threshold", "thresholds", multiple=True, metavar="NAME=T", help="Set a metric's pass mark; repeatable."
    ),
    click.option("--concurrency", type=int, metavar="N", help="How many calls of the target may be under way at once."),
    click.option(
        "--timeout", "timeout_s", type=float, metavar="SECONDS", help="Stop the run after so long; it can be resumed."
    ),
    click.option("--max-unscored", metavar="COUNT|SHARE%", help="Unscored marks allowed; default 0."),
    *BUDGET_OPTIONS,
    *CACHE_OPTIONS,
    click.option("--strict", is_flag=True, help="Absent metadata or expected output is an error before the run."),
)
