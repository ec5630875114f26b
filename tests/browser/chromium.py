"""Chromium, and viewers for it to open: what browser tests, the benchmark and the screenshots share."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def launch(playwright: Playwright) -> Browser:
    """Chromium, with flags that keep it from talking to anyone on its own."""
    if CHROMIUM is None:
        raise RuntimeError("There is no Chromium. `sh tests/browser/setup.sh` installs it on Debian and Ubuntu.")
    return playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)


@contextmanager
def viewer_process(store: Path, *arguments: str) -> Iterator[str]:
    """The address of `deemster view` on a store, in a process of its own."""
    command = [sys.executable, "-m", "deemster", "view", "--store", str(store), "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.search(r"http://\S+[0-9]", said)
            assert found, said + process.stderr.read()
            yield found[0]
        finally:
            process.terminate()
