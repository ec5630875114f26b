"""Finds runs that are to be compared: by name in a store, in a run file, or in a report."""

from __future__ import annotations

import functools
from contextlib import ExitStack
from pathlib import Path

from deemster.comparison import load_report
from deemster.comparison.report_source import ReportSource
from deemster.comparison.run_source import RunSource
from deemster.comparison.stored_source import StoredSource
from deemster.report import Report
from deemster.store import Store, open_store
from deemster.store.open_runs import is_run_file, open_runs


class RunSources(ExitStack):
    """Finds runs by name; what it opens is closed at its end.

    Args:
        store: Where runs are that are given by name; `.deemster/runs.db` unless given.
    """

    def __init__(self, store: str | Path | None) -> None:
        super().__init__()
        self._location = store

    @functools.cached_property
    def store(self) -> Store:
        """The store of runs that are given by name, opened when it is first needed."""
        return self.enter_context(open_store(self._location, create=False))

    def find_pair(self, baseline: Report | str | Path, candidate: Report | str | Path) -> tuple[RunSource, RunSource]:
        """Two runs; of one run that was scored again, what it was before its last scoring, and what it is now.

        Args:
            baseline: The run before.
            candidate: The run now.

        Raises:
            ReportError: A file is no report.
            StoreError: There is no such run, or a file is no sound run file.
        """
        now = self.find(candidate)
        before = self.find(baseline, beside=now)
        if isinstance(before, StoredSource) and before.stored == now.stored:
            return before.before_last_scoring(), now
        return before, now

    def find(self, run: Report | str | Path, *, beside: RunSource | None = None) -> RunSource:
        """One run: a report, the file of one, a run file, or a stored run.

        Args:
            run: The run.
            beside: The run whose suite's baseline is meant by `baseline`; the latest run unless given.

        Raises:
            ReportError: The file is no report.
            StoreError: There is no such run, or the file is no sound run file.
        """
        if isinstance(run, Report):
            return ReportSource(run)
        if is_run_file(run):
            run_file, (name,) = self.enter_context(open_runs(self._location, [str(run)]))
            return StoredSource(run_file, run_file.run(name, kind="run"))
        if Path(run).is_file() or Path(run).suffix == ".json":
            return ReportSource(load_report(run))

        row = beside.row if isinstance(beside, StoredSource) else None
        return StoredSource(self.store, self.store.run(str(run), kind="run", beside=row))
