"""Flags of commands that store a run or go on with one, and what they ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from deemster.cli.console import note
from deemster.cli.storing import PLACE, opened, store_option
from deemster.errors import ConfigurationError
from deemster.evaluation import Keeping

_F = TypeVar("_F", bound=Callable[..., Any])
LAST = ""


class Kept(NamedTuple):
    """Where a run is kept, and which one is gone on with."""

    store: str
    is_off: bool
    durable: bool
    resume: str | bool | None
    allow_changed: bool

    def check(self) -> None:
        """Refuse flags that do not go together.

        Raises:
            ConfigurationError: They do not.
        """
        if self.is_off and self.resume:
            raise ConfigurationError("`--resume` goes on with a stored run, and `--no-store` stores none.")
        if self.allow_changed and not self.resume:
            raise ConfigurationError("`--allow-changed` is for `--resume`.")

    def hint(self, keeping: Keeping | None) -> str:
        """What a command that is to find the run again has to say of the store; nothing where it finds it by itself."""
        return "" if keeping is None or self.store == PLACE else f" --store {keeping.store.where}"

    @contextmanager
    def opened(self) -> Iterator[Keeping | None]:
        """How the run is stored, with the store open; None where it is not stored.

        Raises:
            StoreError: The store cannot be opened.
        """
        if self.is_off:
            yield None
            return
        with opened(self.store, durable=self.durable, create=True) as store:
            yield Keeping(store, self.resume, self.allow_changed, tell=note)


def keeping_options(command: _F) -> _F:
    """Add the flags; the command receives them as one ``kept``."""

    @functools.wraps(command)
    def collected(**options: Any) -> Any:
        resume = options.pop("resume")
        kept = Kept(
            options.pop("store"),
            options.pop("no_store"),
            options.pop("durable"),
            True if resume == LAST else resume,
            options.pop("allow_changed"),
        )
        return command(kept=kept, **options)

    for option in reversed(_options()):
        collected = option(collected)
    return collected  # type: ignore[return-value]


def _run_name(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The run to go on with; `--resume` takes the word that follows it, which may have been meant as the file."""
    if value and Path(value).is_file():
        raise click.BadParameter(f"`{value}` is a file, not a run: write `--resume` after it.")
    return value


def _options() -> list[Callable[[Any], Any]]:
    return [
        store_option,
        click.option("--no-store", is_flag=True, help="Store nothing: the run ends with its report."),
        click.option("--durable", is_flag=True, help="Commit every sample by itself: slower, and no kill loses one."),
        click.option(
            "--resume",
            metavar="[RUN]",
            is_flag=False,
            flag_value=LAST,
            callback=_run_name,
            help="Go on with a stored run, by default the last unfinished one; write it after the file.",
        ),
        click.option(
            "--allow-changed", is_flag=True, help="Resume although something changed; the report is marked as mixed."
        ),
    ]
