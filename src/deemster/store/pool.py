"""Connections to one store, each lent to one thread at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from deemster.store.dialect import Dialect, Rows, failure


class Pool:
    """Open connections that nobody is using are kept for the next who asks.

    Args:
        dialect: The database.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._free: list[Rows] = []
        self._lock = threading.Lock()
        self._is_open = True

    @contextlib.contextmanager
    def lent(self) -> Iterator[Rows]:
        """A connection for the time of a block.

        Raises:
            StoreError: The store is closed, or the database refuses.
        """
        with self._lock:
            if not self._is_open:
                raise failure(self.dialect.where, "The store is closed.")
            rows = self._free.pop() if self._free else None
        if rows is None:
            rows = self.dialect.connect()
        is_sound = False
        try:
            yield rows
            is_sound = True
        except GeneratorExit:
            # Somebody stopped reading early; the connection is as good as before.
            is_sound = True
            raise
        finally:
            self._take_back(rows, is_sound=is_sound)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Rows]:
        """A connection in a writing transaction, committed at the end of the block, rolled back where it raises.

        Raises:
            StoreError: The store is closed, or the database refuses.
        """
        with self.lent() as rows, rows.transaction():
            yield rows

    @contextlib.contextmanager
    def reading(self) -> Iterator[Rows]:
        """A connection that sees one state of the store for the time of the block.

        Raises:
            StoreError: The store is closed, or the database refuses.
        """
        with self.lent() as rows, rows.snapshot():
            yield rows

    def close(self) -> None:
        """Close the connections; those that are lent are closed when they come back."""
        with self._lock:
            self._is_open = False
            free, self._free = self._free, []
        for rows in free:
            rows.close()

    def _take_back(self, rows: Rows, *, is_sound: bool) -> None:
        with self._lock:
            if self._is_open and is_sound:
                self._free.append(rows)
                return
        rows.close()
