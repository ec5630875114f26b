"""Writes a file so that a reader never sees half of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

_BUFFER = 1 << 20


def write_aside(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file beside its place, then rename it.

    Args:
        path: Where the file goes; what stands there is replaced.
        pieces: What it holds.

    Raises:
        OSError: It cannot be written; what stood there is untouched.
    """
    aside = path.with_name(f".deemster-{secrets.token_hex(8)}")
    try:
        # Opened by name, unlike a temporary file, so that it has the permissions of any file its owner writes.
        with aside.open("xb", buffering=_BUFFER) as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
