"""Finds the stored run that a new one goes on with."""

from __future__ import annotations

from collections.abc import Callable

from deemster.errors import Issue, StoreError
from deemster.runs.run_storage import RunStorage
from deemster.store import RunRow, Store
from deemster.store.run_facts import TRAITS, RunKind

_UNFINISHED = ("running", "incomplete")


def find_resumed(
    storage: RunStorage,
    *,
    kind: RunKind,
    suite: str | None,
    dataset: str,
    accept: Callable[[RunRow], bool] = lambda _: True,
) -> RunRow | None:
    """The stored run that is to be resumed; None where a new one is to begin.

    Args:
        storage: Where it is stored, and what it resumes.
        kind: Its kind.
        suite: The name of its suite; None where it has none.
        dataset: The name of its dataset.
        accept: Whether a run that is not named by its id may be the one.

    Raises:
        StoreError: There is no run of that id, or it is of another kind.
    """
    if not storage.resume:
        return None
    row = choose_run(storage.store, storage.resume, kind=kind, suite=suite, dataset=dataset, accept=accept)
    if row is None:
        storage.tell(f"There is no {kind} to resume; this is a new one.")
    return row


def choose_run(
    store: Store,
    wanted: str | bool,  # noqa: FBT001 - what `resume` says
    *,
    kind: RunKind,
    suite: str | None,
    dataset: str | None = None,
    accept: Callable[[RunRow], bool] = lambda _: True,
) -> RunRow | None:
    """The run to resume: by its id, else the last unfinished one of the suite or dataset, else its last; or None.

    Args:
        store: Where it is stored.
        wanted: Its id, or True for the last one.
        kind: Its kind.
        suite: The name of its suite; None where it has none.
        dataset: The name of its dataset, where it has no suite.
        accept: Whether a run that is not named by its id may be the one.

    Raises:
        StoreError: There is no run of that id, or it is of another kind.
    """
    if isinstance(wanted, str):
        row = store.run(wanted, kind=kind)
        if row.kind != kind:
            message = f"`{row.id}` is a {row.kind}, which `{TRAITS[kind].command}` cannot resume."
            raise StoreError(Issue(message, store.where))
        return row

    runs = store.runs(suite=suite, dataset=None if suite else dataset, kind=kind)
    accepted = [run for run in runs if run.suite == suite and accept(run)]
    unfinished = [run for run in accepted if run.status in _UNFINISHED]
    return next(iter(unfinished or accepted), None)
