"""Flags that say who grades and how, and the grader and models they make."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from deemster.cli.options import Asked
from deemster.errors import ConfigurationError, Issue
from deemster.formats import read_document
from deemster.formats.json_values import kind_of
from deemster.judges.criterion_grader import CALLS, CriterionGrader
from deemster.judges.grader_section import PLAIN, grader_of
from deemster.judges.judge_cascade import WAYS
from deemster.models import read_models
from deemster.records.model_requests import JUDGE
from deemster.rubrics.rubric_scoring import STRATEGIES
from deemster.runs.model_access import ModelAccess, budget_issues

_F = TypeVar("_F", bound=Callable[..., Any])
# Flags that are settings of a grader as they are.
_PLAIN = tuple(name for name in PLAIN if name != "system_prompt")


class Inline(NamedTuple):
    """A model that is named by flags alone.

    Attributes:
        base_url: Where its server is.
        model: What the server calls it.
        api_key_env: The variable that holds the key.
    """

    base_url: str | None
    model: str | None
    api_key_env: str | None

    def asking(self, asked: Asked, *, calls: bool) -> ModelAccess:
        """How models may be asked: those of a file, or the one of the flags, as `judge`.

        Args:
            asked: What the other flags say.
            calls: Whether they are going to be asked.

        Raises:
            ConfigurationError: Both are given, or neither, or one cannot be used.
        """
        given = {key: value for key, value in self._asdict().items() if value is not None}
        if not given and asked.models is None:
            issues = budget_issues(asked.budget_usd, asked.budget_tokens)
            issues.append(Issue("A judge needs a model: `--base-url URL --model NAME`, or `--models FILE`."))
            raise ConfigurationError(issues)
        if not given:
            return asked.asking(calls=calls)
        issues = [
            Issue(
                f"`--{key.replace('_', '-')}` names a model, and `--models` names a file of them; give one of the two."
            )
            for key in given
            if asked.models is not None
        ]
        issues += budget_issues(asked.budget_usd, asked.budget_tokens)
        if issues:
            raise ConfigurationError(issues)
        roles = read_models(
            {JUDGE: given},
            place=lambda path: f"--{str(path[-1]).replace('_', '-')}",
            environ=os.environ,
            calls=calls and not asked.offline,
        )
        money = None if asked.budget_usd is None else Decimal(str(asked.budget_usd))
        return ModelAccess(roles, asked.cache, money, asked.budget_tokens, asked.offline)


class Jury(NamedTuple):
    """What the flags say of a grader.

    Attributes:
        judges: Roles, or `ID=ROLE`.
        settings: A file of settings.
        flags: Settings that were given as flags.
        cascade: The confidence below which the others are asked after the first judge.
        by: How sure the first judge is.
        first_repeats: How often the first judge of a cascade is asked.
    """

    judges: tuple[str, ...]
    settings: str | None
    flags: Mapping[str, Any]
    cascade: float | None
    by: str | None
    first_repeats: int | None

    def grader(self) -> CriterionGrader:
        """The grader.

        Raises:
            ConfigurationError: Something in the flags or the file cannot be used; all issues are listed.
        """
        given, folder = ({}, None) if self.settings is None else _read(self.settings)
        given |= self.flags
        if self.judges:
            given["judges"] = [_judge(text) for text in self.judges]
        given.setdefault("judges", [JUDGE])
        stray = {"--cascade-by": self.by, "--cascade-repeats": self.first_repeats}
        lost = [flag for flag, value in stray.items() if value is not None and self.cascade is None]
        if lost:
            raise ConfigurationError([Issue(f"`{flag}` needs `--cascade`.") for flag in lost])
        if self.cascade is not None:
            wanted = {"unsure_below": self.cascade, "by": self.by, "repeats": self.first_repeats}
            given["cascade"] = {key: value for key, value in wanted.items() if value is not None}
        try:
            return grader_of(given, folder=folder)
        except ConfigurationError as error:
            raise ConfigurationError(
                issue._replace(where=issue.where or self.settings) for issue in error.issues
            ) from None


def _judge(text: str) -> Any:
    name, sign, role = text.partition("=")
    return {"id": name, "model": role} if sign else text


def _read(path: str) -> tuple[dict[str, Any], Path]:
    """The settings of a file, and the folder its paths are relative to."""
    document = read_document(path, error=ConfigurationError)
    if not isinstance(document.value, dict):
        message = f"Settings of a grader are a map with keys such as `repeats`, not {kind_of(document.value)}."
        raise ConfigurationError(Issue(message, document.where()))
    return dict(document.value), Path(path).parent


def jury_options(command: _F) -> _F:
    """Add the flags; the command receives them as one ``jury`` and one ``inline``."""

    @functools.wraps(command)
    def collected(**options: Any) -> Any:
        inline = Inline(*(options.pop(key) for key in ("base_url", "model", "api_key_env")))
        flags = {key: value for key in _PLAIN if (value := options.pop(key)) is not None}
        own = (options.pop(key) for key in ("cascade", "cascade_by", "cascade_repeats"))
        jury = Jury(options.pop("judges"), options.pop("settings"), flags, *own)
        return command(jury=jury, inline=inline, **options)

    for option in reversed(_options()):
        collected = option(collected)
    return collected  # type: ignore[return-value]


def _options() -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--judge",
            "judges",
            metavar="ROLE",
            multiple=True,
            help="Ask this model role, or ID=ROLE; repeat it for a panel. `judge` unless given.",
        ),
        click.option("--base-url", metavar="URL", help="Without --models: where the server of the judge is."),
        click.option("--model", metavar="NAME", help="Without --models: what that server calls the model."),
        click.option("--api-key-env", metavar="VARIABLE", help="Without --models: the variable with the key."),
        click.option("--settings", metavar="FILE", help="Settings of the grader as a map; flags win over them."),
        click.option("--calls", type=click.Choice(CALLS), help="A call for each criterion, or for the whole rubric."),
        click.option("--aggregation", metavar="RULE", help="How votes on binary criteria become one; majority."),
        click.option("--ordinal-aggregation", metavar="RULE", help="How votes on ordinal criteria become one; mean."),
        click.option("--nominal-aggregation", metavar="RULE", help="How votes on nominal criteria become one; mode."),
        click.option("--abstention", type=click.Choice(STRATEGIES), help="What an abstention does; skip."),
        click.option("--partial-credit", type=float, metavar="SHARE", help="What `partial` grants; 0.5."),
        click.option("--normalize/--raw", default=None, help="Scores in [0, 1], or weighted sums."),
        click.option("--shuffle-options/--no-shuffle-options", default=None, help="Show options in varied orders."),
        click.option("--auto-na/--no-auto-na", default=None, help="Offer an abstention where the rubric has none."),
        click.option("--repeats", type=int, metavar="K", help="Ask each judge so often; 1."),
        click.option("--seed", type=int, metavar="N", help="What everything random derives from; 0."),
        click.option("--temperature", type=float, metavar="T", help="How freely judges choose; 0, or 0.7 if repeated."),
        click.option("--max-tokens", type=int, metavar="N", help="The longest reply."),
        click.option(
            "--probabilities/--no-probabilities", default=None, help="Ask for log-probabilities: how sure judges are."
        ),
        click.option(
            "--cascade",
            type=float,
            metavar="CONFIDENCE",
            help="Ask the first judge first, and the others where it is less sure than this.",
        ),
        click.option("--cascade-by", type=click.Choice(WAYS), help="With --cascade: how sure it is; probability."),
        click.option("--cascade-repeats", type=int, metavar="K", help="With --cascade: ask the first judge so often."),
    ]
