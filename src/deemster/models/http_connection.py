"""One request and its reply over a connection of the pool that all clients of an event loop share.

The pool, its connections, TLS, proxies and the reading of HTTP are aiohttp's. Its sessions are left out: cookies,
redirects, netrc, traces, forms and a task for each body are nothing that a model is asked with, and cost as much as a
fourth of a call.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp
import yarl

_LONGEST_COMPLAINT = 2**16
# A refusal is one without its reasons too.
_COMPLAINT_S = 5.0
# Common servers drop an idle connection after 5 s, and a request that is on its way just then fails.
_IDLE_S = 4.0
# How long a call may take is for whoever makes it to say.
_NO_LIMIT = aiohttp.ClientTimeout()
_BREAKS = re.compile(r"[\r\n\0]")
_LENGTH = "Content-Length"


class Pool:
    """The connections of one event loop, and how many addresses use them."""

    def __init__(self) -> None:
        self.users = 0
        # How many requests are under way is the gateway's to say.
        self.connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S, ttl_dns_cache=300)


# A connector of aiohttp belongs to the loop it was made in, so there is one for each.
POOLS: dict[asyncio.AbstractEventLoop, Pool] = {}


class Posted(NamedTuple):
    """What came back.

    Attributes:
        status: The HTTP status.
        body: The body; of a refusal, its first 64 KB.
        headers: The headers.
    """

    status: int
    body: bytes
    headers: Mapping[str, str]


class Unsent(Exception):  # noqa: N818 - named for what happened, as ModelFailure is
    """There was no connection, so nothing was sent.

    Args:
        cause: What kept it from being made.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__()
        self.cause = cause


class Wire:
    """The way to one address in one event loop.

    Args:
        method: The method of HTTP.
        url: The address.
        headers: Headers beside those that aiohttp adds by itself.
        proxy: The proxy to go through, or None.
    """

    def __init__(self, method: str, url: yarl.URL, *, headers: Mapping[str, str], proxy: str | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._method, self._url, self._headers = method, url, headers
        self._proxy = proxy
        self._direct = None if proxy is not None else self._request()
        self._head = None if self._direct is None else _head(self._direct, url.raw_path_qs)
        pool = POOLS.get(self._loop)
        if pool is None or pool.connector.closed:
            forget_closed(POOLS)
            pool = POOLS[self._loop] = Pool()
        pool.users += 1
        self._pool = pool
        self._is_open = True

    @property
    def is_open(self) -> bool:
        """Whether something can be sent."""
        return self._is_open and not self._pool.connector.closed

    async def exchange(self, body: bytes | None, *, longest: int, url: yarl.URL | None = None) -> Posted | None:
        """Send a body, and wait for the whole reply.

        Args:
            body: What the headers say; None for none.
            longest: The longest reply that is read.
            url: The address where its query is another one this time.

        Returns:
            The reply; None where it is longer than may be.

        Raises:
            Unsent: There was no connection.
            aiohttp.ClientError: There was no whole reply.
            aiohttp.http.HttpProcessingError: The reply is not HTTP.
            OSError: The connection failed.
        """
        request, connection = await self._connected()
        is_whole = False
        try:
            protocol, transport = connection.protocol, connection.transport
            if protocol is None or transport is None:
                raise Unsent(aiohttp.ServerDisconnectedError())
            head = self._head if url is None else None
            # A server that speaks first may also answer later, and then to whoever has the connection.
            is_quiet = not protocol.should_close
            protocol.set_response_params(read_until_eof=True)
            transport.write(_message(head or _head(request, self._target(url or self._url)), body, self._method))
            message, content = await protocol.read()
            while 100 <= message.code < 200 and message.code != 101:
                message, content = await protocol.read()
            status, headers = message.code, message.headers
            told = await (_complaint(content) if status >= 300 else _read(content, headers, longest))
            # What is left of one reply, or of a body nobody waited for, must not meet the next request.
            is_read = told is not None and content.at_eof()
            is_whole = is_read and is_quiet and not transport.get_write_buffer_size()
            return None if told is None else Posted(status, told, headers)
        finally:
            if is_whole:
                connection.release()
            else:
                connection.close()

    async def close(self) -> None:
        """Give the pool back; the last to do so closes it."""
        if not self._is_open:
            return
        self._is_open = False
        pool = self._pool
        pool.users -= 1
        if pool.users == 0:
            if POOLS.get(self._loop) is pool:
                del POOLS[self._loop]
            await pool.connector.close()

    async def _connected(self) -> tuple[aiohttp.ClientRequest, aiohttp.connector.Connection]:
        """A connection, and the request it is for."""
        connect = self._pool.connector.connect
        try:
            # A proxy's connector writes into the headers of the request it connects for.
            request = self._direct or self._request()
            connection = await connect(request, [], _NO_LIMIT)
            # A reply that came while the connection was idle answers nothing that was asked. A new one has none yet.
            while connection.protocol is not None and len(connection.protocol):
                connection.close()
                connection = await connect(request, [], _NO_LIMIT)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unsent(error) from error
        return request, connection

    def _request(self) -> aiohttp.ClientRequest:
        """What a connection is made for; it also knows the headers that every request has."""
        proxy = None if self._proxy is None else yarl.URL(self._proxy)
        request = aiohttp.ClientRequest(self._method, self._url, headers=self._headers, proxy=proxy, loop=self._loop)
        # Before 3.13.3 the connector forgets the credentials of a proxy when it uses a connection again.
        if proxy is not None and proxy.user is not None and not request.is_ssl():
            pair = f"{proxy.user}:{proxy.password or ''}".encode("latin-1")
            request.headers["Proxy-Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        return request

    def _target(self, url: yarl.URL) -> str:
        """What the first line names: the whole address to a proxy that passes it on."""
        return str(url.with_fragment(None)) if self._proxy is not None and url.scheme == "http" else url.raw_path_qs


def forget_closed(held: dict[asyncio.AbstractEventLoop, Any]) -> None:
    """Let go of what belongs to loops that were closed before anybody gave it back."""
    # Another thread may put one in meanwhile.
    for loop in tuple(held):
        if loop.is_closed():
            held.pop(loop, None)


def _head(request: aiohttp.ClientRequest, target: str) -> bytes:
    """All lines but the last, which says how long the body is."""
    lines = [f"{request.method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request.headers.items() if name.lower() != "content-length"]
    if any(map(_BREAKS.search, lines)):
        raise ValueError("A header holds a line break.")
    return "\r\n".join([*lines, ""]).encode()


def _message(head: bytes, body: bytes | None, method: str) -> bytes:
    if body is None:
        return head + (b"\r\n" if method == "GET" else b"Content-Length: 0\r\n\r\n")
    return b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)


async def _read(content: aiohttp.StreamReader, headers: Mapping[str, str], longest: int) -> bytes | None:
    """The body; None where it is longer than may be, and then the rest stays unread."""
    if int(headers.get(_LENGTH, 0)) > longest:
        return None
    first = await content.readany()
    if content.at_eof():
        return first if len(first) <= longest else None
    parts, length = [first], len(first)
    while chunk := await content.readany():
        parts.append(chunk)
        length += len(chunk)
        if length > longest:
            return None
    return b"".join(parts)


async def _complaint(content: aiohttp.StreamReader) -> bytes:
    """The beginning of the body of a refusal; the status counts even where no body follows."""
    parts, length = [], 0
    try:
        async with asyncio.timeout(_COMPLAINT_S):
            while length < _LONGEST_COMPLAINT and (chunk := await content.readany()):
                parts.append(chunk)
                length += len(chunk)
    except (aiohttp.ClientError, TimeoutError, OSError):
        parts.append(b"")
    return b"".join(parts)[:_LONGEST_COMPLAINT]
