"""Compares what a program made, such as a report, with a golden file, byte for byte."""

from __future__ import annotations

import difflib
from pathlib import Path

from deemster.report import Report


def compare_with_golden(made: Report | str | bytes, file: str | Path, *, refresh: bool = False) -> None:
    """Fail unless something is the content of a golden file, byte for byte; the message shows the difference.

    A report is compared as JSON. Give the run a clock that stands still, ``FrozenClock``, and its bytes stay the same.

    Args:
        made: A report, a text or bytes.
        file: The golden file.
        refresh: Whether the file is written anew in place of being compared; read the difference before you commit it.

    Raises:
        AssertionError: They differ, or there is no such file.
    """
    path = Path(file)
    text = made if isinstance(made, (str, bytes)) else made.to_json()
    data = text.encode("utf-8") if isinstance(text, str) else text
    if refresh:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return
    if not path.is_file():
        raise AssertionError(f"There is no golden file {path}: write it with `refresh=True`, then read it.")
    held = path.read_bytes()
    if held != data:
        lines = difflib.unified_diff(
            held.decode("utf-8", "replace").splitlines(),
            data.decode("utf-8", "replace").splitlines(),
            fromfile=str(path),
            tofile="made",
            lineterm="",
        )
        shown = "\n".join(lines) or "They differ in line ends or in bytes that are no UTF-8."
        raise AssertionError(f"{path.name} differs from its golden file:\n{shown}")
