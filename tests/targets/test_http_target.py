"""HTTP targets against a real server on loopback: requests, replies, and every kind of failure."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

import deemster as dm
from deemster.errors import ConfigurationError
from deemster.models.circuit_breaker import OPENS_AFTER
from deemster.records import Invocation, Output, TargetFailure
from deemster.targets import HttpLimits, ReplyPaths
from deemster.targets.http_target import LONGEST, HttpTarget
from deemster.testing import ModelServer
from tests.builders.target_calls import outcomes
from tests.targets.fake_clocks import Hasty, Still

KEY = "my-own-key-of-the-application-1"
BODY = {"model": "m", "messages": [{"role": "user", "content": "{{input.q}}"}]}
ASKED = Invocation("s", {"q": "why"}, 0)


@pytest.fixture(scope="module")
def running_server():
    with ModelServer(answer=lambda messages: messages[-1]["content"].upper()) as server:
        yield server


def target(server, **options):
    options = {"body": BODY, "output": "choices.0.message.content", **options}
    reply = ReplyPaths(**{name: options.pop(name) for name in ReplyPaths._fields if name in options})
    limits = HttpLimits(**{name: options.pop(name) for name in HttpLimits._fields if name in options})
    return HttpTarget(f"{server.url}/chat/completions", reply=reply, limits=limits, **options)


def answered(target, *asked, clock=None):
    return outcomes(target, *(asked or (ASKED,)), clock=clock)


def failed(target, clock=None):
    (answer,) = answered(target, clock=clock)
    assert isinstance(answer, TargetFailure)
    return answer.message


def test_template_places_input_and_path_finds_answer(server):
    (answer,) = answered(target(server, usage="usage", model="model"))
    assert (answer.text, answer.model) == ("WHY", "m")
    assert (answer.usage.calls, answer.usage.total_tokens) == (1, 2)
    assert 0 < answer.usage.latency_ms < 60_000
    assert server.requests[0].document == {"model": "m", "messages": [{"role": "user", "content": "why"}]}
    assert server.requests[0].headers["content-type"] == "application/json"


def test_messages_of_a_sample_are_sent_as_they_are(server):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    messages = [{"role": "user", "content": [image]}, {"role": "user", "content": "And this?"}]
    body = {"model": "m", "messages": "{{input.messages}}"}
    (answer,) = answered(target(server, body=body), Invocation("s", {"messages": messages}, 0))
    assert server.requests[0].document == {"model": "m", "messages": messages}
    assert answer.text == "AND THIS?"


def test_default_body_is_input_and_default_answer_is_reply_text(server):
    asked = Invocation("s", {"messages": [{"role": "user", "content": "é\u2028"}]}, 0)
    (answer,) = answered(HttpTarget(f"{server.url}/chat/completions"), asked)
    assert server.requests[0].document == asked.input
    assert json.loads(answer.text)["choices"][0]["message"]["content"] == "É\u2028"
    assert answer.usage.calls == 0


def test_frozen_clock_measures_no_latency(server):
    (answer,) = answered(target(server), clock=Still())
    assert answer.usage is None


def test_data_at_path_is_compact_json_and_dollar_is_whole_reply(server):
    (answer,) = answered(target(server, output="choices.0.message"))
    assert json.loads(answer.text)["content"] == "WHY"
    assert ", " not in answer.text
    (answer,) = answered(target(server, output="$"))
    assert json.loads(answer.text)["model"] == "m"


def test_other_parts_of_reply_are_in_output(server):
    held = {
        "docs": ["d1", {"id": "d2", "text": "t"}],
        "trail": {"tool_calls": ["search"], "steps": 2},
        "usage": {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9},
    }
    server.play([f"merge={json.dumps(held)}"])
    (answer,) = answered(target(server, retrieved="docs", trajectory="trail", usage="usage"))
    assert answer.retrieved == ["d1", {"id": "d2", "text": "t"}]
    assert [call.name for call in answer.trajectory.tool_calls] == ["search"]
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, 2)


@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        ({"prompt_tokens": 4, "cost_usd": 0.5, "calls": 2}, 4),
        ({"prompt_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 1, "further": 2}}, 4),
        ({"prompt_tokens": -4}, None),
        ({"prompt_tokens": "many"}, None),
        ("none", None),
    ],
)
def test_usage_is_read_in_every_spelling_and_invalid_usage_is_ignored(server, told, tokens):
    server.play([f"merge={json.dumps({'usage': told})}"])
    (answer,) = answered(target(server, usage="usage"))
    assert answer.usage.prompt_tokens == tokens


def test_parts_a_reply_does_not_have_are_none(server):
    (answer,) = answered(target(server, retrieved="no.such", trajectory="none", model="nowhere.0"))
    assert (answer.text, answer.retrieved, answer.trajectory, answer.model) == ("WHY", None, None, None)


def test_missing_placeholder_value_fails_without_request(server):
    (answer,) = answered(target(server), Invocation("s", {"question": "why"}, 0))
    assert answer == TargetFailure("The input has no `input.q`. Known: `question`.")
    asked = Invocation("s", {"q": "\ud800"}, 0)
    in_query = HttpTarget(f"{server.url}/chat/completions?q={{{{input.q}}}}", method="GET")
    for each in (target(server), in_query):
        (answer,) = answered(each, asked)
        assert "lone surrogate" in answer.message
    assert server.requests == []


def test_text_is_sent_as_text(server):
    failed(HttpTarget(f"{server.url}/chat/completions", body="Q: {{input.q}}?", limits=HttpLimits(retries=0)))
    assert server.requests[0].body == b"Q: why?"
    assert server.requests[0].headers["content-type"] == "text/plain; charset=utf-8"


def test_headers_and_key_are_sent_and_given_headers_win(server):
    headers = {"X-Tenant": "t1", "content-type": "application/vnd.app+json"}
    answered(target(server, headers=headers, api_key=KEY))
    sent = server.requests[0].headers
    assert sent["x-tenant"] == "t1"
    assert sent["content-type"] == "application/vnd.app+json"
    assert sent["authorization"] == f"Bearer {KEY}"


TRANSPORT = ["500", "502", "503", "504", "529", "408", "409", "425", "reset", "reset-body", "short", "half", "not-json"]


@pytest.mark.parametrize("fault", [*TRANSPORT, "empty", "deep", "429"])
def test_three_retries_are_exactly_four_requests(server, fault):
    server.play([fault] * 10)
    clock = Hasty()
    assert failed(target(server), clock).endswith("(4 attempts)")
    assert len(server.requests) == 4
    assert len(clock.waits) == 3
    assert all(0 <= wait <= 0.5 * 2**number for number, wait in enumerate(clock.waits))


def test_refused_connection_is_tried_four_times():
    clock = Hasty()
    assert "No connection" in failed(HttpTarget("http://127.0.0.1:9/ask"), clock)
    assert len(clock.waits) == 3


@pytest.mark.parametrize("fault", ["400", "401", "402", "403", "404", "413", "422", "quota", "300", "307", "308"])
def test_refusal_is_exactly_one_request(server, fault):
    server.play([fault] * 10)
    assert failed(target(server)).endswith("(1 attempt)")
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", ["wrong-shape", "no-choices", "null-content", "list", "error-200"])
def test_complete_reply_without_answer_is_requested_once_more(server, fault):
    server.play([fault] * 10)
    assert "has nothing at `choices.0.message.content`" in failed(target(server))
    assert len(server.requests) == 2


@pytest.mark.parametrize("fault", [*TRANSPORT, "429", "wrong-shape"])
def test_without_retries_there_is_one_request(server, fault):
    server.play([fault] * 10)
    assert failed(target(server, retries=0)).endswith("(1 attempt)")
    assert len(server.requests) == 1


def test_temporary_fault_is_overcome_by_retry(server):
    server.play(["500", "reset", "429=0", "ok"])
    (answer,) = answered(target(server))
    assert answer.text == "WHY"
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("fault", "least", "most"),
    [
        ("429=7", 7, 7),
        ("503=1m30s", 0, None),
        ("retry-ms=2500", 2.5, 2.5),
        ("429=-5", 0, 0.5),
        ("429=soon", 0, 0.5),
        ("429=0.75", 0.75, 0.75),
    ],
)
def test_retry_after_is_kept_and_bounded(server, fault, least, most):
    server.play([fault, "ok"])
    clock = Hasty()
    (answer,) = answered(target(server), clock=clock)
    if most is None:
        assert "It asks to wait 90 s; the longest wait is 60 s." in answer.message
        assert clock.waits == []
        return
    assert isinstance(answer, Output)
    assert least <= max(clock.waits) <= most + 0.01


@pytest.mark.parametrize("fault", ["endless=0.02", "silent"])
def test_endless_reply_ends_at_timeout(server, fault):
    server.play([fault] * 2)
    began = time.monotonic()
    assert "within 0.2 s" in failed(target(server, timeout_s=0.2, retries=1))
    assert time.monotonic() - began < 30
    assert len(server.requests) == 2


def test_reply_that_is_too_long_is_not_read(server):
    server.play([f"huge={LONGEST / 1e6 + 1}"] * 2)
    assert "longer than 16 MB" in failed(target(server))
    assert len(server.requests) == 2


def test_redirect_is_not_followed_and_names_its_target(server):
    server.play(["307"])
    assert "redirects to /v1/elsewhere, which is not followed" in failed(target(server))
    assert len(server.requests) == 1


async def test_non_utf8_reply_is_failure():
    async def raw(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\na\xffb")
        await writer.drain()
        writer.close()

    served = await asyncio.start_server(raw, "127.0.0.1", 0)
    port = served.sockets[0].getsockname()[1]
    asking = HttpTarget(f"http://127.0.0.1:{port}/?q={{{{input.q}}}}", method="GET", limits=HttpLimits(retries=0))
    try:
        assert "not UTF-8: byte 0xff at 1" in (await asking.call_async(ASKED)).message
    finally:
        await asking.close()
        served.close()
        await served.wait_closed()


async def test_input_in_a_query_cannot_change_the_address():
    lines = []

    async def raw(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        lines.append(head.split(b"\r\n")[0].decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    hostile = {"q": "a&admin=1#/../x y\r\nHost: evil", "k": 5}

    served = await asyncio.start_server(raw, "127.0.0.1", 0)
    port = served.sockets[0].getsockname()[1]
    asking = HttpTarget(f"http://127.0.0.1:{port}/ask?fixed=1&q={{{{input.q}}}}&k={{{{input.k}}}}", method="GET")
    try:
        assert (await asking.call_async(Invocation("s", hostile, 0))).text == "ok"
    finally:
        await asking.close()
        served.close()
        await served.wait_closed()
    import urllib.parse

    method, address, _ = lines[0].split(" ")
    parts = urllib.parse.urlsplit(address)
    assert (method, parts.path) == ("GET", "/ask")
    assert urllib.parse.parse_qs(parts.query) == {"fixed": ["1"], "q": [hostile["q"]], "k": ["5"]}


def test_key_that_a_server_repeats_is_shown_nowhere(server):
    server.play(["401"])
    asking = target(server, api_key=KEY)
    message = failed(asking)
    assert KEY not in message
    assert "[removed]" in message
    server.play([f"text=Your key is {KEY}, keep it."])
    (answer,) = answered(asking)
    assert answer.text == "Your key is [removed], keep it."
    assert KEY not in repr(asking) + json.dumps(asking.identity)


def test_secret_header_is_part_of_no_identity_and_no_answer(server):
    asking = target(server, headers={"X-Api-Key": KEY, "X-Tenant": "tenant-one"})
    server.play([f"text={KEY} of tenant-one"])
    (answer,) = answered(asking)
    assert answer.text == "[removed] of tenant-one"
    assert asking.identity["http"]["headers"] == {"X-Api-Key": "hidden", "X-Tenant": "tenant-one"}


def test_identity_depends_only_on_what_can_change_an_answer(server):
    plain = target(server).identity
    assert target(server, retries=1, timeout_s=3, concurrency=4, api_key=KEY).identity == plain
    for change in (
        {"body": {"q": "{{input.q}}"}},
        {"output": "$"},
        {"headers": {"X-Tenant": "t"}},
        {"method": "PUT"},
        {"retrieved": "docs"},
    ):
        assert target(server, **change).identity != plain
    assert json.loads(json.dumps(plain)) == plain


async def test_control_characters_of_a_refusal_are_shown_escaped(server):
    async def raw(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Bad\r\nContent-Length: 10\r\nConnection: close\r\n\r\na\x1b[31m\x07b\nc")
        await writer.drain()
        writer.close()

    served = await asyncio.start_server(raw, "127.0.0.1", 0)
    asking = HttpTarget(f"http://127.0.0.1:{served.sockets[0].getsockname()[1]}/")
    try:
        message = (await asking.call_async(ASKED)).message
    finally:
        await asking.close()
        served.close()
        await served.wait_closed()
    assert message.isprintable()
    assert "\\x1b[31m" in message


def test_open_circuit_leaves_other_samples_not_run(server):
    server.play(["500"] * 100)
    asking = target(server, retries=0)
    answers = answered(asking, *[Invocation(str(number), {"q": "x"}, 0) for number in range(OPENS_AFTER + 5)])
    assert [answer is None for answer in answers] == [False] * OPENS_AFTER + [True] * 5
    assert len(server.requests) == OPENS_AFTER
    assert "20 calls in a row failed" in asking.open_circuit


async def test_halted_target_sends_nothing(server):
    asking = target(server)

    await asking.open(clock=Hasty())
    first = await asking.call_async(ASKED)
    asking.halt("interrupted")
    second = await asking.call_async(ASKED)
    await asking.close()
    assert (first.text, second) == ("WHY", None)
    assert len(server.requests) == 1


async def test_concurrency_is_never_exceeded(server):
    server.play(["slow=0.01"] * 60)
    asking = target(server, concurrency=3)

    await asking.open(clock=Hasty())
    try:
        await asyncio.gather(*(asking.call_async(ASKED) for _ in range(60)))
    finally:
        await asking.close()
    assert asking.concurrency == 3
    assert server.peak <= 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "pots"}, "Did you mean `POST`?"),
        ({"method": "GET"}, "A `GET` carries no `body`"),
        ({"headers": {"A b": "x"}}, "no name of a header"),
        ({"headers": {"X": "a\r\nEvil: 1"}}, "no header can carry"),
        ({"headers": {"X": "{{input.q}}"}}, "holds a placeholder"),
        ({"headers": {"Content-Length": "5"}}, "set by the request itself"),
        ({"output": "a..b"}, "`output`: a path is"),
        ({"retries": -1}, "`retries`"),
        ({"timeout_s": 0}, "`timeout_s`"),
        ({"concurrency": "9-3"}, "`concurrency`"),
        ({"rpm": 0}, "`rpm`"),
        ({"body": "{{expected_output}}"}, "never given"),
        ({"api_key": "ключ-ключ"}, "no HTTP header can carry"),
    ],
)
def test_unusable_settings_are_error_before_any_request(server, options, said):
    with pytest.raises(ConfigurationError) as raised:
        target(server, **options)
    assert said in str(raised.value)


@pytest.mark.parametrize("url", ["localhost/ask", "ftp://h/", "http://", "http://h/{{input.q}}/x", "http://h/?q={{x}}"])
def test_invalid_address_is_error(url):
    with pytest.raises(ConfigurationError):
        HttpTarget(url)


def test_remote_address_is_error_offline(server):
    samples = [{"id": "a", "input": {"q": "x"}, "expected_output": "X"}]
    with pytest.raises(ConfigurationError, match="offline"):
        dm.evaluate(
            samples,
            target=HttpTarget("https://example.com/"),
            metrics=["exact-match"],
            calls=dm.ModelCalls(offline=True),
        )
    report = dm.evaluate(samples, target=target(server), metrics=["exact-match"], calls=dm.ModelCalls(offline=True))
    assert report.metrics["exact-match"].mean == 1


def test_run_over_http_scores_answers_and_counts_failures(server):
    samples = [
        {"id": str(number), "input": {"q": f"q{number}"}, "expected_output": f"Q{number}"} for number in range(8)
    ]
    server.play(["404"])
    report = dm.evaluate(
        samples,
        target=target(server, concurrency=1),
        metrics=["exact-match"],
        settings=dm.EvaluationSettings(max_unscored=1),
    )
    assert (report.totals.scored, report.totals.unscored) == (7, 1)
    failure = next(each for each in report.executions if each.output is None)
    mark = failure.marks["exact-match"].unscored
    assert (mark.cause, failure.id) == ("target_failed", "0")
    assert mark.message == "127.0.0.1 answered 404 Not Found: There is no such model. (1 attempt)"


def test_run_with_open_circuit_is_incomplete_with_reason(server):
    server.play(["500"] * 200)
    samples = [{"id": str(number), "input": {"q": "x"}, "expected_output": "X"} for number in range(100)]
    report = dm.evaluate(samples, target=target(server, retries=0, concurrency=4), metrics=["exact-match"])
    totals = report.totals
    assert totals.scored == 0
    assert OPENS_AFTER <= totals.unscored == len(server.requests) < OPENS_AFTER + 4
    assert totals.not_run == 100 - totals.unscored
    assert report.run.status == "incomplete"
    assert "calls in a row failed" in report.run.reason


def test_stopped_run_sends_no_request_and_no_retry(server):
    from deemster.datasets import Dataset
    from deemster.engine.execute_plan import execute_plan
    from deemster.engine.run_plan import Plan
    from deemster.engine.stop_request import Stop
    from deemster.models.clock import SystemClock

    stop = Stop()
    held = server.answer

    def refused(messages):
        stop.request("enough")
        raise ValueError("a status 500")

    server.answer = refused
    samples = [{"id": str(number), "input": {"q": "x"}, "expected_output": "X"} for number in range(50)]
    plan = Plan(Dataset(samples, name="d"), target(server, concurrency=1), (dm.metrics.ExactMatch(),))
    try:
        asyncio.run(execute_plan(plan, sink=lambda _: None, clock=SystemClock(), stop=stop))
    finally:
        server.answer = held
    assert len(server.requests) == 1


async def test_decompression_bomb_is_failure():
    import gzip

    packed = gzip.compress(b"x" * (LONGEST * 8), 9)

    async def raw(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + packed)
        writer.close()

    served = await asyncio.start_server(raw, "127.0.0.1", 0)
    asking = HttpTarget(f"http://127.0.0.1:{served.sockets[0].getsockname()[1]}/", limits=HttpLimits(retries=0))
    try:
        assert isinstance(await asking.call_async(ASKED), TargetFailure)
    finally:
        await asking.close()
        served.close()
        await served.wait_closed()
