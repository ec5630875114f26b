"""Takes the runs of a file into a store, all of them or none."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from deemster.report.report_settings import report_facts, stored_settings
from deemster.report.stored_columns import keep_columns
from deemster.report.stored_report import stored_report
from deemster.store import Store
from deemster.store.run_import import ImportedRun, import_runs


def take_in(store: Store, path: Path) -> list[ImportedRun]:
    """Take in every run of a file, or none: also where the file is sound, and the facts of a run give no report.

    Args:
        store: Where they go.
        path: The file.

    Raises:
        InputError: A run gives no report.
        RunExistsError: The store has another run of the same id.
        StoreError: The file cannot be read or is no run file, or the store cannot be written.
    """
    taken = import_runs(store, path)
    new = [run.id for run in taken if not run.is_known]

    with ExitStack() as failing:
        for run_id in new:
            failing.callback(store.remove, run_id)
        for run_id in new:
            _prepare(store, run_id)
        failing.pop_all()
    return taken


def _prepare(store: Store, run_id: str) -> None:
    """Keep the columns of a run that has ended."""
    row = store.run(run_id)
    report_facts(row)
    if not row.traits.has_metrics or not row.traits.has_end:
        return

    stored_settings(row)
    if row.status != "running":
        keep_columns(store, stored_report(store, run_id))
