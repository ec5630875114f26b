"""Runs one command without a shell, with a timeout, and kills everything it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deemster.errors import is_out_of_descriptors
from deemster.models.retry_policy import LOCAL_WAIT_S

LONGEST = 64 * 2**20
STDERR_TAIL = 4096
# How long processes that a command left behind may hold its output open.
DRAIN_TIMEOUT_S = 1.0
# How long a command without a timeout waits for file descriptors.
_PATIENCE_S = 60.0


class CommandResult(NamedTuple):
    """How a command ended.

    Attributes:
        code: Its exit code; below 0 the signal that killed it; None where it was killed for its time or its output.
        output: What it wrote.
        stderr: The end of what it wrote to standard error.
        issue: Why it was killed; None where it ended by itself.
    """

    code: int | None
    output: bytes
    stderr: bytes
    issue: str | None = None


async def run_command(
    argv: Sequence[str],
    data: bytes,
    *,
    timeout_s: float | None,
    environ: Mapping[str, str],
    folder: str | None,
) -> CommandResult:
    """Run a command to its end.

    It leads a process group of its own. Whatever is left of the group is killed when the command ends, when its time is
    over, when it writes too much, and when this is cancelled.

    Args:
        argv: The program and its arguments.
        data: What it reads.
        timeout_s: The longest it may take.
        environ: Its environment.
        folder: Where it runs.

    Raises:
        OSError: It cannot be started.
    """
    loop = asyncio.get_running_loop()
    patience = loop.time() + (_PATIENCE_S if timeout_s is None else timeout_s)
    while True:
        try:
            transport, protocol = await loop.subprocess_exec(
                lambda: _CommandProtocol(loop), *argv, env=dict(environ), cwd=folder, start_new_session=True
            )
            break
        except OSError as error:
            # Commands that end give their file descriptors back, so fewer run at once.
            if not is_out_of_descriptors(error) or loop.time() > patience:
                raise
            await asyncio.sleep(LOCAL_WAIT_S)
    issue = None
    try:
        protocol.feed(data)
        async with asyncio.timeout(timeout_s):
            # Not awaited directly: a cancellation would cancel the future, and the end of the process would be lost.
            await asyncio.wait([protocol.exited])
            await asyncio.wait([protocol.closed], timeout=DRAIN_TIMEOUT_S)
    except TimeoutError:
        issue = f"The command did not end within {timeout_s:g} s and was killed."
    finally:
        if not protocol.exited.done():
            protocol.kill()
            # Also after a cancellation: a process whose exit is not awaited stays as a zombie.
            await _wait_through_cancel(protocol.exited)
        transport.close()
    if protocol.is_too_long:
        issue = f"The command wrote more than {LONGEST / 2**20:g} MiB and was killed."
    code = None if issue else transport.get_returncode()
    return CommandResult(code, b"".join(protocol.output), bytes(protocol.stderr), issue)


async def _wait_through_cancel(waited: asyncio.Future[None]) -> None:
    """Wait for a future, and raise a cancellation that comes meanwhile only afterwards."""
    cancelled = False
    while not waited.done():
        try:
            await asyncio.wait([waited])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


class _CommandProtocol(asyncio.SubprocessProtocol):
    """Feeds a command and collects what it writes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.output: list[bytes] = []
        self.stderr = bytearray()
        self.is_too_long = False
        self._left = LONGEST
        self._transport: asyncio.SubprocessTransport | None = None
        self._group: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)  # noqa: S101 - the loop's promise
        self._transport = transport
        self._group = transport.get_pid()

    def feed(self, data: bytes) -> None:
        """Give the command all it reads; one that does not read it may end all the same."""
        pipe = self._transport.get_pipe_transport(0) if self._transport is not None else None
        if isinstance(pipe, asyncio.WriteTransport):
            pipe.write(data)
            pipe.write_eof()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.stderr += data
            del self.stderr[:-STDERR_TAIL]
            return
        self._left -= len(data)
        if self._left >= 0:
            self.output.append(data)
        elif not self.is_too_long:
            self.is_too_long = True
            self.output.clear()
            self.kill()

    def process_exited(self) -> None:
        # Processes that the command left running would hold its output open.
        self.kill()
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is the protocol's
        if not self.closed.done():
            self.closed.set_result(None)

    def kill(self) -> None:
        """Kill the whole group."""
        if self._group is None or self._transport is None:
            return
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, signal.SIGKILL)
        else:
            with contextlib.suppress(ProcessLookupError):
                self._transport.kill()
