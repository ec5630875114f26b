"""A chat and embedding server on loopback for tests, which misbehaves on demand.

Usage:
    python -m deemster.testing.model_server [--port 8000] [--fault 500:0.1] [--refuse seed] [--like mistral] [--list]
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import functools
import json
import sys
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from aiohttp import web

from deemster.errors import ConfigurationError, DeemsterError, did_you_mean
from deemster.testing.provider_behaviours import (
    BEHAVIOURS,
    ProviderBehaviour,
    as_provider_says,
    as_understood,
    refused_by_provider,
)
from deemster.testing.server_faults import (
    FAULTS,
    JSON,
    NO_FAULT,
    ServerFault,
    error_payload,
    faulty_body,
    parse_fault,
    refusal,
    send_with_fault,
)
from deemster.testing.server_replies import (
    AnswerFunction,
    ChatMessages,
    completion_reply,
    embedding_reply,
    fraction,
    verdict,
)

REFUSABLE = ("json_schema", "json_object", "logprobs", "max_tokens", "seed", "temperature", "top_p")
_LARGEST = 64 * 2**20
_START_TIMEOUT_S = 10
_LAST_PORT = 65_535


class ReceivedRequest(NamedTuple):
    """A request the server got.

    Attributes:
        path: The path of its address.
        headers: Its headers, names in lower case.
        body: Its body.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body as JSON.

        Raises:
            ValueError: It is none.
        """
        return json.loads(self.body)


class ModelServer:
    """A real HTTP server on loopback that speaks the OpenAI API and fails on demand.

    It answers `/v1/chat/completions` with a verdict that fits the schema asked for, with log-probabilities and usage,
    and `/v1/embeddings` with vectors in which texts that share words are near each other. Answers depend on the seed
    and on the request, never on when it arrives.

    Args:
        seed: Chooses answers, and which requests fail.
        answer: From the messages (a list of dicts that also has `.schema` and `.body`) to the text of the answer.
        faults: Rates of faults by name, such as ``{"500": 0.1, "429=1": 0.05}``. Whether a request fails depends on
            the seed, its body and how often the same body was seen, so a repeated request may succeed.
        refuses: What the endpoint does not know and answers with 400: any of `REFUSABLE`.
        like: A provider whose server it resembles, such as `mistral`: where its API lives, what it refuses and ignores,
            how its replies look. A judge that works with it works at the first try with that provider.
        logprobs: Whether log-probabilities are offered; where not, asking for them is ignored.
        dimension: Of the embeddings.
        port: To listen on; 0 for any that is free.
        keep: Whether requests are kept in `requests`.

    Attributes:
        requests: Everything received, in the order of arrival.
        peak: The most requests that were under way at once.

    Raises:
        ConfigurationError: A fault, a refusal or a provider is not known, the rates are not shares of at most 1 in all,
            or there is no such port or dimension.

    >>> with ModelServer(answer=lambda messages: messages[-1]["content"].upper()) as server:
    ...     server.url.endswith("/v1")
    True
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        answer: AnswerFunction | None = None,
        faults: Mapping[str, float] | None = None,
        refuses: Collection[str] = (),
        like: str | None = None,
        logprobs: bool = True,
        dimension: int = 16,
        port: int = 0,
        keep: bool = True,
    ) -> None:
        self.seed = seed
        self.answer = answer
        if like is not None and like not in BEHAVIOURS:
            raise ConfigurationError(f"No provider is called `{like}`. {did_you_mean(like, BEHAVIOURS)}")
        self._behaviour = ProviderBehaviour(key_headers=()) if like is None else BEHAVIOURS[like]
        self.refuses = frozenset(refuses) | self._behaviour.refuses
        self.logprobs = logprobs
        self.dimension = dimension
        self.requests: list[ReceivedRequest] = []
        self.peak = 0
        self._rates = _rates(faults or {})
        for name in self.refuses - set(REFUSABLE):
            raise ConfigurationError(f"Nothing that can be refused is called `{name}`. {did_you_mean(name, REFUSABLE)}")
        if not 0 <= port <= _LAST_PORT:
            raise ConfigurationError(f"A port is a number from 0 to {_LAST_PORT}, not {port}.")
        if dimension < 1:
            raise ConfigurationError(f"The dimension of embeddings is at least 1, not {dimension}.")
        self._keep = keep
        self._port = port
        self._queue: collections.deque[ServerFault] = collections.deque()
        self._seen: collections.Counter[bytes] = collections.Counter()
        self._under_way = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._start_error: OSError | None = None

    @property
    def url(self) -> str:
        """What clients take as `base_url`."""
        return f"http://127.0.0.1:{self._port}{self._behaviour.prefix}"

    def play(self, faults: Iterable[str]) -> None:
        """Let the next requests fail with these faults, one each, in order; later requests get healthy replies.

        Args:
            faults: Names of `FAULTS`, some with `=VALUE`; `ok` for a healthy reply in between.

        Raises:
            ConfigurationError: No fault has such a name.
        """
        self._queue.extend([parse_fault(fault) for fault in faults])

    def forget(self) -> None:
        """Drop the requests received so far and the faults that have not happened yet."""
        self.requests.clear()
        self._queue.clear()
        self._seen.clear()
        self.peak = 0

    def __enter__(self) -> Self:
        """Start serving in a thread of its own.

        Raises:
            OSError: The port is taken, or the server does not start.
        """
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        if not ready.wait(_START_TIMEOUT_S):
            raise TimeoutError(f"The server did not start within {_START_TIMEOUT_S} s.")
        if self._start_error is not None:
            raise self._start_error
        return self

    def __exit__(self, *_: object) -> None:
        """Stop; requests under way are broken off."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_START_TIMEOUT_S)

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        application = web.Application(client_max_size=_LARGEST)
        chats = "messages" if self._behaviour.is_anthropic else "chat/completions"
        prefix = self._behaviour.prefix
        application.router.add_post(f"{prefix}/{chats}", functools.partial(self._reply, chat=True))
        application.router.add_post(f"{prefix}/embeddings", functools.partial(self._reply, chat=False))
        runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.01)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", self._port, backlog=1024)
            await site.start()
            self._port = runner.addresses[0][1]
        except OSError as error:
            self._start_error = error
            self._stop.set()
        ready.set()
        try:
            await self._stop.wait()
        finally:
            await runner.cleanup()

    async def _reply(self, request: web.Request, *, chat: bool) -> web.StreamResponse:
        self._under_way += 1
        self.peak = max(self.peak, self._under_way)
        try:
            body = await request.read()
            if self._keep:
                headers = {name.lower(): value for name, value in request.headers.items()}
                self.requests.append(ReceivedRequest(request.path, headers, body))
            fault = self._next_fault(body)
            refused = refusal(fault, key=request.headers.get("Authorization", "").removeprefix("Bearer "))
            if refused is not None:
                status, headers, payload = refused
                return web.json_response(payload, status=status, headers=headers)
            return await self._answered(request, body, fault, chat=chat)
        finally:
            self._under_way -= 1

    async def _answered(
        self, request: web.Request, body: bytes, fault: ServerFault, *, chat: bool
    ) -> web.StreamResponse:
        try:
            asked = json.loads(body)
        except ValueError:
            return web.json_response(error_payload("The body is no JSON."), status=400)
        headers = {name.lower(): value for name, value in request.headers.items()}
        refused = refused_by_provider(self._behaviour, asked, headers)
        if refused is None and (unknown := self._unknown(asked)) is not None:
            refused = self._behaviour.refusal(unknown)
        if refused is not None:
            status, complaint = refused
            return web.json_response(complaint, status=status)
        if chat:
            understood = as_understood(self._behaviour, asked)
            messages = ChatMessages(understood)
            text = verdict(messages, seed=self.seed) if self.answer is None else self.answer(messages)
            completion = completion_reply(understood, text, logprobs=self.logprobs)
            payload = as_provider_says(self._behaviour, asked, completion)
        else:
            payload = embedding_reply(asked, dimension=self.dimension)
        changed = faulty_body(fault, payload)
        if changed is not None:
            return web.Response(body=changed, content_type=JSON)
        return await send_with_fault(fault, request, json.dumps(payload).encode())

    def _unknown(self, asked: Mapping[str, Any]) -> str | None:
        """The parameter of a request that this endpoint refuses, in the provider's name for it."""
        for name in self.refuses:
            if name in ("json_schema", "json_object"):
                if (asked.get("response_format") or {}).get("type") == name:
                    return "response_format"
            elif name in asked:
                return name
        return None

    def _next_fault(self, body: bytes) -> ServerFault:
        try:
            return self._queue.popleft()
        except IndexError:
            pass
        if not self._rates:
            return ServerFault(NO_FAULT)
        self._seen[body] += 1
        place = fraction(self.seed, body, self._seen[body])
        for fault, rate in self._rates:
            if place < rate:
                return fault
            place -= rate
        return ServerFault(NO_FAULT)


def _rates(faults: Mapping[str, float]) -> list[tuple[ServerFault, float]]:
    rates = [(parse_fault(name), rate) for name, rate in faults.items()]
    if any(not 0 <= rate <= 1 for _, rate in rates) or sum(rate for _, rate in rates) > 1:
        raise ConfigurationError("Rates of faults are shares from 0 to 1 that add up to at most 1.")
    return rates


def _parse_fault_flag(text: str) -> tuple[str, float]:
    name, colon, rate = text.rpartition(":")
    try:
        return (name, float(rate)) if colon else (text, 1.0)
    except ValueError:
        if "=" in name:
            # The colon belongs to the value, as in a date or in JSON.
            return text, 1.0
        raise argparse.ArgumentTypeError(f"a fault is NAME:RATE or NAME=VALUE:RATE, not {text!r}") from None


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m deemster.testing.model_server", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--port", type=int, default=8000, help="port to listen on, 8000 by default; 0 for any free one")
    parser.add_argument("--seed", type=int, default=0, help="chooses answers and failures; 0 by default")
    parser.add_argument(
        "--fault",
        type=_parse_fault_flag,
        action="append",
        default=[],
        metavar="NAME[=VALUE][:RATE]",
        help="share of requests that fail so, such as 500:0.1; all of them without a rate; repeatable",
    )
    parser.add_argument(
        "--refuse", action="append", default=[], choices=REFUSABLE, help="what the endpoint refuses; repeatable"
    )
    parser.add_argument("--like", choices=BEHAVIOURS, help="a provider whose server it resembles")
    parser.add_argument("--no-logprobs", action="store_true", help="offer no log-probabilities")
    parser.add_argument("--dimension", type=int, default=16, help="dimension of the embeddings; 16 by default")
    parser.add_argument("--list", action="store_true", help="list the faults and leave")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted; the first line printed is the base URL.

    Args:
        arguments: The command line after the program's name; the process's own where None.

    Returns:
        The exit code.
    """
    options = _options(arguments)
    if options.list:
        sys.stdout.write("".join(f"{name:<14} {effect}\n" for name, effect in FAULTS.items()))
        return 0
    try:
        server = ModelServer(
            seed=options.seed,
            faults=dict(options.fault),
            refuses=options.refuse,
            like=options.like,
            logprobs=not options.no_logprobs,
            dimension=options.dimension,
            port=options.port,
            keep=False,
        )
        with server:
            sys.stdout.write(f"{server.url}\n")
            sys.stdout.flush()
            threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    except (DeemsterError, OSError) as failure:
        sys.stderr.write(f"{failure}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
