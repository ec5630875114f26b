"""`deemster models`: checks the models that a suite names."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import click

from deemster.cli._command import VerbGroup
from deemster.cli._console import note, write_out
from deemster.errors import ExitCode, visible

if TYPE_CHECKING:
    from deemster.evaluation.check_models import RoleCheck

_HEAD = ("role", "model", "works", "latency", "tokens", "price")


@click.group("models", cls=VerbGroup, short_help="Check the models that a suite names.")
def command() -> None:
    """Check the models that a suite names."""


@command.command("check", short_help="Send each model of a suite one small request.")
@click.argument("suite", type=click.Path())
def check(*, suite: str) -> None:
    """Send each model of a suite one small request, and explain what is wrong where that fails.

    A file with nothing but a section `models` will do, as `deemster grade --models` takes it.

    A chat model is asked for a JSON object, an embedding model for the vector of a word. No request is repeated, and no
    answer is cached. Exit codes: 0 every model can be used, 2 bad input, or a model cannot be used.
    """
    from deemster.engine.run_sync import run_sync
    from deemster.evaluation.check_models import check_models
    from deemster.evaluation.suite import load_suite
    from deemster.models.clock import clock_from_environment
    from deemster.text.terminal_layout import list_text
    from deemster.text.text_sections import TextTable

    checks = run_sync(
        check_models(load_suite(suite, calls_target=False, must_run=False), clock=clock_from_environment())
    )
    if not checks:
        click.echo("No metric of this suite asks a model.")
        return
    write_out(list_text(TextTable(_HEAD, [_row(each) for each in checks])))
    failing = [each for each in checks if each.issue is not None]
    for each in failing:
        note("")
        note("\n".join(_explain(each)))
    if failing:
        raise click.exceptions.Exit(ExitCode.BAD_INPUT)


def _row(check: RoleCheck) -> tuple[str, ...]:
    model = visible(check.model or "-", limit=60)
    if check.issue is not None:
        return check.role, model, "cannot be used", "-", "-", "-"
    usage = check.usage
    latency = "-" if usage is None or usage.latency_ms is None else f"{usage.latency_ms:.0f} ms"
    counts = [] if usage is None else [usage.prompt_tokens, usage.completion_tokens]
    known = [f"{count:,}" for count in counts if count is not None]
    return check.role, model, check.works, latency, " + ".join(known) or "-", _format_price(check)


def _explain(check: RoleCheck) -> list[str]:
    first, *rest = (visible(line) for line in (check.issue or "").split("\n"))
    return [f"{check.role}: {first}", *(f"  {line}" for line in [*rest, *filter(None, [check.advice])])]


def _format_price(check: RoleCheck) -> str:
    """What the request cost, in US dollars.

    >>> from deemster.records import Usage
    >>> from deemster.evaluation.check_models import RoleCheck
    >>> _format_price(RoleCheck("judge", usage=Usage(cost_usd=Decimal("0.0000125")))), _format_price(RoleCheck("judge"))
    ('$0.000012', 'unknown')
    """
    if check.is_free:
        return "free"
    cost = None if check.usage is None else check.usage.cost_usd
    return "unknown" if cost is None else f"${cost.quantize(Decimal('0.000001'))}"
