"""Models from a file and flags, for commands that have no suite."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import click

from deemster.documents import read_document
from deemster.documents.values import kind_of
from deemster.errors import ConfigurationError, Fault
from deemster.evaluation.asking import Asking, budget_faults
from deemster.model import read_models
from deemster.run.importing import imported

CACHE = ".deemster/answers.jsonl"
_P = ParamSpec("_P")
_T = TypeVar("_T")
LIMITING = (
    click.option("--budget-usd", type=float, metavar="USD", help="Stop before the models cost more."),
    click.option("--budget-tokens", type=int, metavar="N", help="Stop before the models use more tokens."),
    click.option(
        "--cache",
        metavar="FILE",
        default=CACHE,
        show_default=True,
        help="Where the models' answers are kept and looked up first.",
    ),
    click.option("--no-cache", is_flag=True, help="Ask the models anew, and keep nothing."),
    click.option(
        "--offline", is_flag=True, help="Ask nothing over the network: recordings, cache and embedded models only."
    ),
)
_OPTIONS = (
    click.option("--models", metavar="FILE", help="A file with a `models` section, such as a suite."),
    *LIMITING,
)


class Asked(NamedTuple):
    """What the flags say of how models may be asked.

    Attributes:
        models: The file that names them; None where none was given.
        cache: The file of remembered answers; None where nothing is kept.
        budget_usd: US dollars that must not be passed.
        budget_tokens: Tokens that must not be passed.
        offline: Whether nothing may be asked over the network.
    """

    models: str | None
    cache: Path | None
    budget_usd: float | None
    budget_tokens: int | None
    offline: bool

    def asking(self, *, calls: bool = True) -> Asking:
        """The same with the models read from their file.

        Args:
            calls: Whether they are going to be asked; otherwise keys and variables need not be set.

        Raises:
            ConfigurationError: There is no file, something in it cannot be used, or a budget is none.
        """
        faults = budget_faults(self.budget_usd, self.budget_tokens)
        if self.models is None:
            faults.append(Fault("A judge needs a model: name a file with a `models` section by `--models FILE`."))
        if faults or self.models is None:
            raise ConfigurationError(faults)
        document = read_document(self.models, error=ConfigurationError)
        if not isinstance(document.value, dict) or "models" not in document.value:
            found = "no `models`" if isinstance(document.value, dict) else kind_of(document.value)
            message = f"A file of models is a map with a section `models`, as a suite has it; here is {found}."
            raise ConfigurationError(Fault(message, document.where()))
        folder = Path(self.models).parent
        roles = read_models(
            document.value["models"],
            place=document.where,
            environ=os.environ,
            folder=folder,
            load=lambda path: imported(path, called="The client", search=folder),
            calls=calls and not self.offline,
        )
        money = None if self.budget_usd is None else Decimal(str(self.budget_usd))
        return Asking(roles, self.cache, money, self.budget_tokens, self.offline)


def asking_options(command: Callable[_P, _T]) -> Callable[..., _T]:
    """Give a command the flags of asking models; it gets them as one `asked`."""

    @functools.wraps(command)
    def called(
        *,
        models: str | None,
        budget_usd: float | None,
        budget_tokens: int | None,
        cache: str,
        no_cache: bool,
        offline: bool,
        **rest: Any,
    ) -> _T:
        asked = Asked(models, None if no_cache else Path(cache), budget_usd, budget_tokens, offline)
        return command(asked=asked, **rest)  # type: ignore[call-arg, arg-type]

    for option in reversed(_OPTIONS):
        option(called)
    return called
