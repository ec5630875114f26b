"""Feeds parsers, each in a process of its own with limits on time and memory.

Usage: python tests/fuzz/worker.py SEED PARSER=COUNT...
"""

from __future__ import annotations

import base64
import collections
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, NoReturn

from mutation import inputs
from parsers import MEGABYTES, PARSERS, SECONDS, corpus

_PATIENCE_S = 300
_KEPT = 8
_SHARED = "/dev/shm"


class TooSlowError(BaseException):
    """One input takes longer than it may. No handler of the parser's own stops it."""


def _alarm(*_: object) -> None:
    raise TooSlowError


def main() -> None:
    """Print what came of each parser as a line of JSON. A process is a fork: loading everything takes a second."""
    seed, *wanted = sys.argv[1:]
    for name, count in (entry.split("=") for entry in wanted):
        child = os.fork()
        if not child:
            _feed_alone(name, count=int(count), seed=int(seed))
        if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            sys.exit(f"{name} ended its process: {code}")


def _feed_alone(name: str, *, count: int, seed: int) -> NoReturn:
    """Feed a parser in the child process, which must never return into the parent's loop."""
    code = 1
    try:
        # In memory if possible: this does not test the disk.
        with tempfile.TemporaryDirectory(dir=_SHARED if Path(_SHARED).is_dir() else None) as folder:
            result = fed(name, count=count, seed=seed, folder=Path(folder))
        os.write(1, json.dumps({"name": name, **result}).encode() + b"\n")
        code = 0
    except BaseException:  # noqa: BLE001 - shown as what it is
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def fed(name: str, *, count: int, seed: int, folder: Path) -> dict[str, Any]:
    """What came of feeding a parser: counts, figures, and one example of everything that went wrong."""
    parser = PARSERS[name]
    path = folder / f"input{parser.suffix}"
    given = corpus(name)
    warnings.simplefilter("error")
    for data in given:
        parser.feed(path, data)  # Load everything that is loaded on first use before memory is measured.
    signal.signal(signal.SIGVTALRM, _alarm)
    bound = _address_space() + MEGABYTES * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CPU, (_PATIENCE_S, _PATIENCE_S))
    before = _peak_mb()
    read = slowest = 0.0
    number = 0
    findings: dict[str, dict[str, str]] = {}
    seen: collections.Counter[str] = collections.Counter()
    began = time.process_time()
    for data in inputs(given, parser.kind, seed=seed, count=count, pieces=parser.pieces):
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        start = time.process_time()
        try:
            read += parser.feed(path, data)
        except (Exception, TooSlowError) as error:  # noqa: BLE001 - whatever comes is a finding
            last = traceback.extract_tb(error.__traceback__)[-1]
            sign = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
            seen[sign] += 1
            if sign not in findings and len(findings) < _KEPT:
                told = "".join(traceback.format_exception(error))[-1500:]
                findings[sign] = {"told": told, "input": base64.b64encode(data).decode()}
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        slowest = max(slowest, time.process_time() - start)
        number += 1
    used = time.process_time() - began
    figures = {"fed": number, "read": int(read), "cpu_s": used, "slowest_s": slowest, "grown_mb": _peak_mb() - before}
    return {**figures, "findings": findings, "seen": dict(seen)}


def _peak_mb() -> float:
    """The largest resident set so far; that of `getrusage` would begin with the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main()
