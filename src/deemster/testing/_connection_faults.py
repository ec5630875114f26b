"""Faults of the connection: replies that break off, come late, or never end."""

from __future__ import annotations

import asyncio
import socket
import struct

from aiohttp import web

from deemster.testing.server_faults import ServerFault

JSON = "application/json"


async def send_with_fault(fault: ServerFault, request: web.Request, body: bytes) -> web.StreamResponse:
    """Send a healthy body in the manner of a fault.

    Args:
        fault: The fault; one that is no fault of the connection sends the body as it is.
        request: The request to answer.
        body: The reply.
    """
    if fault.name == "reset":
        _reset(request)
    elif fault.name in ("reset-body", "short"):
        return await _broken(request, body, reset=fault.name == "reset-body")
    elif fault.name == "endless":
        return await _endless(request, body, pace_s=float(fault.value or "1"))
    elif fault.name == "silent":
        await asyncio.Event().wait()
    elif fault.name == "slow":
        await asyncio.sleep(float(fault.value or "1"))
    return web.Response(body=body, content_type=JSON)


def _reset(request: web.Request) -> None:
    if request.transport is None:
        return
    connection: socket.socket = request.transport.get_extra_info("socket")
    # Lingering for no time makes closing a reset.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()


async def _broken(request: web.Request, body: bytes, *, reset: bool) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": JSON, "Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if reset:
        # The client must have the first half before the reset, which throws away what waits to be sent.
        await asyncio.sleep(0.02)
        _reset(request)
    elif request.transport is not None:
        request.transport.close()
    return response


async def _endless(request: web.Request, body: bytes, *, pace_s: float) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": JSON})
    await response.prepare(request)
    await response.write(body[:-1])
    try:
        while True:
            await asyncio.sleep(pace_s)
            await response.write(b" ")
    except ConnectionError:
        return response
