"""Flags of commands that ask models: cache, budget, network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from deemster.cli.options import NONE, Command, Decorator, Flags, group_flags
from deemster.errors import ConfigurationError, Issue, visible

if TYPE_CHECKING:
    from deemster.engine.model_access import ModelAccess, ModelCalls


ANSWER_CACHE = ".deemster/answers.jsonl"
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?(?=usd)|[0-9]+(?=tokens))(usd|tokens)", re.ASCII)


dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Count the requests to models and estimate their cost; send none."
)


class ModelOptions(NamedTuple):
    """How models may be called.

    Attributes:
        models: The file that names them; None where none was given.
        limits: Cache, budget and network.
    """

    models: str | None
    limits: ModelCalls

    def access(self, *, calls: bool = True) -> ModelAccess:
        """Access to the models of the file.

        Args:
            calls: Whether models are going to be called; otherwise keys and variables need not be set.

        Raises:
            ConfigurationError: There is no file, something in it cannot be used, or a budget is none.
        """
        from deemster.engine.model_access import load_model_access

        issues = self.limits.issues()
        if self.models is None:
            issues.append(Issue("A judge needs a model: name a file with a `models` section by `--models FILE`."))
        if issues or self.models is None:
            raise ConfigurationError(issues)
        return load_model_access(self.models, self.limits, calls=calls)


class _Budget(click.ParamType[Any]):
    """An amount with its unit, such as `2usd` or `50000tokens`, converted to the name and value of its limit."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float | int]:
        """Convert the argument.

        Raises:
            BadParameter: It is no amount of dollars or tokens.
        """
        match = _AMOUNT.fullmatch(str(value))
        if match is None:
            shown = visible(str(value), limit=40)
            return self.fail(f"`{shown}` is no budget: give dollars or tokens, 2usd or 50000tokens.", param, ctx)
        amount, unit = match.groups()
        return ("budget_usd", float(amount)) if unit == "usd" else ("budget_tokens", int(amount))


budget_option = click.option(
    "--budget",
    "budgets",
    type=_Budget(),
    multiple=True,
    metavar="LIMIT",
    help="Stop before it costs more than 2usd, or 50000tokens.",
)


CACHE_OPTIONS: Sequence[Decorator] = (
    click.option(
        "--cache",
        metavar="FILE|none",
        default=ANSWER_CACHE,
        help="Keep answers here, not in .deemster/answers.jsonl.",
    ),
    click.option("--offline", is_flag=True, help="Send nothing: cache, recordings, embedded models only."),
)


def collect_limits(flags: Flags) -> ModelCalls:
    """Take the flags of cache, budget and network out of all flags; a command may lack that of the budget."""
    from deemster.engine.model_access import ModelCalls

    cache = flags.pop("cache")
    return ModelCalls(
        None if cache == NONE else Path(cache), offline=flags.pop("offline"), **dict(flags.pop("budgets", ()))
    )


def call_options(command: Command) -> Command:
    """Add the flags of budget, cache and working offline; the command receives them as one ``limits``."""
    return group_flags(command, "limits", collect_limits, (budget_option, *CACHE_OPTIONS))


def cache_options(command: Command) -> Command:
    """Add the flags of the answer cache and of working offline; the command receives them as one ``limits``."""
    return group_flags(command, "limits", collect_limits, CACHE_OPTIONS)


def model_options(command: Command) -> Command:
    """Add the flags of calling models; the command receives them as one ``models``."""
    models = click.option("--models", metavar="FILE", help="A file with a `models` section, such as a suite.")
    options = (models, budget_option, *CACHE_OPTIONS)
    return group_flags(
        command, "models", lambda flags: ModelOptions(flags.pop("models"), collect_limits(flags)), options
    )
