"""Guards every request to the viewer: host, origin, token, method, size; and sets the headers of every answer."""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

import msgspec

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

API = "/api/"
LONGEST_BODY = 64 * 1024
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
# A page of the viewer itself, or an address that the user typed.
_OWN_SITES = frozenset({"same-origin", "none"})
_JSON = re.compile(r"application/json\s*(;\s*charset\s*=\s*\"?utf-8\"?\s*)?", re.IGNORECASE)


class GuardSettings(NamedTuple):
    """Who may ask the viewer what.

    Attributes:
        hosts: The values of the Host header that are answered, with their ports; None for any, where a token guards.
        posts: The paths that take a POST.
        token: What every request for data must show; None where the viewer listens on loopback alone.
    """

    hosts: frozenset[str] | None
    posts: frozenset[str] = frozenset()
    token: str | None = None


class _Refusal(NamedTuple):
    status: int
    message: str
    allow: str | None = None


_TOO_LONG = _Refusal(413, f"A request has at most {LONGEST_BODY:,} bytes.")


class RequestGuard:
    """Refuses requests that no page of the viewer makes, before any of them is read.

    A page of another site can reach a server on loopback through the user's browser. It cannot forge the headers Host,
    Origin and Sec-Fetch-Site, so these decide.

    Args:
        app: Answers what is not refused.
        settings: Who may ask what.
    """

    def __init__(self, app: App, settings: GuardSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(refusal, send)
            return
        body = await _read_body(receive) if scope["method"] == "POST" else b""
        if isinstance(body, _Refusal):
            await _refuse(body, send)
            return

        async def receive_body() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [pair for pair in message.get("headers", ()) if pair[0].lower().decode() not in HEADERS]
                message["headers"] = [*own, *_HEADERS]
            await send(message)

        await self._app(scope, receive_body if scope["method"] == "POST" else receive, send_guarded)

    def _refusal(self, scope: Scope) -> _Refusal | None:
        """Why a request is refused; None where it is not."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        method, path = scope["method"], scope["path"]
        hosts = headers.get("host", [])
        allowed = self._settings.hosts
        if len(hosts) != 1 or (allowed is not None and hosts[0].lower() not in allowed):
            return _Refusal(403, "The viewer does not answer for this host.")
        if any(name.lower() == "token" for name, _ in parse_qsl(scope["query_string"].decode("latin-1"), True)):
            return _Refusal(400, "A token in the query of an address is refused: send it as `Authorization: Bearer`.")
        takes_post = path in self._settings.posts
        if method not in (("GET", "HEAD", "POST") if takes_post else ("GET", "HEAD")):
            return _Refusal(405, "This method is not allowed here.", "GET, HEAD, POST" if takes_post else "GET, HEAD")
        if not path.startswith(API):
            return None
        if refusal := self._unknown_asker(headers, f"{scope.get('scheme', 'http')}://{hosts[0]}".lower(), method):
            return refusal
        if method == "POST" and not _JSON.fullmatch(",".join(headers.get("content-type", []))):
            return _Refusal(415, "The body of a request is `application/json`.")
        length = headers.get("content-length", ["0"])[0]
        if not length.isdecimal() or int(length[:12]) > LONGEST_BODY:
            return _TOO_LONG
        return None

    def _unknown_asker(self, headers: Mapping[str, list[str]], own: str, method: str) -> _Refusal | None:
        sites, origins = headers.get("sec-fetch-site", []), headers.get("origin", [])
        if any(site not in _OWN_SITES for site in sites) or any(origin.lower() != own for origin in origins):
            return _Refusal(403, "The viewer does not answer pages of other sites.")
        if method == "POST" and not origins and sites != ["same-origin"]:
            return _Refusal(403, "A change must come from a page of the viewer: the header Origin is missing.")
        if self._settings.token is None:
            return None
        given = headers.get("authorization", [])
        wanted = f"Bearer {self._settings.token}".encode()
        if len(given) != 1 or not hmac.compare_digest(given[0].encode("utf-8", "replace"), wanted):
            return _Refusal(401, "The token is missing or wrong: open the address that `deemster view` printed.")
        return None


async def _read_body(receive: Receive) -> bytes | _Refusal:
    """The body of a request; why it is refused where it is too long, whatever its header says, or broke off."""
    body, is_more = bytearray(), True
    while is_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return _Refusal(400, "The body of the request broke off.")
        body += message.get("body", b"")
        is_more = message.get("more_body", False)
        if len(body) > LONGEST_BODY:
            return _TOO_LONG
    return bytes(body)


async def _refuse(refusal: _Refusal, send: Send) -> None:
    body = msgspec.json.encode({"error": {"message": refusal.message}})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *_HEADERS]
    if refusal.allow is not None:
        headers.append((b"allow", refusal.allow.encode()))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
