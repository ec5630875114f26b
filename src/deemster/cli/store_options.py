"""Flags of commands that read or write a store, and how a run is named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from deemster.cli._console import note
from deemster.cli._interruption import TO_CONTINUE
from deemster.cli.options import NONE, Command, Decorator, Flags, add_options, group_flags, take_flags
from deemster.errors import ConfigurationError

if TYPE_CHECKING:
    from deemster.engine.kept_prompts import WhichPrompts
    from deemster.runs.run_storage import Storage, StoredOrNot
    from deemster.store import Store


STORE = ".deemster/runs.db"
STORE_VARIABLE = "DEEMSTER_STORE"
LAST_RUN = ""


def is_run_name(outputs: str) -> bool:
    """Whether outputs are those of a run, stored or in a run file, and not those of a file of outputs."""
    from deemster.formats.read_file import EXTENSIONS
    from deemster.store.open_runs import is_run_file

    path = Path(outputs)
    if path.is_file():
        return is_run_file(path)
    is_of_experiment = len(path.parts) > 1 and (path.parts[0] == "latest" or path.parts[0].startswith("exp-"))
    return path.suffix.lower() not in EXTENSIONS and (len(path.parts) == 1 or is_of_experiment)


def store_option(command: Command) -> Command:
    """Add `--store`; the command receives the place as the string ``store`` and opens it with `open_run_store`.

    Without it, the store is the nearest one above the suite or the dataset that the command names, else above the
    current folder.
    """
    return add_options(command, [_store_flag("Where runs are, if not in the nearest .deemster/runs.db.")])


def _store_flag(help_text: str) -> Decorator:
    return click.option(
        "--store",
        metavar="FILE|URL",
        envvar=STORE_VARIABLE,
        callback=_choose_store,
        help=help_text,
    )


def open_run_store(store: str, *, durable: bool = False, create: bool = False) -> Store:
    """The store at a place, to be used as a context manager.

    Args:
        store: What `store_option` gave.
        durable: Commit every execution before going on.
        create: Make one where there is none.

    Raises:
        ConfigurationError: It is `none`.
        StoreError: It cannot be opened, or there is none.
    """
    from deemster.store import open_store

    if store == NONE:
        raise ConfigurationError("`--store none` is for a run that is not kept; this reads or writes a store.")
    return open_store(store, durable=durable, create=create)


def is_report_file(run: str) -> bool:
    """Whether a name is that of a report's file, not of a stored run or a run file."""
    from deemster.store.open_runs import is_run_file

    return not is_run_file(run) and (Path(run).is_file() or Path(run).suffix == ".json")


@contextmanager
def open_run(store: str, run: str) -> Iterator[tuple[Store, str]]:
    """The store that holds a run, and the run's name there; a run file is taken into a temporary store.

    Args:
        store: What `store_option` gave.
        run: The run, as the user names it.

    Raises:
        StoreError: The store cannot be opened, or the file is no run file.
    """
    from deemster.store.open_runs import open_runs

    with open_runs(store, [run]) as (opened, (name,)):
        yield opened, name


def _choose_store(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """The place given before a subcommand, where none is given after it; the nearest store where none is given."""
    parent, name = context.parent, parameter.name or ""
    typed = ParameterSource.COMMANDLINE
    if parent is not None and parent.get_parameter_source(name) is typed:
        value = value if context.get_parameter_source(name) is typed else str(parent.params[name])
    if value is not None:
        return value
    # Click has read what is given, such as the suite, before it comes to what is not.
    files = (Path(str(context.params[key])) for key in ("suite", "dataset") if context.params.get(key))
    return find_store(next((file.parent for file in files if file.is_file()), None))


def find_store(folder: str | Path | None = None) -> str:
    """The file of the nearest store: `.deemster/runs.db` in a folder or above it, as far as its repository reaches.

    A store that belongs to another user is not taken.

    Args:
        folder: Where the search begins. Where it finds none, it begins again at the current folder.

    Returns:
        The path; that of a store to be made in the current folder where there is none.
    """
    here = Path.cwd()
    for start in ([] if folder is None else [Path(folder).resolve()]) + [here]:
        for place in (start, *start.parents):
            if _is_own_file(place / STORE):
                return STORE if place == here else os.path.relpath(place / STORE)
            if (place / ".git").exists():
                break
    return STORE


def _is_own_file(path: Path) -> bool:
    try:
        # Windows has no user numbers.
        return path.is_file() and (not hasattr(os, "getuid") or path.stat().st_uid == os.getuid())
    except OSError:
        return False


def place_of(storage: Storage | None) -> str:
    """The store as `--store` says it."""
    return NONE if storage is None else str(storage.where)


def check_storage(storage: Storage | None) -> None:
    """Refuse flags that contradict each other.

    Raises:
        ConfigurationError: They do.
    """
    if storage is not None and storage.allow_changed and not storage.resume:
        raise ConfigurationError("`--allow-changed` is for `--resume`.")


def store_flag(storage: StoredOrNot) -> str:
    """The `--store` that another command needs to find a run; empty where it finds the run without."""
    if storage.store is None or storage.store.where == find_store():
        return ""
    return f" --store {storage.store.where}"


@contextmanager
def open_storage(
    storage: Storage | None, command: str, *, keep_prompts: WhichPrompts = "failed"
) -> Iterator[StoredOrNot]:
    """Where a run is stored. Its store is opened when it is needed first, and closed at the end.

    Args:
        storage: What the flags say; None for a run that is not stored.
        command: The command, as the user repeats it to continue a run that an error ended.
        keep_prompts: Whose prompts are stored.
    """
    from deemster.runs.run_storage import build_storage

    def note_begun(run: str) -> None:
        again = f"{command}{store_flag(stored)} --resume={run}"
        click.get_current_context().meta[TO_CONTINUE] = f"To continue: {again}"

    stored = build_storage(storage, keep_prompts=keep_prompts, tell=note, begun=note_begun)
    try:
        yield stored
    finally:
        stored.close()


def storage_options(command: Command) -> Command:
    """Add the flags of storing and resuming; the command receives them as one ``storage``, None for none."""
    return group_flags(command, "storage", _take_storage, _STORAGE)


def _take_storage(flags: Flags) -> Storage | None:
    from deemster.runs.run_storage import Storage

    flags["where"] = flags.pop("store")
    if flags["resume"] == LAST_RUN:
        flags["resume"] = True
    storage: Storage = take_flags(Storage, flags)

    if storage.where != NONE:
        return storage
    if storage.resume:
        raise ConfigurationError("`--resume` continues a stored run, and `--store none` stores none.")
    return None


_STORAGE: Sequence[Decorator] = (
    _store_flag("Not the nearest .deemster/runs.db; none keeps nothing."),
    click.option(
        "--resume",
        metavar="[=RUN]",
        is_flag=False,
        flag_value=LAST_RUN,
        help="Go on with the last unfinished run, or with RUN.",
    ),
    click.option("--allow-changed", is_flag=True, help="Resume although something changed: the report says so."),
)
