"""Where a run is stored, and whether it resumes an earlier one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from deemster.engine.kept_prompts import WhichPrompts, check_keep_prompts
from deemster.store import Store, open_store


class RunStorage:
    """Where a run is stored, and whether it resumes an earlier one.

    Args:
        store: The store, or what opens it when it is needed first: bad input leaves no store behind.
        resume: The id of the run to resume; True for the last unfinished one of its suite or dataset; None for a new
            run.
        allow_changed: Whether a run may be resumed although its identity changed.
        tell: Gets a sentence about the run that is resumed.
        begun: Gets the id of the run once it is begun or resumed.
        keep_prompts: Which prompts of judges are kept: of marks that did not pass, of all, or none.
    """

    def __init__(
        self,
        store: Store | Callable[[], Store],
        resume: str | bool | None = None,  # noqa: FBT001 - as users give it
        allow_changed: bool = False,  # noqa: FBT001, FBT002 - as above
        tell: Callable[[str], None] = lambda _: None,
        *,
        begun: Callable[[str], None] = lambda _: None,
        keep_prompts: WhichPrompts = "failed",
    ) -> None:
        self.resume = resume
        self.allow_changed = allow_changed
        self.tell = tell
        self.begun = begun
        self.keep_prompts = keep_prompts
        self._store = store
        self._opens = not isinstance(store, Store)

    @property
    def store(self) -> Store:
        """The store.

        Raises:
            StoreError: It cannot be opened.
        """
        if not isinstance(self._store, Store):
            self._store = self._store()
        return self._store

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._opens and isinstance(self._store, Store):
            self._store.close()


class NotStored:
    """A run that is kept nowhere: it ends with its report."""

    store: None = None
    resume: None = None

    def close(self) -> None:
        """Close nothing."""


NOT_STORED = NotStored()
StoredOrNot: TypeAlias = RunStorage | NotStored


class Storage(NamedTuple):
    """Where runs are stored, and which one is resumed.

    Attributes:
        where: The store: a file, `postgresql://...`, or one that is open.
        resume: The run to resume: its id, or True for the last unfinished one of the dataset; None for a new run.
        durable: Whether every sample is committed by itself; a store that is open has its own way.
        allow_changed: Whether a run may be resumed although something changed; a grading is then `mixed`.
    """

    where: Store | str | Path
    resume: str | bool | None = None
    durable: bool = False
    allow_changed: bool = False


def build_storage(
    storage: Storage | Store | str | Path | None,
    *,
    keep_prompts: WhichPrompts = "failed",
    tell: Callable[[str], None] = lambda _: None,
    begun: Callable[[str], None] = lambda _: None,
) -> StoredOrNot:
    """Where a run is stored, as a program or a command gives it.

    Args:
        storage: Where, and what is resumed; None for a run that is not stored.
        keep_prompts: Which prompts of judges are kept, as `RunStorage` has it.
        tell: Gets a sentence about the run that is resumed.
        begun: Gets the id of the run once it is begun or resumed.

    Raises:
        ConfigurationError: `keep_prompts` is no such word.
    """
    which = check_keep_prompts(keep_prompts)
    if storage is None:
        return NOT_STORED
    where, resume, durable, allow_changed = storage if isinstance(storage, Storage) else Storage(storage)
    opens = where if isinstance(where, Store) else partial(open_store, where, durable=durable)
    return RunStorage(opens, resume, allow_changed, tell, begun=begun, keep_prompts=which)
