"""Finds runs: by conditions, or one by a name that people give it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deemster.errors import StoreError, did_you_mean, list_names, nearest, plural
from deemster.store._baseline_table import find_baseline
from deemster.store._database import Connection, storage_error, store_error
from deemster.store._row_encoding import clean_text
from deemster.store._run_table import BEGINNING, OnDamage, read_runs
from deemster.store.run_facts import TRAITS, RunFacts, RunRow

_GUESSES = 200
# The kind of run that only says more of another one.
_SERVING = next(kind for kind, traits in TRAITS.items() if traits.serves_a_run)


def find_run_number(connection: Connection, where: str, run_id: str) -> int:
    """The number of a run.

    Raises:
        StoreError: There is none of that id.
    """
    rows = connection.read("SELECT number FROM runs WHERE id = ?", (clean_text(run_id),))
    if not rows:
        raise store_error(where, f"The store holds no run `{run_id}`.")
    return int(rows[0][0])


def find_runs(
    connection: Connection,
    where: str,
    conditions: Mapping[str, str | None],
    *,
    limit: int | None = None,
    on_damage: OnDamage = None,
) -> list[RunRow]:
    """Runs that meet conditions, the newest first.

    Args:
        connection: A connection.
        where: How messages name the store.
        conditions: Conditions in SQL, each with its value; one without a value is left out.
        limit: At most so many.
        on_damage: Called with a message for each damaged run, which is then left out; without it, damage raises.

    Raises:
        StoreError: A run is damaged, or the database refuses.
    """
    values_by_condition: dict[str, Any] = {"status <> ?": BEGINNING}
    for condition, value in conditions.items():
        if value is not None:
            values_by_condition[condition] = clean_text(value)

    sql = f"WHERE {' AND '.join(values_by_condition)} ORDER BY number DESC"
    values = list(values_by_condition.values())
    if limit is not None:
        sql += " LIMIT ?"
        values.append(limit)
    return list(read_runs(connection, where, sql, values, on_damage=on_damage))


def find_run(
    connection: Connection, where: str, name: str, *, kind: str | None = None, beside: RunFacts | None = None
) -> RunRow:
    """One run, by its id, a beginning of it, its label, as `latest`, `previous` or `baseline`, or `EXPERIMENT/LABEL`.

    Args:
        connection: A connection.
        where: How messages name the store.
        name: How it is called.
        kind: The only kind that `latest` looks at.
        beside: The run whose suite's baseline is meant by `baseline`; the latest run unless given.

    Raises:
        StoreError: There is none, there are several, it is damaged, or the database refuses.
    """
    if name == "latest":
        return _find_latest(connection, where, kind)
    if name == "previous":
        return _find_previous(connection, where, kind or "run")

    run = _find_baseline_run(connection, where, beside) if name == "baseline" else None
    run = run or _find_by_id(connection, where, name) or _find_by_label(connection, where, name)
    run = run or _find_in_experiment(connection, where, name)
    if run is None:
        raise _no_such_run(connection, where, name)
    return run


def _find_latest(connection: Connection, where: str, kind: str | None) -> RunRow:
    conditions = {"kind <> ?": _SERVING} if kind is None else {"kind = ?": kind}
    for run in find_runs(connection, where, conditions, limit=1):
        beside = [] if run.experiment is None else _runs_of_experiment(connection, where, run.experiment)
        if len(beside) > 1:
            raise _is_experiment("latest", beside, where)
        return run
    raise store_error(where, "The store holds no run yet.")


def _find_previous(connection: Connection, where: str, kind: str) -> RunRow:
    """The run before the latest one of its suite."""
    for latest in find_runs(connection, where, {"kind = ?": kind}, limit=1):
        of_suite = {"kind = ?": kind, "suite = ?": latest.suite}
        for run in find_runs(connection, where, of_suite, limit=2)[1:]:
            return run
    raise store_error(where, "The store holds no run before the latest one of its suite.")


def _find_baseline_run(connection: Connection, where: str, beside: RunFacts | None) -> RunRow | None:
    if beside is None:
        latest = find_runs(connection, where, {"kind = ?": "run"}, limit=1)
        if not latest:
            return None
        beside = latest[0]
    baseline = find_baseline(connection, where, beside.suite, beside.dataset)
    return None if baseline is None else _read_run(connection, where, baseline.run)


def _find_by_id(connection: Connection, where: str, name: str) -> RunRow | None:
    """The run of an id, else the only one whose id begins so."""
    beginning = clean_text(name)
    ids = _read_ids(connection, "id = ?", beginning)
    if not ids and beginning:
        ids = _read_ids(connection, "substr(id, 1, ?) = ?", len(beginning), beginning, limit=6)

    if len(ids) > 1:
        raise store_error(where, f"Several runs begin with `{name}`: {list_names(ids, limit=5)}.")
    return _read_run(connection, where, ids[0]) if ids else None


def _find_by_label(connection: Connection, where: str, label: str) -> RunRow | None:
    """The newest run of a label. Labels are few and seldom asked for, so they have no index."""
    for run in find_runs(connection, where, {}, on_damage=lambda _: None):
        if run.facts.get("label") == label:
            return run
    return None


def find_experiment(connection: Connection, where: str, name: str) -> str | None:
    """The id of an experiment, by its id, the only beginning of it, or as `latest`; None where there is none.

    Args:
        connection: A connection.
        where: How messages name the store.
        name: How it is called; `latest` is that of the newest run which belongs to one.

    Raises:
        StoreError: Several begin so, or the database refuses.
    """
    if name == "latest":
        newest = "SELECT experiment FROM runs WHERE experiment IS NOT NULL AND status <> ? ORDER BY number DESC LIMIT 1"
        return next((experiment for (experiment,) in connection.read(newest, (BEGINNING,))), None)

    beginning = clean_text(name)
    if not beginning:
        return None
    sql = "SELECT DISTINCT experiment FROM runs WHERE substr(experiment, 1, ?) = ? ORDER BY experiment"
    ids = [experiment for (experiment,) in connection.read(sql, (len(beginning), beginning))]
    if beginning in ids:
        return beginning
    if len(ids) > 1:
        raise store_error(where, f"Several experiments begin with `{name}`: {list_names(ids, limit=5)}.")
    return next(iter(ids), None)


def _find_in_experiment(connection: Connection, where: str, name: str) -> RunRow | None:
    """The run that `EXPERIMENT/LABEL` names; None where there is no such experiment.

    Raises:
        StoreError: The experiment has no run of that label.
    """
    beginning, slash, label = name.partition("/")
    experiment = find_experiment(connection, where, beginning) if slash else None
    if experiment is None:
        return None

    runs = _runs_of_experiment(connection, where, experiment)
    labels = [str(run.facts.get("label")) for run in runs]
    if label not in labels:
        hint = did_you_mean(label, labels)
        raise store_error(where, f"The experiment `{experiment}` has no run `{label}`. {hint}")
    return runs[labels.index(label)]


def _runs_of_experiment(connection: Connection, where: str, experiment: str) -> list[RunRow]:
    """The runs of an experiment, in the order in which they began."""
    conditions = {"experiment = ?": experiment, "kind <> ?": _SERVING}
    return find_runs(connection, where, conditions, on_damage=lambda _: None)[::-1]


def _is_experiment(name: str, runs: list[RunRow], where: str) -> StoreError:
    """The error where an experiment is named and one run is wanted."""
    names = list_names(f"{name}/{run.facts.get('label')}" for run in runs)
    return store_error(where, f"`{name}` is an experiment of {plural(len(runs), 'run')}. Name one: {names}.")


def _no_such_run(connection: Connection, where: str, name: str) -> StoreError:
    if name == "baseline":
        return store_error(where, "There is no baseline yet. `deemster baseline RUN` makes a run the baseline.")

    experiment = find_experiment(connection, where, name)
    if experiment is not None:
        return _is_experiment(name, _runs_of_experiment(connection, where, experiment), where)

    runs = find_runs(connection, where, {}, limit=_GUESSES, on_damage=lambda _: None)
    hint = _nearest_runs(name, runs) if runs else "It holds none yet."
    if Path(name).is_file():
        hint = f"`deemster import {name}` takes in the runs of a run file."
    return store_error(where, f"The store holds no run `{name}`. {hint}")


def _nearest_runs(name: str, runs: list[RunRow]) -> str:
    """What may be meant by a name that no run has: a run that has a name of its own is listed by that."""
    names = dict.fromkeys(["latest", *(str(run.facts.get("label") or run.id) for run in runs)])
    every = [*names, *(run.id for run in runs)]
    return did_you_mean(name, every if nearest(name, every) else names)


def _read_run(connection: Connection, where: str, run_id: str) -> RunRow:
    """A run that is known to be there."""
    for run in read_runs(connection, where, "WHERE id = ?", [run_id]):
        return run
    raise storage_error(where, f"The run `{run_id}` is lost: only its name is left. `deemster store check` says more.")


def _read_ids(connection: Connection, condition: str, *values: Any, limit: int = 1) -> list[str]:
    sql = f"SELECT id FROM runs WHERE {condition} AND status <> ? ORDER BY number DESC LIMIT ?"  # noqa: S608 - our own words
    return [run_id for (run_id,) in connection.read(sql, (*values, BEGINNING, limit))]
