"""Sends requests to one HTTP address with an aiohttp session, and says what its refusals mean."""

from __future__ import annotations

import asyncio
import hashlib
import http
import io
import os
import re
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import aiohttp
import msgspec
import yarl

from deemster.errors import ConfigurationError, is_out_of_descriptors
from deemster.models._retry_after import retry_after_s
from deemster.models.model_client import FailureKind, ModelFailure
from deemster.models.secret_redaction import NO_SECRETS, Secrets, basic_credentials, redact_address
from deemster.records import Usage

LONGEST_REPLY = 4 * 2**20
_LONGEST_REFUSAL = 2**16
_LARGE_BODY = 2**20
# The status of a refusal counts even where its body does not arrive, so the wait for that body is short.
_REFUSAL_BODY_S = 5.0
# Common servers drop an idle connection after 5 s. A request that is sent just then fails.
_KEEPALIVE_S = 4.0
_DNS_CACHE_S = 300
_RETRIED = frozenset({408, 409, 425})
_HARD_QUOTA = (b"insufficient_quota", b"billing_hard_limit_reached", b"billing_not_active")
_AZURE = ".openai.azure.com"
# Amazon takes every key as a bearer token, for Anthropic's API too.
_AMAZON = (".api.aws", ".amazonaws.com")
_EXAMPLE = "https://api.openai.com/v1"
_LOOPBACK = re.compile(r"127(?:\.[0-9]+){1,3}")
# Errors that aiohttp raises only before it sends anything.
_UNSENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    UnicodeError,
)


def _has_no_descriptor() -> bool:
    """Whether no file can be opened; the resolver of host names does not say that this is why it fails."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return is_out_of_descriptors(error)
    return False


class HttpResponse(NamedTuple):
    """What came back.

    Attributes:
        status: The HTTP status.
        body: The body; of a refusal, its first 64 KB.
        headers: The headers.
    """

    status: int
    body: bytes
    headers: Mapping[str, str]


class Endpoint:
    """One address to which requests go, one attempt a call.

    Redirects are not followed: the key is for this address alone.

    Args:
        base_url: Where the API lives, such as `https://api.openai.com/v1`; a query is kept.
        path: The path below it, such as `chat/completions`; None where the address is complete.
        key: The API key, or None.
        key_header: The header that carries the key; `Authorization` unless given. Azure and Amazon have their own.
        timeout_s: The longest attempt, body included; None where the caller sets a time limit, as the gateway does.
        method: The HTTP method.
        headers: Further headers. They replace those of JSON and the key.
        hidden: Further values that must be shown nowhere.

    Attributes:
        host: The host, for messages.
        url: The address without what may be secret.
        query: The SHA-256 of its query, where `url` hides a part of that; otherwise None.
        secrets: What must be shown nowhere.

    Raises:
        ConfigurationError: The URL is not one of HTTP, or the key holds a character that no header can carry.
    """

    def __init__(
        self,
        base_url: str,
        path: str | None = None,
        *,
        key: str | None,
        key_header: str | None = None,
        timeout_s: float | None = None,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        hidden: Iterable[str] = (),
    ) -> None:
        address = _address(base_url, path)
        self._has_path = path is not None
        self._method = method
        self._url = address.with_user(None)
        self.host = self._url.host or ""
        key = (key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError(f"The API key for {self.host} holds a character that no HTTP header can carry.")
        self._proxy = _proxy(self._url)
        secret = [
            key,
            *basic_credentials(address.user, address.password),
            *_proxy_credentials(self._proxy),
            *(value for name, value in self._url.query.items() if _hides(name)),
            *hidden,
        ]
        self.secrets = Secrets(secret) if any(secret) else NO_SECRETS
        self.url = redact_url(str(self._url))
        self.query = _digest(self._url) if any(map(_hides, self._url.query)) else None
        known = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            own_header = "api-key" if self.host.endswith(_AZURE) else key_header
            if self.host.endswith(_AMAZON):
                own_header = None
            known |= {own_header: key} if own_header else {"Authorization": f"Bearer {key}"}
        elif address.user is not None:
            known["Authorization"] = f"Basic {basic_credentials(address.user, address.password)[-1]}"
        # Of names that differ by case alone, the last one counts.
        self._headers = dict({each[0].lower(): each for each in [*known.items(), *(headers or {}).items()]}.values())
        self._timeout_s = timeout_s
        # A session of aiohttp belongs to the event loop it was made in.
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

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

    async def send(
        self, body: bytes | None, *, longest: int = LONGEST_REPLY, query: Sequence[tuple[str, str]] | None = None
    ) -> HttpResponse:
        """Send a body, and wait for the complete reply.

        Args:
            body: JSON, or what the headers say; None for none.
            longest: The longest reply that is read.
            query: Replaces the address's own query.

        Raises:
            ModelFailure: There was no connection, no complete reply in time, or a reply too long to be read.
        """
        attempt = None if self._proxy is None else SimpleNamespace(is_sent=False)
        # Raised outside the handlers: the errors of aiohttp know the request's headers, and so the key.
        try:
            async with self._session().request(
                self._method,
                self._url if query is None else self._url.with_query(query),
                # A session would copy a large body of bytes in one piece, and warns of that.
                data=body if body is None or len(body) < _LARGE_BODY else io.BytesIO(body),
                proxy=self._proxy,
                allow_redirects=False,
                trace_request_ctx=attempt,
            ) as response:
                content = await (_read_refusal(response) if response.status >= 300 else _read(response, longest))
                if content is not None:
                    return HttpResponse(response.status, content, response.headers)
            failure = self.failure("shape", f"The reply is longer than {longest / 2**20:.0f} MB.", may_cost=True)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            unsent = isinstance(error, _UNSENT) or (attempt is not None and not attempt.is_sent)
            failure = self._before_sending(error) if unsent else self._after_sending(error)
        raise failure

    def failure(
        self, kind: FailureKind, message: str, *, usage: Usage | None = None, may_cost: bool = False
    ) -> ModelFailure:
        """A failure of this address."""
        return ModelFailure(kind, f"{self.host}: {message}", usage=usage, may_cost=may_cost, secrets=self.secrets)

    def refusal(self, response: HttpResponse) -> ModelFailure:
        """The failure that a status of 300 or more stands for."""
        status = response.status
        message = error_message(response.body)
        kind: FailureKind = "refused"
        if _may_pass(status):
            kind = "transport"
        elif status == 429:
            kind = "refused" if any(word in response.body for word in _HARD_QUOTA) else "limited"
        elif 300 <= status < 400:
            message = f"redirects to {redact_url(response.headers.get('Location', 'nowhere'))}, which is not followed"
        elif status == 404 and self._has_path and "/v1" not in self._url.path:
            message = f"{message} (base_url mostly ends with /v1; asked was {self.url})"
        return ModelFailure(
            kind,
            f"{self.host} answered {status}{_phrase(status)}{': ' if message else '.'}{message}",
            status=status,
            retry_after_s=retry_after_s(response.headers) if kind in ("limited", "transport") else None,
            secrets=self.secrets,
        )

    def _after_sending(self, error: Exception) -> ModelFailure:
        """The failure where the request was on its way, so that the model may have worked."""
        if isinstance(error, TimeoutError) and self._timeout_s is not None:
            return self.failure("transport", f"No complete reply within {self._timeout_s:g} s.", may_cost=True)
        if isinstance(error, aiohttp.ClientPayloadError):
            return self.failure("transport", "The reply broke off.", may_cost=True)
        if isinstance(error, (aiohttp.ClientResponseError, ValueError)):
            return self.failure("transport", "The reply is not HTTP.", may_cost=True)
        cause = getattr(error, "strerror", None) or type(error).__name__
        return self.failure("transport", f"The connection was closed before a reply came ({cause}).", may_cost=True)

    def _before_sending(self, error: Exception) -> ModelFailure:
        """The failure where there was no connection: nothing was sent, so it costs nothing."""
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return self.failure("refused", f"The certificate is not trusted: {error.certificate_error}")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            kind: FailureKind = "transport" if _may_pass(error.status) else "refused"
            return self.failure(kind, f"The proxy answered {error.status}{_phrase(error.status)}.")
        if isinstance(error, ValueError):
            via = "" if self._proxy is None else ", or the proxy that the environment names,"
            return self.failure("refused", f"The address{via} cannot be used.")
        if is_out_of_descriptors(getattr(error, "os_error", error)) or _has_no_descriptor():
            return self.failure("local", "No connection: this machine has no file descriptor left.")
        what = "No connection"
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            what = f"No connection to the proxy {_host_and_port(self._proxy)}, which the environment names"
        elif isinstance(error, aiohttp.ClientConnectorSSLError):
            what = "No connection by TLS"
        if isinstance(error, aiohttp.ClientConnectorError):
            return self.failure("transport", f"{what}: {error.os_error.strerror or error.os_error}.")
        if isinstance(error, TimeoutError) and self._timeout_s is not None:
            return self.failure("transport", f"{what} within {self._timeout_s:g} s.")
        return self.failure("transport", f"{what}: {getattr(error, 'strerror', None) or type(error).__name__}.")

    async def close(self) -> None:
        """Close the connections of this event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    def _session(self) -> aiohttp.ClientSession:
        """The session of the running event loop."""
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            # A loop that ended without `close` would be kept alive by its session.
            for other in tuple(self._sessions):
                if other.is_closed():
                    self._sessions.pop(other, None)
            session = self._sessions[loop] = aiohttp.ClientSession(
                # The gateway limits how many requests are under way.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_S, ttl_dns_cache=_DNS_CACHE_S),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
                trace_configs=None if self._proxy is None else [_TRACE],
            )
        return session


async def _note_sending(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    context.trace_request_ctx.is_sent = True


# Notes that a request was sent through a proxy: what happens at a proxy is not told apart by the class of the error.
# Elsewhere the class is enough, and a trace takes a tenth of the time of a call.
_TRACE = aiohttp.TraceConfig()
_TRACE.on_request_headers_sent.append(_note_sending)


async def _read(response: aiohttp.ClientResponse, longest: int) -> bytes | None:
    """The body; None where it is too long, and then the rest stays unread."""
    announced = response.content_length
    if announced is not None and "Content-Encoding" not in response.headers:
        return None if announced > longest else await response.read()
    parts, length = [], 0
    async for chunk in response.content.iter_any():
        parts.append(chunk)
        length += len(chunk)
        if length > longest:
            return None
    return b"".join(parts)


async def _read_refusal(response: aiohttp.ClientResponse) -> bytes:
    """The beginning of a refusal's body, as far as it arrives."""
    parts, length = [], 0
    try:
        async with asyncio.timeout(_REFUSAL_BODY_S):
            async for chunk in response.content.iter_any():
                parts.append(chunk)
                length += len(chunk)
                if length >= _LONGEST_REFUSAL:
                    break
    except (aiohttp.ClientError, TimeoutError, OSError):
        pass
    return b"".join(parts)[:_LONGEST_REFUSAL]


def error_message(body: bytes) -> str:
    """The message of an error body in any of the forms that providers use, with its code in brackets.

    >>> error_message(b'{"error": {"message": "No such model.", "code": "model_not_found"}}')
    'No such model. (model_not_found)'
    >>> error_message(b'{"detail": "Not Found"}'), error_message(b"<html>")
    ('Not Found', '<html>')
    """
    try:
        decoded = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace").strip()
    if isinstance(decoded, list) and decoded:
        decoded = decoded[0]
    if not isinstance(decoded, dict):
        return str(decoded)
    error = decoded.get("error", decoded)
    if not isinstance(error, dict):
        return str(error)
    message = next((error[name] for name in ("message", "detail", "error", "title") if error.get(name)), "")
    text = message if isinstance(message, str) else msgspec.json.encode(message).decode()
    codes = [str(code) for name in ("code", "param") if (code := error.get(name)) and str(code) not in text]
    return f"{text} ({', '.join(codes)})".strip() if codes else text


def redact_url(url: str) -> str:
    """A URL without credentials, and with the values of a query that may be secret hidden.

    >>> redact_url("https://me:secret@host/v1?api-version=2024&key=abc")
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
        raise ConfigurationError(f"{called} is an address such as `{example}`, not `{redact_address(base_url)}`.")
    if path is None:
        return base
    # An address from a variable may end with a slash, and what follows it begins with one.
    root = re.sub("/{2,}", "/", base.path).rstrip("/")
    return base.with_path(root if root.endswith(f"/{path}") else f"{root}/{path}", keep_query=True)


def _proxy(url: yarl.URL) -> str | None:
    """The proxy the environment names for an address; loopback never goes through one."""
    host = url.host or ""
    if _is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    proxy = urllib.request.getproxies().get(url.scheme)
    return proxy if proxy and proxy.startswith(("http://", "https://")) else None


def _proxy_credentials(proxy: str | None) -> list[str]:
    """What must be shown nowhere of a proxy's address, which may be no URL."""
    user, colon, password = (proxy or "").partition("://")[2].rpartition("@")[0].partition(":")
    return basic_credentials(urllib.parse.unquote(user), urllib.parse.unquote(password)) if user or colon else []


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or _LOOPBACK.fullmatch(host) is not None


def _may_pass(status: int) -> bool:
    """Whether the next attempt may meet no such refusal."""
    return status >= 500 or status in _RETRIED


def _host_and_port(proxy: str | None) -> str:
    """Host and port of a proxy, and nothing else of its address."""
    url = yarl.URL(proxy or "")
    return f"{url.host}:{url.port}"


def _phrase(status: int) -> str:
    try:
        return f" {http.HTTPStatus(status).phrase}"
    except ValueError:
        return ""
