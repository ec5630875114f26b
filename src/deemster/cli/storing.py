"""The flag of every command that reads or writes the store, and opening what it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from deemster.store import Store

_F = TypeVar("_F", bound=Callable[..., Any])
PLACE = ".deemster/runs.db"
VARIABLE = "DEEMSTER_STORE"


def store_option(command: _F) -> _F:
    """Add `--store`; the command receives the place as the string ``store`` and opens it with `opened`."""
    option = click.option(
        "--store",
        metavar="PATH|URL",
        envvar=VARIABLE,
        default=PLACE,
        show_default=True,
        show_envvar=True,
        callback=_of_the_group,
        help="Where runs are kept: an SQLite file, or postgresql://...",
    )
    return option(command)


def opened(store: str, *, durable: bool = False, create: bool = False) -> Store:
    """The store at a place, to be used as a context manager.

    Args:
        store: What `store_option` gave.
        durable: Commit every execution before going on.
        create: Make one where there is none.

    Raises:
        StoreError: It cannot be opened, or there is none.
    """
    from deemster.store import open_store  # noqa: PLC0415 - loads a database, which a usage error does not need

    return open_store(store, durable=durable, create=create)


def _of_the_group(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """The place given before a subcommand, where none is given after it."""
    parent = context.parent
    name = parameter.name or ""
    told = ParameterSource.COMMANDLINE
    if parent is None or context.get_parameter_source(name) is told or parent.get_parameter_source(name) is not told:
        return value
    return str(parent.params[name])
