"""Sending requests to one address, and what its refusals mean."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http
import re
import urllib.parse
import urllib.request
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

import aiohttp
import msgspec
import yarl
from aiohttp.http import HttpProcessingError

from deemster.errors import ConfigurationError
from deemster.models._retry_after import retry_after_s
from deemster.models.http_connection import Posted, Unsent, Wire, forget_closed
from deemster.models.model_client import FailureKind, ModelFailure
from deemster.models.secret_redaction import NO_SECRETS, Secrets

LONGEST_REPLY = 4 * 2**20
_RETRIED = frozenset({408, 409, 425})
_HARD_QUOTA = (b"insufficient_quota", b"billing_hard_limit_reached", b"billing_not_active")
_AZURE = ".openai.azure.com"
_EXAMPLE = "https://api.openai.com/v1"
_LOOPBACK = re.compile(r"127(?:\.[0-9]+){1,3}")


class Endpoint:
    """One address that is asked, one attempt a call.

    Redirects are not followed: the key is for this address alone.

    Args:
        base_url: Where the API lives, such as `https://api.openai.com/v1`; a query is kept.
        path: What is asked of it, such as `chat/completions`; None where the address is whole.
        key: The API key, or None.
        timeout_s: The longest attempt, body included; None where whoever calls sees to it, as the gateway does.
        method: The method of HTTP.
        headers: Headers beside those of JSON and the key, and before them.
        hidden: Further values that must be shown nowhere.

    Attributes:
        host: The host, for messages.
        url: The whole address without what may be secret.
        query: The SHA-256 of its query, where the address shown hides a part of that; None where it does not.
        secrets: What must be shown nowhere.

    Raises:
        ConfigurationError: The URL is none of HTTP, or the key holds what no header can carry.
    """

    def __init__(
        self,
        base_url: str,
        path: str | None = None,
        *,
        key: str | None,
        timeout_s: float | None = None,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        hidden: Iterable[str] = (),
    ) -> None:
        whole = _address(base_url, path)
        self._is_whole = path is None
        self._method = method
        self._url = whole.with_user(None)
        self.host = self._url.host or ""
        key = (key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError(f"The API key for {self.host} holds a character that no HTTP header can carry.")
        secret = [
            key,
            whole.user or "",
            whole.password or "",
            *(value for name, value in self._url.query.items() if _hides(name)),
            *hidden,
        ]
        self.secrets = Secrets(secret) if any(secret) else NO_SECRETS
        self.url = redact_url(str(self._url))
        self.query = _digest(self._url) if any(map(_hides, self._url.query)) else None
        known = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            azure = self.host.endswith(_AZURE)
            known |= {"api-key": key} if azure else {"Authorization": f"Bearer {key}"}
        elif whole.user is not None:
            pair = f"{whole.user}:{whole.password or ''}".encode()
            known["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        # Of names that differ by case alone, the last one counts.
        self._headers = dict({each[0].lower(): each for each in [*known.items(), *(headers or {}).items()]}.values())
        self._timeout_s = timeout_s
        self._proxy = _proxy(self._url)
        self._wires: dict[asyncio.AbstractEventLoop, Wire] = {}

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """The names and values of the address's query, in order."""
        return tuple(self._url.query.items())

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return _is_loopback(self.host)

    async def post(
        self, body: bytes | None, *, longest: int = LONGEST_REPLY, query: Sequence[tuple[str, str]] | None = None
    ) -> Posted:
        """Send a body, and wait for the whole reply.

        Args:
            body: JSON, or what the headers say; None for none.
            longest: The longest reply that is read.
            query: In place of the address's own query.

        Raises:
            ModelFailure: There was no connection, no whole reply in time, or a reply too long to be read.
        """
        # Raised outside the handlers: the errors of the HTTP client know the request's headers, and so the key.
        try:
            address = None if query is None else self._url.with_query(query)
            sending = self._wire().exchange(body, longest=longest, url=address)
            posted = await (sending if self._timeout_s is None else _within(self._timeout_s, sending))
            if posted is not None:
                return posted
            failure = self.failure("shape", f"The reply is longer than {longest / 2**20:.0f} MB.", may_cost=True)
        except TimeoutError:
            span = "in time" if self._timeout_s is None else f"within {self._timeout_s:g} s"
            failure = self.failure("transport", f"No whole reply {span}.", may_cost=True)
        except Unsent as error:
            failure = self._unsent(error.cause)
        except aiohttp.ClientPayloadError:
            failure = self.failure("transport", "The reply broke off.", may_cost=True)
        except HttpProcessingError:
            failure = self.failure("transport", "The reply is not HTTP.", may_cost=True)
        except (aiohttp.ClientError, OSError) as error:
            told = "The connection was closed before a reply came"
            cause = getattr(error, "strerror", None) or type(error).__name__
            failure = self.failure("transport", f"{told} ({cause}).", may_cost=True)
        raise failure

    def failure(
        self, kind: FailureKind, message: str, *, status: int | None = None, may_cost: bool = False
    ) -> ModelFailure:
        """ModelFailure with this address."""
        return ModelFailure(kind, f"{self.host}: {message}", status=status, may_cost=may_cost, secrets=self.secrets)

    def refusal(self, posted: Posted) -> ModelFailure:
        """What a status that is not of success comes to."""
        status = posted.status
        said = error_message(posted.body)
        kind: FailureKind = "refused"
        if _is_passing(status):
            kind = "transport"
        elif status == 429:
            kind = "refused" if any(word in posted.body for word in _HARD_QUOTA) else "limited"
        elif 300 <= status < 400:
            said = f"redirects to {redact_url(posted.headers.get('Location', 'nowhere'))}, which is not followed"
        elif status == 404 and not self._is_whole and "/v1" not in self._url.path:
            said = f"{said} (base_url mostly ends with /v1; asked was {self.url})"
        return ModelFailure(
            kind,
            f"{self.host} answered {status}{_phrase(status)}{': ' if said else '.'}{said}",
            status=status,
            retry_after_s=retry_after_s(posted.headers) if kind in ("limited", "transport") else None,
            secrets=self.secrets,
        )

    def _unsent(self, cause: Exception) -> ModelFailure:
        """What it comes to that there was no connection."""
        if isinstance(cause, aiohttp.ClientConnectorCertificateError):
            return self.failure("refused", f"The certificate is not trusted: {cause.certificate_error}")
        if isinstance(cause, aiohttp.ClientHttpProxyError):
            kind: FailureKind = "transport" if _is_passing(cause.status) else "refused"
            return self.failure(kind, f"The proxy answered {cause.status}{_phrase(cause.status)}.")
        if isinstance(cause, ValueError):
            via = "" if self._proxy is None else ", or the proxy that the environment names,"
            return self.failure("refused", f"The address{via} cannot be used.")
        what = "No connection"
        if isinstance(cause, aiohttp.ClientProxyConnectionError):
            what = f"No connection to the proxy {_place(self._proxy)}, which the environment names"
        elif isinstance(cause, aiohttp.ClientConnectorSSLError):
            what = "No connection by TLS"
        if isinstance(cause, aiohttp.ClientConnectorError):
            return self.failure("transport", f"{what}: {cause.os_error.strerror or cause.os_error}.")
        return self.failure("transport", f"{what}: {getattr(cause, 'strerror', None) or type(cause).__name__}.")

    async def close(self) -> None:
        """Give back the connections of this event loop."""
        wire = self._wires.pop(asyncio.get_running_loop(), None)
        if wire is not None:
            await wire.close()

    def _wire(self) -> Wire:
        loop = asyncio.get_running_loop()
        wire = self._wires.get(loop)
        if wire is None or not wire.is_open:
            forget_closed(self._wires)
            wire = self._wires[loop] = Wire(self._method, self._url, headers=self._headers, proxy=self._proxy)
        return wire


def error_message(body: bytes) -> str:
    """What a provider says is wrong, from any of the forms of error bodies; its code stands behind it.

    >>> complaint(b'{"error": {"message": "No such model.", "code": "model_not_found"}}')
    'No such model. (model_not_found)'
    >>> complaint(b'{"detail": "Not Found"}'), complaint(b"<html>")
    ('Not Found', '<html>')
    """
    try:
        told = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace").strip()
    if isinstance(told, list) and told:
        told = told[0]
    if not isinstance(told, dict):
        return str(told)
    inner = told.get("error", told)
    if not isinstance(inner, dict):
        return str(inner)
    message = next((inner[name] for name in ("message", "detail", "error", "title") if inner.get(name)), "")
    text = message if isinstance(message, str) else msgspec.json.encode(message).decode()
    marks = [str(mark) for name in ("code", "param") if (mark := inner.get(name)) and str(mark) not in text]
    return f"{text} ({', '.join(marks)})".strip() if marks else text


def redact_url(url: str) -> str:
    """A URL without credentials, and with the values of a query that may be secret hidden.

    >>> shown("https://me:secret@host/v1?api-version=2024&key=abc")
    'https://host/v1?api-version=2024&key=hidden'
    """
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return "hidden"
    query = urllib.parse.urlencode(
        [(name, "hidden" if _hides(name) else value) for name, value in urllib.parse.parse_qsl(parts.query)]
    )
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))


def _digest(url: yarl.URL) -> str:
    return hashlib.sha256(url.raw_query_string.encode()).hexdigest()


def _hides(name: str) -> bool:
    return name.lower() not in ("api-version", "version", "alt", "model", "deployment")


def _address(base_url: str, path: str | None) -> yarl.URL:
    try:
        base = yarl.URL(base_url.strip())
        usable = base.scheme in ("http", "https") and bool(base.host) and base.port is not None
    except ValueError:
        usable = False
    if not usable:
        called, example = ("url", "http://localhost:8000/ask") if path is None else ("base_url", _EXAMPLE)
        raise ConfigurationError(f"{called} is an address such as `{example}`, not `{redact_url(base_url)}`.")
    if path is None:
        return base
    root = base.path.rstrip("/")
    return base.with_path(root if root.endswith(f"/{path}") else f"{root}/{path}", keep_query=True)


def _proxy(url: yarl.URL) -> str | None:
    """The proxy the environment names for an address; loopback never goes through one."""
    host = url.host or ""
    if _is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    proxy = urllib.request.getproxies().get(url.scheme)
    return proxy if proxy and proxy.startswith(("http://", "https://")) else None


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or _LOOPBACK.fullmatch(host) is not None


async def _within(seconds: float, sending: Coroutine[Any, Any, Posted | None]) -> Posted | None:
    """What was sent for; ``asyncio.wait_for`` of Python 3.11 can lose a cancellation."""
    async with asyncio.timeout(seconds):
        return await sending


def _is_passing(status: int) -> bool:
    """Whether a refusal may not be repeated the next time."""
    return status >= 500 or status in _RETRIED


def _place(proxy: str | None) -> str:
    """Host and port of a proxy, and nothing else of its address."""
    url = yarl.URL(proxy or "")
    return f"{url.host}:{url.port}"


def _phrase(status: int) -> str:
    try:
        return f" {http.HTTPStatus(status).phrase}"
    except ValueError:
        return ""
