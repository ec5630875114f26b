"""Bytes on a connection and reuse of connections, against raw sockets with scripted replies."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import gzip
import os
import ssl
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from deemster.models.http_endpoint import Endpoint
from deemster.models.model_client import ModelFailure
from deemster.testing import ModelServer

TLS = Path(__file__).parents[1] / "fixtures" / "tls"
BODY = b'{"said": "yes"}'
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n" + BODY
LONGEST = 1000


class Raw:
    """A server that gives each request the next of its replies, and records the requests by connection.

    A reply is bytes, or a coroutine function of the reader and the writer; None closes the connection.
    """

    def __init__(self, *replies):
        self.replies = list(replies)
        self.sent = []
        self.port = 0
        self.tasks = set()

    async def served(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            await self.serve(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def serve(self, reader, writer):
        mine = []
        self.sent.append(mine)
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            reply = self.replies.pop(0) if self.replies else WHOLE
            if callable(reply):
                mine.append((head, b""))
                await reply(reader, writer)
                continue
            mine.append((head, await reader.readexactly(int(length[0][15:])) if length else b""))
            if reply is None:
                return
            writer.write(reply)
            await writer.drain()

    @contextlib.asynccontextmanager
    async def started(self, **options):
        server = await asyncio.start_server(self.served, "127.0.0.1", 0, **options)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{self.port}/v1"
        finally:
            server.close()
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)


def send_all(raw, *bodies, endpoint=None, **options):
    """Send each body in turn; return the replies or failures."""

    async def every():
        found = []
        async with raw.started() as url:
            address = endpoint(url) if endpoint else Endpoint(url, "chat/completions", key="k", **options)
            for body in bodies:
                try:
                    found.append(await address.send(body, longest=LONGEST))
                except ModelFailure as failure:
                    found.append(failure)
            await address.close()
        return found

    return asyncio.run(every())


def plain(status=b"200 OK", *lines, body=BODY):
    return b"\r\n".join([b"HTTP/1.1 " + status, *lines, b"", b""]) + body


WHOLE_REPLIES = {
    "of a length": WHOLE,
    "in chunks": plain(b"200 OK", b"Transfer-Encoding: chunked", body=b"4\r\n" + BODY[:4] + b"\r\nb\r\n" + BODY[4:])
    + b"\r\n0\r\n\r\n",
    "compressed": plain(
        b"200 OK",
        b"Content-Encoding: gzip",
        b"Content-Length: %d" % len(gzip.compress(BODY)),
        body=gzip.compress(BODY),
    ),
    "after a hint": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + WHOLE,
    "after a go-ahead": b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE,
}


@pytest.mark.parametrize("name", WHOLE_REPLIES)
def test_complete_reply_returns_body_and_frees_connection(name):
    raw = Raw(WHOLE_REPLIES[name], WHOLE_REPLIES[name])
    response = send_all(raw, b"{}", b"[]")
    assert [each.body for each in response] == [BODY, BODY]
    assert [each.status for each in response] == [200, 200]
    assert [[body for _, body in mine] for mine in raw.sent] == [[b"{}", b"[]"]]


async def _in_pieces(reader, writer):
    for at in range(0, len(WHOLE), 7):
        writer.write(WHOLE[at : at + 7])
        await writer.drain()
        await asyncio.sleep(0)


async def _until_the_end(reader, writer):
    writer.write(plain())
    await writer.drain()
    writer.close()


async def _then_closes(reader, writer):
    writer.write(WHOLE.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
    await writer.drain()


def test_chunked_reply_is_joined():
    raw = Raw(_in_pieces)
    assert send_all(raw, None)[0].body == BODY


def test_reply_without_a_length_ends_with_its_connection():
    raw = Raw(_until_the_end)
    assert [response.body for response in send_all(raw, None, b"{}")] == [BODY, BODY]
    assert len(raw.sent) == 2


def test_connection_marked_close_is_not_reused():
    raw = Raw(_then_closes)
    assert [response.body for response in send_all(raw, None, b"{}")] == [BODY, BODY]
    assert len(raw.sent) == 2


NO_REPLY = {
    "nothing": (None, "The connection was closed before a reply came"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "The reply is not HTTP."),
    "too many bytes of headers": (plain(b"200 OK", b"X-Long: " + b"a" * 100_000), "The reply is not HTTP."),
    "two lengths": (plain(b"200 OK", b"Content-Length: 15", b"Content-Length: 16"), "The reply is not HTTP."),
}
TOO_LONG = {
    "a length": plain(b"200 OK", b"Content-Length: 1001", body=b"a" * 1001),
    "chunks": plain(b"200 OK", b"Transfer-Encoding: chunked", body=b"3e9\r\n" + b"a" * 1001 + b"\r\n0\r\n\r\n"),
    "a little that becomes much": plain(
        b"200 OK",
        b"Content-Encoding: gzip",
        b"Content-Length: %d" % len(gzip.compress(b"a" * 50_000)),
        body=gzip.compress(b"a" * 50_000),
    ),
}


@pytest.mark.parametrize("name", NO_REPLY)
def test_non_http_reply_is_failure_and_connection_is_dropped(name):
    reply, message = NO_REPLY[name]
    raw = Raw(reply)
    failure, response = send_all(raw, b"{}", b"[]")
    assert isinstance(failure, ModelFailure)
    assert message in failure.message
    assert failure.may_cost
    assert response.body == BODY
    assert [len(mine) for mine in raw.sent] == [1, 1]


@pytest.mark.parametrize("name", TOO_LONG)
def test_too_long_reply_is_failure_and_next_request_is_unaffected(name):
    raw = Raw(TOO_LONG[name])
    failure, response = send_all(raw, b"{}", b"[]")
    assert isinstance(failure, ModelFailure)
    assert "longer than" in failure.message
    assert failure.may_cost
    assert response.body == BODY


def test_only_beginning_of_refusal_is_read():
    short = plain(b"429 Too Many Requests", b"Retry-After: 3", b"Content-Length: 15")
    long = plain(b"500 Internal Server Error", b"Content-Length: 1000000", body=b"a" * 1_000_000)
    raw = Raw(short, long)
    first, second, third = send_all(raw, b"{}", b"{}", b"{}")
    assert (first.status, first.body, first.headers["retry-after"]) == (429, BODY, "3")
    assert (second.status, second.body) == (500, b"a" * 2**16)
    assert third.body == BODY
    assert [len(mine) for mine in raw.sent] == [2, 1]


def test_status_of_refusal_counts_with_broken_body():
    async def broken(reader, writer):
        writer.write(plain(b"503 Service Unavailable", b"Content-Length: 100"))
        await writer.drain()
        writer.close()

    (response,) = send_all(Raw(broken), None)
    assert (response.status, response.body) == (503, BODY)


def test_early_refusal_drops_connection():
    async def early(reader, writer):
        writer.write(plain(b"413 Content Too Large", b"Content-Length: 15"))
        await writer.drain()
        await asyncio.sleep(1)

    raw = Raw(early)
    refused, response = send_all(raw, b"a" * 50_000_000, b"{}")
    assert (refused.status, refused.body) == (413, BODY)
    assert response.body == BODY
    assert len(raw.sent) == 2


def test_connection_the_server_closed_while_idle_is_not_used():
    async def once(reader, writer):
        writer.write(WHOLE)
        await writer.drain()
        writer.close()

    async def twice():
        raw = Raw(once)
        async with raw.started() as url:
            endpoint = Endpoint(url, "chat/completions", key=None)
            first = await endpoint.send(None)
            await asyncio.sleep(0.05)
            second = await endpoint.send(b"{}")
            await endpoint.close()
        assert (first.body, second.body) == (BODY, BODY)
        assert len(raw.sent) == 2

    asyncio.run(twice())


@pytest.mark.parametrize("status", [b"099 Odd", b"000 Odd", b"999 Odd"])
def test_only_1xx_status_is_followed_by_another(status):
    (response,) = send_all(Raw(plain(status, b"Content-Length: 15")), None, timeout_s=5)
    assert (response.status, response.body) == (int(status[:3]), BODY)


def test_status_of_refusal_counts_without_body(monkeypatch):
    monkeypatch.setattr("deemster.models.http_endpoint._REFUSAL_BODY_S", 0.05)

    async def hanging(reader, writer):
        writer.write(plain(b"401 Unauthorized", b"Content-Length: 100"))
        await reader.read()

    raw = Raw(hanging)
    refused, response = send_all(raw, None, b"{}", timeout_s=5)
    assert (refused.status, refused.body) == (401, BODY)
    assert response.body == BODY
    assert len(raw.sent) == 2


@pytest.mark.parametrize("timeout_s", [None, 60])
def test_cancelled_call_ends_at_any_wait(timeout_s):
    async def ended():
        loop = asyncio.get_running_loop()
        stopped = 0
        async with Raw().started() as url:
            endpoint = Endpoint(url, "chat/completions", key=None, timeout_s=timeout_s)
            await endpoint.send(b"{}")
            for turns in [*range(20)] * 3:
                task = loop.create_task(endpoint.send(b"{}"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                if task.cancel():
                    with pytest.raises(asyncio.CancelledError):
                        await task
                    stopped += 1
                else:
                    assert (await task).body == BODY
            await endpoint.close()
        assert stopped

    asyncio.run(ended())


def test_cancelled_call_drops_its_connection():
    async def slow(reader, writer):
        await asyncio.sleep(0.2)
        with contextlib.suppress(ConnectionError):
            writer.write(plain(b"200 OK", b"Content-Length: 15", body=b"x" * 15))
            await writer.drain()

    async def given_up():
        raw = Raw(slow)
        async with raw.started() as url:
            endpoint = Endpoint(url, "chat/completions", key=None)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(endpoint.send(None), 0.05)
            response = await endpoint.send(b"{}")
            await endpoint.close()
        assert response.body == BODY

    asyncio.run(given_up())


def test_attempt_is_failure_after_timeout():
    async def never(reader, writer):
        await reader.read()

    (failure,) = send_all(Raw(never), None, timeout_s=0.05)
    assert failure.message.endswith("No complete reply within 0.05 s.")
    assert failure.may_cost


def test_concurrent_requests_get_their_own_replies():
    class Echo(Raw):
        async def serve(self, reader, writer):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
                await asyncio.sleep(0.001 * (len(body) % 5))
                writer.write(plain(b"200 OK", b"Content-Length: %d" % len(body), body=body))
                await writer.drain()

    async def many():
        async with Echo().started() as url:
            endpoint = Endpoint(url, "chat/completions", key=None)
            bodies = [b"%d" % number * (number % 7 + 1) for number in range(500)]
            response = await asyncio.gather(*map(endpoint.send, bodies))
            await endpoint.close()
        assert [each.body for each in response] == bodies

    asyncio.run(many())


def _lines(head):
    first, *rest = head.decode().rstrip("\r\n").split("\r\n")
    return first, sorted(rest)


def test_last_of_headers_equal_but_for_case_is_sent():
    raw = Raw()
    headers = {"Accept": "*/*", "accept": "text/plain", "CONTENT-TYPE": "text/csv", "authorization": "Mine"}
    send_all(raw, b"{}", endpoint=lambda url: Endpoint(url, key="k", headers=headers))
    _, lines = _lines(raw.sent[0][0][0])
    assert [line for line in lines if line.lower().startswith(("accept:", "content-type:", "authorization:"))] == [
        "CONTENT-TYPE: text/csv",
        "accept: text/plain",
        "authorization: Mine",
    ]


def test_another_query_is_sent_without_changing_the_address():
    async def asked():
        raw = Raw()
        async with raw.started() as url:
            endpoint = Endpoint(f"{url}?q=0", key=None, method="GET")
            await endpoint.send(None, query=[("q", "1 & 2")])
            await endpoint.send(None)
            await endpoint.close()
        assert [head.split(b" ")[1] for head, _ in raw.sent[0]] == [b"/v1?q=1+%26+2", b"/v1?q=0"]

    asyncio.run(asked())


def test_proxy_gets_full_address_and_own_credentials(monkeypatch):
    raw = Raw()

    def through(url):
        monkeypatch.setenv("http_proxy", f"http://me:pass@127.0.0.1:{raw.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        return Endpoint("http://model.test/v1?a=b", "chat/completions", key="sk-secret")

    assert [response.body for response in send_all(raw, b"{}", b"[]", endpoint=through)] == [BODY, BODY]
    first, second = [each for mine in raw.sent for each in mine]
    for head, _ in (first, second):
        line, lines = _lines(head)
        assert line == "POST http://model.test/v1/chat/completions?a=b HTTP/1.1"
        assert "Host: model.test" in lines
        assert "Authorization: Bearer sk-secret" in lines
        assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:pass').decode()}" in lines
    assert (first[1], second[1]) == (b"{}", b"[]")


def test_proxy_does_not_get_fragment(monkeypatch):
    raw = Raw()

    def through(url):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{raw.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        return Endpoint("http://model.test/ask?a=b#c", key=None)

    send_all(raw, b"{}", endpoint=through)
    assert _lines(raw.sent[0][0][0])[0] == "POST http://model.test/ask?a=b HTTP/1.1"


PROXY_REPLIES = {
    "credentials are missing": (
        plain(b"407 Proxy Authentication Required", b"Content-Length: 15"),
        "refused",
        "The proxy answered 407 Proxy Authentication Required.",
    ),
    "it is forbidden": (plain(b"403 Forbidden", b"Content-Length: 15"), "refused", "The proxy answered 403 Forbidden."),
    "there is no way": (
        plain(b"502 Bad Gateway", b"Content-Length: 15"),
        "transport",
        "The proxy answered 502 Bad Gateway.",
    ),
    "it closes": (None, "transport", "No connection: ServerDisconnectedError."),
    "it is no proxy": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "transport", "No connection: ClientResponseError."),
}


@pytest.mark.parametrize("name", PROXY_REPLIES)
def test_request_not_forwarded_by_proxy_costs_nothing(name, monkeypatch):
    reply, kind, message = PROXY_REPLIES[name]
    raw = Raw(reply)

    def through(url):
        monkeypatch.setenv("https_proxy", f"http://me:hidden-word@127.0.0.1:{raw.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        return Endpoint("https://model.test/v1", "chat/completions", key="sk-secret")

    (failure,) = send_all(raw, b"{}", endpoint=through)
    assert (failure.kind, failure.message, failure.may_cost) == (kind, f"model.test: {message}", False)
    assert (failure.__cause__, failure.__context__) == (None, None)
    assert b"sk-secret" not in b"".join(head for mine in raw.sent for head, _ in mine)


@pytest.mark.parametrize(
    "proxy",
    [
        "http://me:hidden-word@127.0.0.1:port",
        "http://me:hidden-word@127.0.0.1:99999",
        "http://me:hidden-word@[::1",
        "http://m%3Ae:hidden-word@127.0.0.1:1",
        "http://me:hidden-word€@127.0.0.1:1",
        "http://me:hidden-word@a..b:1",
    ],
)
def test_invalid_proxy_address_is_failure_without_address(proxy, monkeypatch):
    def through(url):
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.delenv("no_proxy", raising=False)
        return Endpoint("http://model.test/v1", "chat/completions", key="sk-secret")

    (failure,) = send_all(Raw(), b"{}", endpoint=through)
    assert (failure.kind, failure.may_cost) == ("refused", False)
    assert failure.message == "model.test: The address, or the proxy that the environment names, cannot be used."
    assert (failure.__cause__, failure.__context__) == (None, None)


def test_invalid_host_name_is_failure(monkeypatch):
    monkeypatch.delenv("http_proxy", raising=False)
    (failure,) = send_all(Raw(), b"{}", endpoint=lambda url: Endpoint("http://a..b/v1", "chat/completions", key="k"))
    assert (failure.kind, failure.message, failure.may_cost) == ("refused", "a..b: The address cannot be used.", False)


# aiohttp reads the trusted certificates at import, so each case runs in a separate process.
ASKING = """
import asyncio, sys
from deemster.models.http_endpoint import Endpoint
from deemster.models.model_client import ModelFailure

async def main():
    endpoint = Endpoint(sys.argv[1], "chat/completions", key="sk-secret")
    try:
        for body in (b"{}", b"[]"):
            print((await endpoint.send(body)).body.decode())
    except ModelFailure as failure:
        print(failure.kind, failure.message)
    await endpoint.close()

asyncio.run(main())
"""


async def _asked_apart(url, **environment):
    names = ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR")
    kept = {name: value for name, value in os.environ.items() if name.lower() not in map(str.lower, names)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ASKING, url, env=kept | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    return said.decode().splitlines()


def _tls():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    return context


def test_untrusted_certificate_is_refusal():
    async def asked():
        raw = Raw()
        async with raw.started(ssl=_tls()):
            url = f"https://localhost:{raw.port}/v1"
            trusted = await _asked_apart(url, SSL_CERT_FILE=str(TLS / "certificate.pem"))
            assert trusted == [BODY.decode()] * 2
            assert len([mine for mine in raw.sent if mine]) == 1
            (refused,) = await _asked_apart(url)
            assert refused.startswith("refused localhost: The certificate is not trusted:")
        assert len([mine for mine in raw.sent if mine]) == 1

    asyncio.run(asked())


def test_proxy_of_https_sees_neither_the_key_nor_the_request():
    async def asked():
        model = Raw()
        seen = []

        async def copied(reader, writer):
            with contextlib.suppress(ConnectionError):
                while piece := await reader.read(65536):
                    seen.append(piece)
                    writer.write(piece)
                    await writer.drain()
            writer.close()

        async def tunnel(reader, writer):
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            inner, outer = await asyncio.open_connection("127.0.0.1", model.port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(copied(reader, outer), copied(inner, writer))
            await outer.wait_closed()

        proxy = Raw()
        proxy.serve = tunnel
        async with model.started(ssl=_tls()), proxy.started():
            said = await _asked_apart(
                "https://model.test/v1",
                https_proxy=f"http://me:pass@127.0.0.1:{proxy.port}",
                SSL_CERT_FILE=str(TLS / "certificate.pem"),
            )
        assert said == [BODY.decode()] * 2
        line, lines = _lines(seen[0])
        assert line == "CONNECT model.test:443 HTTP/1.1"
        assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:pass').decode()}" in lines
        assert b"sk-secret" not in b"".join(seen)
        ((first, second),) = model.sent
        assert _lines(first[0])[0] == "POST /v1/chat/completions HTTP/1.1"
        assert not [line for head, _ in (first, second) for line in _lines(head)[1] if line.startswith("Proxy-")]
        assert (first[1], second[1]) == (b"{}", b"[]")

    asyncio.run(asked())


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore:Unclosed:ResourceWarning")
def test_session_of_ended_loop_is_released():
    with ModelServer() as server:
        endpoint = Endpoint(server.url, "chat/completions", key=None)
        left = []

        async def asked(*, closes):
            left.append(weakref.ref(asyncio.get_running_loop()))
            await endpoint.send(b"{}")
            if closes:
                await endpoint.close()

        asyncio.run(asked(closes=False))
        asyncio.run(asked(closes=True))
        gc.collect()
        assert [loop() for loop in left] == [None, None]
        assert not endpoint._sessions
