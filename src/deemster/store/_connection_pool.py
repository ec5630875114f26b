"""Connections to one store, each lent to one thread at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from deemster.store._sql_dialect import Dialect, Rows, failure


class Pool:
    """Open connections that nobody is using are kept for the next who asks.

    Args:
        dialect: The database.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._free: list[Rows] = []
        # Known here too: whoever stops reading early leaves a connection to the garbage collector, and from Python 3.13
        # on that closes it before it comes back.
        self._lent: set[Rows] = set()
        # One that its holder may take again: the garbage collector may bring a connection back at any moment.
        self._lock = threading.RLock()
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
        with self._lock:
            self._lent.add(rows)
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
        """Close the connections, also those of whoever has not read to the end."""
        with self._lock:
            self._is_open = False
            known = self._lent.copy()
            known.update(self._free)
            self._free.clear()
        for rows in known:
            rows.close()

    def _take_back(self, rows: Rows, *, is_sound: bool) -> None:
        with self._lock:
            self._lent.discard(rows)
            if self._is_open and is_sound:
                self._free.append(rows)
                return
        rows.close()
