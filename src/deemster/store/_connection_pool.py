"""A pool of database connections, each used by one thread at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from deemster.store._database import Connection, Database, store_error


class ConnectionPool:
    """Keeps open connections that are not in use for the next caller.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._free: list[Connection] = []
        # A reader that stops early leaves its connection to the garbage collector, which closes it from Python 3.13 on.
        # `close` therefore knows the connections in use too.
        self._lent: set[Connection] = set()
        # Re-entrant, since the garbage collector may give a connection back at any moment.
        self._lock = threading.RLock()
        self._is_open = True

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection for the time of a block.

        Raises:
            StoreError: The store is closed, or the database refuses.
        """
        with self._lock:
            if not self._is_open:
                raise store_error(self.database.where, "The store is closed.")
            connection = self._free.pop() if self._free else None
        if connection is None:
            connection = self.database.connect()
        with self._lock:
            self._lent.add(connection)
        is_sound = False
        try:
            yield connection
            is_sound = True
        except GeneratorExit:
            # The reader stopped early; the connection is still good.
            is_sound = True
            raise
        finally:
            self._take_back(connection, is_sound=is_sound)

    @contextlib.contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """A connection in a writing transaction, committed at the end of the block, rolled back where it raises.

        Raises:
            StoreError: The store is closed, or the database refuses.
        """
        with self.connection() as connection, connection.transaction():
            yield connection

    @contextlib.contextmanager
    def read_transaction(self) -> Iterator[Connection]:
        """A connection that sees one state of the store for the time of the block.

        Raises:
            StoreError: The store is closed, or the database refuses.
        """
        with self.connection() as connection, connection.snapshot():
            yield connection

    def close(self) -> None:
        """Close all connections, also those in use."""
        with self._lock:
            self._is_open = False
            known = self._lent.copy()
            known.update(self._free)
            self._free.clear()
        for connection in known:
            connection.close()

    def _take_back(self, connection: Connection, *, is_sound: bool) -> None:
        with self._lock:
            self._lent.discard(connection)
            if self._is_open and is_sound:
                self._free.append(connection)
                return
        connection.close()
