"""Blocks the network except loopback, for the tests and for every Python process they start (by PYTHONPATH).

What reaches out is refused as a machine without a network refuses it, and noted, which fails the test. Next to nothing
is imported, since every process of every test loads this.
"""

from __future__ import annotations

import errno
import os
import sys

NOTES = "DEEMSTER_TESTS_REACHED"
# Names that can never be looked up (RFC 2606): a test may ask for one, to see that it fails.
_NOWHERE = (".invalid", ".test")
_LOOKED_UP = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})
_CALLED = frozenset({"socket.connect", "socket.sendto"})
_NEAR = frozenset({"", "None", "localhost", "::1", "::", "0.0.0.0"})
_AGAIN = -3


def is_near(host: object) -> bool:
    """Whether an address is of this machine."""
    name = _name(host)
    return name in _NEAR or (name.startswith("127.") and name.replace(".", "").isdecimal())


def _name(host: object) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)


def guard(event: str, values: tuple[object, ...]) -> None:
    """Refuse what leaves the machine.

    Raises:
        OSError: As without a network.
    """
    if event in _LOOKED_UP:
        host = values[0]
    elif event in _CALLED and isinstance(values[1], tuple):  # otherwise it is the path of a unix socket
        host = values[1][0]
    else:
        return
    if is_near(host):
        return
    if not _name(host).endswith(_NOWHERE) and (path := os.environ.get(NOTES)):
        with open(path, "a", encoding="utf-8") as notes:  # noqa: PTH123 - pathlib is slow to load
            notes.write(f"{event} {_name(host)}\n")
    if event in _LOOKED_UP:
        import socket

        raise socket.gaierror(_AGAIN, "There is no network in tests")
    raise OSError(errno.ENETUNREACH, "There is no network in tests")


sys.addaudithook(guard)
