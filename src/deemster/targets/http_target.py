"""An HTTP endpoint as the target."""

from __future__ import annotations

import asyncio
import hashlib
import re
import urllib.parse
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from deemster.errors import ConfigurationError, Issue, nearest
from deemster.errors.parameter_checks import checks_parameters
from deemster.formats.json_values import name_kind, to_json_value
from deemster.models.call_context import CallContext
from deemster.models.circuit_breaker import CircuitBreaker
from deemster.models.clock import Clock, SystemClock
from deemster.models.http_endpoint import Endpoint, HttpResponse
from deemster.models.model_call import CallFailure, ClientResult, ModelCaller
from deemster.models.model_roles import CONCURRENCY, Role
from deemster.models.price import Price
from deemster.models.secret_redaction import is_secret_name, named_secrets
from deemster.records import Answer, Ask, Invocation, Message, Output, Reply, Request, TargetFailure
from deemster.records.output import with_latency
from deemster.targets._gateway_reply import paid_usage, why_no_output
from deemster.targets._http_reply import ReplyPaths, parse_reply
from deemster.targets._request_template import compile_template, is_fixed, template_issues
from deemster.targets._target_settings import check_settings, settings_identity

# No role of a suite has such a name.
ROLE = "http target"
METHODS = ("POST", "GET", "PUT", "PATCH")
LONGEST = 16 * 2**20
# A user who sets these means another address or another body.
_RESERVED = ("host", "content-length", "transfer-encoding", "connection")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_encode = msgspec.json.Encoder().encode
_OpenCaller: TypeAlias = tuple[ModelCaller[Output], CallContext]


class TargetRequest(NamedTuple):
    """What is sent for one sample."""

    body: bytes | None
    query: Sequence[tuple[str, str]] | None


class HttpLimits(NamedTuple):
    """How patient an HTTP target is, and how many requests its endpoint gets.

    Attributes:
        timeout_s: The longest attempt, body included.
        total_timeout_s: The longest call, from its first attempt, retries and waits included.
        max_retry_after_s: The longest wait the endpoint may ask for.
        retries: How often a request is repeated after transport failures and 429.
        concurrency: How many requests may be under way: a number, or a range such as `5-64`; else what the run says.
        rpm: Requests a minute.
    """

    timeout_s: float = 60.0
    total_timeout_s: float = 300.0
    max_retry_after_s: float = 60.0
    retries: int = 3
    concurrency: str | int | None = None
    rpm: int | None = None

    def role(self, client: HttpTarget) -> Role:
        """The target as a caller of models knows it.

        Raises:
            ValueError: A limit is out of range.
        """
        concurrency = CONCURRENCY if self.concurrency is None else self.concurrency
        return Role(client=client, **self._replace(concurrency=concurrency)._asdict())


REPLY_TEXT: Final = ReplyPaths()
USUAL_LIMITS: Final = HttpLimits()


class HttpTarget:
    """Asks an HTTP endpoint, with the retries, limits and timeouts of model calls.

    Args:
        url: The address. Values of its query may hold placeholders such as `{{input.question}}`.
        method: One of `POST`, `GET`, `PUT`, `PATCH`.
        headers: Headers to send. Those whose name says so (`Authorization`, `X-Api-Key`) are shown nowhere.
        body: What is sent: data with placeholders, sent as JSON, or text with placeholders, sent as text. The whole
            input unless given, and nothing with `GET`.
        reply: Where the parts of an output stand in the reply.
        limits: How patient it is, and how many requests it gets.
        api_key: Sent as `Authorization: Bearer ...`, and shown nowhere.
        hidden: Further values that must be shown nowhere.
        settings: What placeholders such as `{{settings.skill}}` stand for.
        price: What the tokens cost that its replies report under the path `usage`; then the run's budget counts them.
        cache: Whether its answers are kept in the cache of the run, as those of models are.

    Attributes:
        identity: What can change an answer beside the input.
        roles: The role that it is asked under, where the gateway of the run asks it: where it has a price or a cache.

    Raises:
        ConfigurationError: Something given cannot be used.
    """

    is_async = True

    @checks_parameters
    def __init__(
        self,
        url: str,
        *,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        reply: ReplyPaths = REPLY_TEXT,
        limits: HttpLimits = USUAL_LIMITS,
        api_key: str | None = None,
        hidden: Iterable[str] = (),
        settings: Mapping[str, Any] | None = None,
        price: Price | None = None,
        cache: bool = False,
    ) -> None:
        self._settings = check_settings(settings)
        given = dict(headers or {})
        issues = [
            Issue(message) for _, message in (*url_issues(url), *method_issues(method, body), *header_issues(given))
        ]
        if issues:
            raise ConfigurationError(issues)
        secret = [value for name, value in given.items() if is_secret_name(name)]
        self._endpoint = Endpoint(
            url,
            key=api_key,
            method=method,
            headers={"Accept": "*/*"} | _typed(body) | given,
            hidden=[*secret, *(value.rpartition(" ")[2] for value in secret), *hidden, *named_secrets(self._settings)],
        )
        self.secrets = self._endpoint.secrets
        self._fill = None if method == "GET" else compile_template("{{input}}" if body is None else to_json_value(body))
        self._queries = [(name, compile_template(value)) for name, value in self._endpoint.parameters]
        self._is_fixed = all(is_fixed(value) for _, value in self._endpoint.parameters)
        try:
            self._paths = reply.steps()
            self._role = limits.role(self)
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
        self.concurrency: int | None = None if limits.concurrency is None else self._role.bounds[1]
        self.identity: Mapping[str, Any] = {
            "http": self._identity(method, given, body),
            **settings_identity(self._settings),
        }
        if price is not None and "usage" not in self._paths:
            raise ConfigurationError("`price` needs `usage`, the path of the tokens in the reply, such as `usage`.")
        self.roles = (ROLE,) if price is not None or cache else ()
        self._prices = {} if price is None else {"": price}
        self._is_cached = cache
        self._circuit = CircuitBreaker(self._endpoint.url)
        self._clock: Clock = SystemClock()
        # A rate limiter belongs to the event loop it was made in.
        self._callers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _OpenCaller] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"HttpTarget({self._endpoint.url!r})"

    def __getstate__(self) -> dict[str, Any]:
        """Another process has event loops of its own."""
        return {name: value for name, value in self.__dict__.items() if name != "_callers"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _callers=weakref.WeakKeyDictionary())

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine, so that asking it reaches no network."""
        return self._endpoint.is_local

    @property
    def open_circuit(self) -> str | None:
        """Why the circuit breaker stopped requests; None where it did not."""
        return self._circuit.open_reason

    async def open(self, *, clock: Clock | None = None) -> None:
        """Make ready for a run.

        Args:
            clock: Measures how long replies take; one that stands still measures nothing.
        """
        if clock is not None:
            self._clock = clock
        self._circuit = CircuitBreaker(self._endpoint.url)
        self._close_caller()

    async def close(self) -> None:
        """Give back the connections of this event loop."""
        self._close_caller()
        await self._endpoint.close()

    def halt(self, reason: str) -> None:
        """Send nothing further; what is under way goes on.

        Args:
            reason: Why, for a person.
        """
        for caller, context in list(self._callers.values()):
            context.halted = reason
            caller.limiter.let_all_pass()

    async def call_async(self, invocation: Invocation) -> Output | TargetFailure | None:
        """What the endpoint answers; a failure where it does not; None where it was not asked at all."""
        request = self._request_or_failure(invocation)
        if isinstance(request, TargetFailure):
            return request
        key = hashlib.sha256(f"{invocation.repetition}:{invocation.id}".encode("utf-8", "surrogatepass")).digest()
        answered = await self._open_caller()[0].call(request, key=key)
        if isinstance(answered, CallFailure):
            no_answer = answered.no_answer
            return None if no_answer.cause == "not_run" else TargetFailure(no_answer.message or "")
        return with_latency(answered.value, answered.usage.latency_ms)

    @property
    def own_roles(self) -> Mapping[str, Role]:
        """The endpoint as a model of the run, where the gateway of the run asks it."""
        client = _EndpointModel(self, {"client": "http-target", **self.identity} if self._is_cached else None)
        return dict.fromkeys(self.roles, msgspec.structs.replace(self._role, client=client, prices=self._prices))

    def script(
        self, invocation: Invocation
    ) -> Generator[Sequence[Request], Sequence[Reply], Output | TargetFailure | None]:
        """Asks the endpoint through the gateway of the run."""
        request = self._request_or_failure(invocation)
        if isinstance(request, TargetFailure):
            return request

        body = () if request.body is None else (Message("user", request.body.decode()),)
        query = None if request.query is None else [list(pair) for pair in request.query]
        ask = Ask(
            messages=body,
            role=ROLE,
            temperature=None,
            seed=None,
            max_tokens=None,
            subject=invocation.id,
            parameters={"query": query},
        )
        (reply,) = yield [ask]
        if not isinstance(reply, Answer):
            return why_no_output(reply)
        output = parse_reply(reply.text.encode(), self._paths, self._endpoint)
        usage = paid_usage(reply)
        if output.usage is None and usage is not None:
            # Nobody says that a model was called.
            usage = msgspec.structs.replace(usage, calls=0)
        return msgspec.structs.replace(output, usage=usage)

    def _request_or_failure(self, invocation: Invocation) -> TargetRequest | TargetFailure:
        if self._settings:
            invocation = msgspec.structs.replace(invocation, settings=self._settings)
        try:
            return self._request(invocation)
        except LookupError as error:
            return TargetFailure(str(error.args[0]))
        except UnicodeEncodeError:
            return TargetFailure("The input holds a lone surrogate, which no request can carry.")

    def _request(self, invocation: Invocation) -> TargetRequest:
        query = None
        if not self._is_fixed:
            query = [(name, _parameter(fill(invocation))) for name, fill in self._queries]
        if self._fill is None:
            return TargetRequest(None, query)
        body = self._fill(invocation)
        return TargetRequest(body.encode() if isinstance(body, str) else _encode(body), query)

    async def _send(self, request: TargetRequest) -> HttpResponse:
        return await self._endpoint.send(request.body, query=request.query, longest=LONGEST)

    def _read(self, response: HttpResponse, _: TargetRequest) -> ClientResult[Output]:
        if response.status >= 300:
            raise self._endpoint.refusal(response)
        return ClientResult(parse_reply(response.body, self._paths, self._endpoint), None, None)

    def _close_caller(self) -> None:
        opened = self._callers.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            opened[0].close()
            opened[1].run_cache.close()

    def _open_caller(self) -> _OpenCaller:
        """The caller of the running event loop, and what its calls share."""
        loop = asyncio.get_running_loop()
        opened = self._callers.get(loop)
        if opened is None:
            context = CallContext(self._clock)
            caller = ModelCaller(self._role, self._send, self._read, circuit=self._circuit, context=context)
            opened = self._callers[loop] = caller, context
        return opened

    def _identity(self, method: str, headers: Mapping[str, str], body: Any) -> dict[str, Any]:
        visible_headers = {name: "hidden" if is_secret_name(name) else value for name, value in sorted(headers.items())}
        identity = {
            "url": self._endpoint.url,
            "query": self._endpoint.query,
            "method": method,
            "headers": visible_headers,
            "body": to_json_value(body),
            **self._paths,
        }
        clean = self.secrets.redact(msgspec.json.encode(identity).decode())
        plain: dict[str, Any] = msgspec.json.decode(clean)
        return {name: value for name, value in plain.items() if value not in (None, {})}


class _EndpointModel:
    """The endpoint of a target as the gateway asks it: a question is a request, and an answer the text of a reply.

    Args:
        target: The target.
        identity: Under what its answers are kept; None where they are not.
    """

    is_clean = True

    def __init__(self, target: HttpTarget, identity: Mapping[str, Any] | None) -> None:
        self._target = target
        self.identity = identity
        self.secrets = target.secrets

    async def complete(self, ask: Ask) -> Answer:
        """What the endpoint replies.

        Raises:
            ModelFailure: The attempt failed.
        """
        body = ask.messages[0].content.encode() if ask.messages else None
        request = TargetRequest(body, None if ask.parameters is None else ask.parameters["query"])
        response = await self._target._send(request)  # noqa: SLF001 - a part of the target
        output = self._target._read(response, request).value  # noqa: SLF001 - a part of the target
        return Answer(text=self.secrets.redact(response.body.decode()), usage=output.usage, model=output.model)

    async def close(self) -> None:
        """Give back the connections."""
        await self._target._endpoint.close()  # noqa: SLF001 - a part of the target


def method_issues(method: Any, body: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with a method and the body it is to carry, each with the key it is about."""
    if method not in METHODS:
        meant = nearest(str(method), [known.lower() for known in METHODS])
        near = f" Did you mean `{meant.upper()}`?" if meant else ""
        yield "method", f"`method` is one of POST, GET, PUT and PATCH, not {method!r:.40}.{near}"
    if method == "GET" and body is not None:
        yield "body", "A `GET` carries no `body`: put placeholders into the query of the `url`, or use `POST`."


def url_issues(url: str) -> Iterator[tuple[str, str]]:
    """What is wrong with the placeholders of an address, each with the key it is about."""
    address, _, query = url.partition("?")
    if not is_fixed(address):
        yield "url", "Placeholders of a `url` stand in the values of its query, such as `?q={{input.question}}`."
    for name, value in urllib.parse.parse_qsl(query):
        yield from (("url", message) for _, message in template_issues(value, ("url", name)))


def header_issues(headers: Any) -> Iterator[tuple[str | None, str]]:
    """What is wrong with headers, each with the name of the one it is about."""
    if not isinstance(headers, Mapping):
        yield None, f"`headers` is a map of names to texts, not {name_kind(headers)}."
        return
    for name, value in headers.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            yield name, f"{name!r:.40} is no name of a header."
        elif name.lower() in _RESERVED:
            yield name, f"The header `{name}` is set by the request itself."
        elif not isinstance(value, str):
            yield name, f"The header `{name}` is text, not {name_kind(value)}: quote it."
        elif not (value.isascii() and value.isprintable()):
            yield name, f"The header `{name}` holds a character that no header can carry."
        elif not is_fixed(value):
            yield name, f"The header `{name}` holds a placeholder; they stand in `body` and in the query of `url`."


def _typed(body: Any) -> dict[str, str]:
    """The type of a body that is text; one that is a placeholder alone may become anything."""
    is_text = isinstance(body, str) and not (body.startswith("{{") and body.endswith("}}"))
    return {"Content-Type": "text/plain; charset=utf-8"} if is_text else {}


def _parameter(value: Any) -> str:
    text = value if isinstance(value, str) else _encode(value).decode()
    # A text that cannot be encoded would silently be left out of the address.
    text.encode()
    return text
