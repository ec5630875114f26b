"""The lease of a run: one process at a time may write it; heartbeat, takeover from a dead process."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import weakref
from pathlib import Path
from typing import Self

from deemster.errors import Issue, LeaseError, StoreError
from deemster.store._database import Connection, ConnectionPool, Row, store_error
from deemster.store._row_encoding import clean_text
from deemster.store.run_facts import LeaseOwner

HEARTBEAT_S = 5.0
LEASE_TIMEOUT_S = 30.0
_OWNER = "owner_host, owner_pid, owner_start, token, heartbeat"


class Lease:
    """The right to write a run, kept alive by a heartbeat until it is released.

    Attributes:
        run_id: The run.
        number: Its number in the store.
        token: What this holder is known by.
        lost: Whether another process has taken the run over.
        thread: Writes the heartbeat.
    """

    def __init__(self, pool: ConnectionPool, run_id: str, number: int, token: str) -> None:
        self.run_id, self.number, self.token, self.lost = run_id, number, token, False
        self._pool = pool
        self._ended = threading.Event()
        # A weak reference, so that the heartbeat of a lease that was dropped unreleased ends.
        self.thread = threading.Thread(
            target=_beat, args=(weakref.ref(self), self._ended), name="deemster-lease", daemon=True
        )
        self.thread.start()

    def renew(self, connection: Connection) -> None:
        """Renew the heartbeat within a transaction.

        Raises:
            LeaseError: Another process has taken the run over.
            StoreError: The database refuses.
        """
        if not self._is_renewed(connection):
            self.lost = True
            owner = find_owner(connection, self._pool, self.run_id)
            by = "" if owner is None else f" by process {owner.pid} on {owner.host}"
            message = f"The run `{self.run_id}` was taken over{by}; nothing more is written here."
            raise LeaseError(Issue(message, self._pool.database.where))

    def release(self) -> None:
        """Give the run back. Where the store cannot be written, the lease expires after 30 seconds."""
        if self._ended.is_set():
            return
        self.stop_heartbeat()
        try:
            with self._pool.write_transaction() as connection:
                self.release_within(connection)
        except StoreError:
            self.lost = True

    def release_within(self, connection: Connection) -> None:
        """Give the run back within a transaction; call `stop_heartbeat` once that is committed.

        Raises:
            StoreError: The database refuses.
        """
        connection.write(
            "UPDATE runs SET owner_host = NULL, owner_pid = NULL, owner_start = NULL, token = NULL, heartbeat = NULL"
            " WHERE number = ? AND token = ?",
            (self.number, self.token),
        )

    def stop_heartbeat(self) -> None:
        """End the heartbeat, and wait for one that is under way: a store that is closed takes its connection away."""
        self._ended.set()
        self.thread.join()

    @property
    def is_held(self) -> bool:
        """Whether it was neither released nor lost."""
        return not (self.lost or self._ended.is_set())

    def beat(self) -> None:
        """Write one heartbeat; where the store cannot be written, the next one tries again."""
        try:
            with self._pool.write_transaction() as connection:
                if not self._is_renewed(connection) and not self._ended.is_set():
                    self.lost = True
        except StoreError:
            return

    def _is_renewed(self, connection: Connection) -> bool:
        sql = f"UPDATE runs SET heartbeat = {self._pool.database.now} WHERE number = ? AND token = ?"  # noqa: S608 - our own words
        return connection.write(sql, (self.number, self.token)) == 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _beat(reference: weakref.ref[Lease], ended: threading.Event) -> None:
    while not ended.wait(HEARTBEAT_S):
        lease = reference()
        if lease is None or lease.lost:
            return
        lease.beat()
        del lease


def acquire_lease(pool: ConnectionPool, run_id: str) -> Lease:
    """Take the lease of a run that is free, or whose owner is dead or has not been heard of for 30 seconds.

    Raises:
        LeaseError: Another process holds it.
        StoreError: There is no such run, or the database refuses.
    """
    with pool.write_transaction() as connection:
        number, token = claim_run(connection, pool, run_id)
    return Lease(pool, run_id, number, token)


def claim_run(connection: Connection, pool: ConnectionPool, run_id: str) -> tuple[int, str]:
    """Make this process the owner of a run within a transaction; its number, and the token of the claim.

    Raises:
        LeaseError: Another process holds it.
        StoreError: There is no such run, or the database refuses.
    """
    found, token = _read_owner(connection, pool, run_id), secrets.token_hex(8)
    owner = _owner(found)
    if owner is not None and owner.alive:
        message = (
            f"The run `{run_id}` is being written by process {owner.pid} on {owner.host}"
            f" (last heard of {owner.heartbeat_age_s:.0f} s ago)."
        )
        raise LeaseError(Issue(message, pool.database.where))
    changed = connection.write(
        f"UPDATE runs SET owner_host = ?, owner_pid = ?, owner_start = ?, token = ?, heartbeat = {pool.database.now}"  # noqa: S608 - our own words
        " WHERE number = ? AND COALESCE(token, '') = ? AND COALESCE(heartbeat, 0) = ?",
        (*this_process(), token, found[0], found[4] or "", found[5] or 0.0),
    )
    if not changed:
        raise LeaseError(Issue(f"The run `{run_id}` was taken by another process just now.", pool.database.where))
    return int(found[0]), token


def find_owner(connection: Connection, pool: ConnectionPool, run_id: str) -> LeaseOwner | None:
    """The process that holds a run, or None.

    Raises:
        StoreError: There is no such run.
    """
    return _owner(_read_owner(connection, pool, run_id))


def _read_owner(connection: Connection, pool: ConnectionPool, run_id: str) -> Row:
    sql = f"SELECT number, {_OWNER}, {pool.database.now} FROM runs WHERE id = ?"  # noqa: S608 - our own words
    found = connection.read(sql, (clean_text(run_id),))
    if not found:
        raise store_error(pool.database.where, f"The store holds no run `{run_id}`.")
    return found[0]


def _owner(found: Row) -> LeaseOwner | None:
    _, host, pid, start, token, heartbeat, now = found
    if token is None or not isinstance(heartbeat, float) or type(pid) is not int:
        return None
    # A clock that was set back leaves heartbeats in the future. An owner that lives renews its own within seconds.
    alive = abs(now - heartbeat) <= LEASE_TIMEOUT_S and not is_dead(str(host), pid, start)
    return LeaseOwner(host=str(host), pid=pid, start=start, heartbeat_age_s=max(0.0, now - heartbeat), alive=alive)


def this_process() -> tuple[str, int, str | None]:
    """The host, process id and start of this process."""
    return clean_text(socket.gethostname()), os.getpid(), process_start(os.getpid())


def is_dead(host: str, pid: int, start: str | None) -> bool:
    """Whether a process of this machine is known to have ended, or another one has its process id.

    Args:
        host: The name of its machine.
        pid: Its number.
        start: When it started, as `process_start` said; without it only the number can be looked up.
    """
    if host != clean_text(socket.gethostname()):
        return False
    if start is not None:
        # Hosts may share a name, and containers a host: a process id means something only on its own machine.
        return start.rpartition(" ")[0] == _machine() and process_start(pid) != start
    if os.name == "nt":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def process_start(pid: int) -> str | None:
    """When a process started, with the boot id and the process id namespace of its machine.

    None where the system has no /proc, and where the process has ended or is a zombie.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return None if fields[0] in b"ZX" else f"{_machine()} {int(fields[19])}"
    except (OSError, IndexError, ValueError):
        return None


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except (OSError, ValueError):
        return ""
