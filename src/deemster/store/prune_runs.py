"""Chooses old runs to remove, and gives the space of removed runs back."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from deemster.store._begin_run import delete_abandoned_runs
from deemster.store._database import Connection
from deemster.store._run_table import OnDamage
from deemster.store.run_facts import RunRow, RunStatus
from deemster.store.run_store import Store

_TABLES = "contents, samples, outputs, marks, calls, prompts, columns, labels, scorings, baselines, runs"


class ReclaimedSpace(NamedTuple):
    """What was given back.

    Attributes:
        contents: How many contents of samples no run used any more.
        size: By how many bytes the file became smaller; None where there is no file.
    """

    contents: int
    size: int | None


def runs_to_prune(
    store: Store,
    *,
    keep: int | None = None,
    since: str | None = None,
    until: str | None = None,
    status: RunStatus | None = None,
    on_damage: OnDamage = None,
) -> list[RunRow]:
    """Runs that fit every condition that is given, the newest first; none where none is.

    A run that a living process writes is not among them, and neither is a baseline.

    Args:
        store: Where they are.
        keep: All but the newest so many of each suite, or of each dataset where there is no suite; an experiment counts
            as one.
        since: Only those begun at this time or later, in RFC 3339.
        until: Only those begun before this time.
        status: Only those of this status; `keep` counts no others then.
        on_damage: Called with a message for each damaged run, which is then left out; without it, damage raises.

    Raises:
        StoreError: The store cannot be read.
    """
    if all(condition is None for condition in (keep, since, until, status)):
        return []
    found: list[RunRow] = []
    baselines = {baseline.run for baseline in store.baselines()}
    seen: dict[tuple[str, str | None, str], set[str]] = defaultdict(set)
    for run in store.runs(status=status, on_damage=on_damage):
        group = (run.kind, run.suite, "" if run.suite is not None else run.dataset)
        seen[group].add(run.experiment or run.id)
        is_kept = (keep is not None and len(seen[group]) <= keep) or run.id in baselines
        is_in_time = (since is None or run.started_at >= since) and (until is None or run.started_at < until)
        if is_kept or not is_in_time:
            continue
        owner = store.owner(run.id)
        if owner is None or not owner.alive:
            found.append(run)
    return found


def reclaim_space(store: Store) -> ReclaimedSpace:
    """Remove contents of samples that no run uses, and give the space back to the system where that can be done.

    Raises:
        StoreError: The store cannot be written.
    """
    pool = store.pool
    delete_abandoned_runs(pool)
    is_file = pool.database.words["bytes"] == "BLOB"
    with pool.write_transaction() as connection:
        if not is_file:
            # A run that begins meanwhile must not refer to a content that is being deleted.
            connection.write("LOCK TABLE contents IN SHARE ROW EXCLUSIVE MODE")
        contents = connection.write(
            "DELETE FROM contents WHERE NOT EXISTS (SELECT 1 FROM samples WHERE samples.content = contents.number)"
        )
    with pool.connection() as connection:
        if not is_file:
            connection.read(f"VACUUM {_TABLES}")
            return ReclaimedSpace(contents, None)
        before = _size(connection)
        connection.read("VACUUM")
        connection.read("PRAGMA wal_checkpoint(TRUNCATE)")
        return ReclaimedSpace(contents, before - _size(connection))


def _size(connection: Connection) -> int:
    return int(connection.read("PRAGMA page_count")[0][0]) * int(connection.read("PRAGMA page_size")[0][0])
