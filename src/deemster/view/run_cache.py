"""Keeps the runs open that the viewer showed last."""

from __future__ import annotations

import threading
from collections import OrderedDict

from deemster.store import RunRow, Store
from deemster.view.live_usage import LiveUsage
from deemster.view.opened_grading import OpenedGrading
from deemster.view.opened_run import OpenedRun

# The arrays of opened runs take about so many bytes; the run that was opened last stays in any case.
_MOST_BYTES = 100 << 20
# So many runs in progress are watched at once.
_MOST_LIVE = 4


class RunCache:
    """Keeps the runs that were opened last.

    Args:
        store: Where they are stored.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._opened: OrderedDict[str, OpenedRun] = OrderedDict()
        self._live: dict[str, LiveUsage] = {}
        self._lock = threading.Lock()

    def open(self, name: str) -> OpenedRun:
        """A run by its name.

        Args:
            name: Its id, a unique beginning of it, its label, or `latest`.

        Raises:
            StoreError: There is no such run, or the store fails.
        """
        row = self.store.run(name)
        with self._lock:
            opened = self._opened.get(row.id)
            if opened is None or not opened.is_current(row):
                opened = (OpenedRun if row.traits.has_metrics else OpenedGrading)(self.store, row)
            self._opened[row.id] = opened
            self._opened.move_to_end(row.id)
            sizes = [run.size for run in self._opened.values()]
            while len(self._opened) > 1 and sum(sizes) > _MOST_BYTES:
                self._opened.popitem(last=False)
                sizes.pop(0)
        return opened

    def live_usage(self, row: RunRow) -> LiveUsage:
        """Counts what a run in progress has used; of several, the ones that were asked for last are kept.

        Args:
            row: The run.
        """
        with self._lock:
            known = self._live.pop(row.id, None) or LiveUsage(self.store, row)
            self._live[row.id] = known
            while len(self._live) > _MOST_LIVE:
                self._live.pop(next(iter(self._live)))
        return known
