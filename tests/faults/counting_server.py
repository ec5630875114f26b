"""A judge in a separate process that records when each question arrives and when it is answered.

Usage: python tests/faults/counting_server.py NOTES DELAY_S
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
import time

from aiohttp import web

from deemster.testing import ModelServer

_SAMPLE = re.compile(rb"sample (\d{4})")


class Counting(ModelServer):
    """Answers after a while, and writes `CAME|LEFT sample monotonic-time` for each question, a line in one piece."""

    def __init__(self, notes: str, delay_s: float) -> None:
        super().__init__(keep=False)
        self._notes = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._delay_s = delay_s

    async def _reply(self, request: web.Request, *, chat: bool) -> web.StreamResponse:
        found = _SAMPLE.search(await request.read())
        assert found is not None
        self._note(b"CAME", found[1])
        await asyncio.sleep(self._delay_s)
        reply = await super()._reply(request, chat=chat)
        self._note(b"LEFT", found[1])
        return reply

    def _note(self, what: bytes, sample: bytes) -> None:
        os.write(self._notes, b"%s %s %017.6f\n" % (what, sample, time.monotonic()))


if __name__ == "__main__":
    with Counting(sys.argv[1], float(sys.argv[2])) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        threading.Event().wait()
