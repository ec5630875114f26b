"""Every fault of a model server, through the gateway: the exact number of requests, and what comes of it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from deemster.engine.play_scripts import play_script
from deemster.judges.llm_as_judge import LlmAsJudge
from deemster.models import CallContext
from deemster.models.answer_cache import Cache
from deemster.models.gateway import Gateway
from deemster.models.model_roles import Role
from deemster.models.openai_client import OpenAIChat, OpenAIEmbedding
from deemster.records import Answer, Ask, Embed, Message, MetricScore, NoAnswer, Output, Sample, Unscored, Vectors
from deemster.testing import FAULTS, ModelServer
from tests.cli.workspace import FILES, written

SCHEMA = {"type": "object", "properties": {"reason": {"type": "string"}, "score": {"type": "number"}}}
ASK = Ask(messages=(Message("user", "Judge this."),), schema=SCHEMA)
KEY = "secret-0123456789-ABCDEF/+="
SAMPLE = Sample(id="s1", input={"question": "How long?"}, expected_output="30 days")
RETRIED = ["408", "409", "425", "500", "502", "503", "504", "529", "reset", "reset-body", "short", "half", "not-json"]
RETRIED += ["empty"]
LATE = ["endless", "endless=0.01", "silent", "slow=5"]
MISSHAPEN = ["list", "wrong-shape", "error-200", "no-choices", "null-content", "huge", "deep"]
REFUSED = ["quota", "307", "400", "401", "402", "403", "404", "413", "422"]
BAD_VECTORS = ["missing", "surplus", "infinite", "overflow", "null-value", "empty-vector", "wrong-shape", "list"]
BAD_BATCHES = ["partial-index", "same-index", "dimensions"]


class HandClock:
    """A clock that moves only when a task waits, and then at once."""

    def __init__(self):
        self.at = 0.0
        self.waits = []

    def now(self):
        return datetime(2026, 1, 1, tzinfo=UTC)

    def elapsed_s(self):
        return self.at

    async def sleep(self, seconds):
        self.waits.append(seconds)
        self.at += seconds
        await asyncio.sleep(0)


def roles(server, **settings):
    late = {"timeout_s": settings["timeout_s"]} if "timeout_s" in settings else {}
    return {
        "judge": Role(client=OpenAIChat(server.url, "m", api_key=KEY, **late), **settings),
        "embedding": Role(client=OpenAIEmbedding(server.url, "e", api_key=KEY), kind="embedding", **settings),
    }


def replies(server, requests, *, clock=None, cache=None, **settings):
    """The replies to requests that are put one after the other."""

    async def every():
        async with Gateway(roles(server, **settings), CallContext(clock or HandClock(), cache=cache)) as gateway:
            return [(await gateway.answers([request]))[0] for request in requests]

    return asyncio.run(every())


def reply(server, faults, request=ASK, **settings):
    server.play(faults)
    return replies(server, [request], **settings)[0]


@pytest.mark.parametrize("fault", RETRIED)
def test_transport_fault_sends_four_requests_then_model_failed(server, fault):
    no_answer = reply(server, [fault] * 9)
    assert isinstance(no_answer, NoAnswer)
    assert no_answer.cause == "model_failed"
    assert "4 attempts" in no_answer.message
    assert len(server.requests) == 4


@pytest.mark.parametrize("fault", LATE)
def test_endless_reply_ends_at_timeout(server, fault):
    no_answer = reply(server, [fault] * 9, timeout_s=0.1)
    assert (no_answer.cause, len(server.requests)) == ("model_failed", 4)
    assert "0.1 s" in no_answer.message


@pytest.mark.parametrize("fault", ["429", "429=2", "retry-ms=1500", "retry-reset=3s"])
def test_status_429_sends_four_requests_then_rate_limited(server, fault):
    no_answer = reply(server, [fault] * 9)
    assert (no_answer.cause, len(server.requests)) == ("rate_limited", 4)


@pytest.mark.parametrize("fault", MISSHAPEN)
def test_wrong_shape_is_requested_once_more(server, fault):
    no_answer = reply(server, [fault] * 9)
    assert (no_answer.cause, len(server.requests)) == ("unreadable", 2)


@pytest.mark.parametrize("fault", REFUSED)
def test_refusal_sends_one_request(server, fault):
    no_answer = reply(server, [fault] * 9)
    assert (no_answer.cause, len(server.requests)) == ("model_failed", 1)


@pytest.mark.parametrize("fault", [*RETRIED, "429", *MISSHAPEN])
def test_one_fault_costs_one_additional_request(server, fault):
    answer = reply(server, [fault])
    assert isinstance(answer, Answer)
    assert json.loads(answer.text)["score"] is not None
    assert len(server.requests) == 2


@pytest.mark.parametrize("fault", [*RETRIED, "429", *MISSHAPEN, *REFUSED])
def test_zero_retries_send_one_request(server, fault):
    assert isinstance(reply(server, [fault] * 9, retries=0), NoAnswer)
    assert len(server.requests) == 1


def test_every_connection_and_chat_fault_is_covered():
    tried = {fault.partition("=")[0] for fault in [*RETRIED, *LATE, *MISSHAPEN, *REFUSED, *BAD_VECTORS, *BAD_BATCHES]}
    harmless = {"ok", "refusal", "bad-usage", "no-usage", "no-logprobs", "merge", "message", "text"}
    harmless |= {"shuffled", "no-index", "zero"}
    elsewhere = {"429", "retry-ms", "retry-reset", "score", "duplicate", "nan", "300", "308"}
    assert set(FAULTS) == tried | harmless | elsewhere


WAITS = {
    "429=2": 2.0,
    "503=2": 2.0,
    "429=1m30s": 90.0,
    "retry-ms=2500": 2.5,
    "retry-reset=6s": 6.0,
    "429=-5": 0.0,
    "429=soon": 0.0,
    "429=": 0.0,
}


@pytest.mark.parametrize("fault", WAITS)
def test_no_retry_is_earlier_than_retry_after(server, fault):
    clock = HandClock()
    answer = reply(server, [fault], clock=clock, max_retry_after_s=100)
    assert isinstance(answer, Answer)
    assert clock.at >= WAITS[fault]
    assert clock.at <= WAITS[fault] + 1


@pytest.mark.parametrize("fault", ["429=61", "429=99999999999999999999", "retry-ms=61000", "429=1h", "503=3600"])
def test_retry_after_above_cap_is_rate_limited_without_wait(server, fault):
    clock = HandClock()
    no_answer = reply(server, [fault] * 9, clock=clock)
    assert (no_answer.cause, len(server.requests), clock.waits) == ("rate_limited", 1, [])


def test_retry_after_date_is_relative_to_reply_date(server):
    clock = HandClock()
    no_answer = reply(server, ["429=Fri, 31 Dec 2100 23:59:59 GMT"], clock=clock)
    assert (no_answer.cause, clock.waits) == ("rate_limited", [])
    server.forget()
    assert isinstance(reply(server, ["429=Fri, 31 Dec 1999 23:59:59 GMT"], clock=clock), Answer)
    assert clock.at < 1


def test_failure_kinds_share_one_retry_count(server):
    no_answer = reply(server, ["500", "429", "reset", "half", "ok"])
    assert (no_answer.cause, len(server.requests)) == ("model_failed", 4)


@pytest.mark.parametrize("fault", [*BAD_VECTORS, *BAD_BATCHES])
def test_unusable_vectors_are_requested_once_more(server, fault):
    request = Embed(texts=("one", "two", "three"))
    no_answer = reply(server, [fault] * 9, request)
    assert (no_answer.cause, len(server.requests)) == ("unreadable", 2)
    server.forget()
    vectors = reply(server, [fault], request)
    assert isinstance(vectors, Vectors)
    assert (vectors.values.shape, len(server.requests)) == ((3, 16), 2)


@pytest.mark.parametrize("status", ["400", "413", "422"])
def test_refused_batch_is_split(server, status):
    vectors = reply(server, [status], Embed(texts=("one", "two", "three", "four")))
    assert isinstance(vectors, Vectors)
    assert [request.document["input"] for request in server.requests[1:]] == [["one", "two"], ["three", "four"]]


def test_vector_with_nan_is_invalid_json_with_four_requests(server):
    no_answer = reply(server, ["nan"] * 9, Embed(texts=("one",)))
    assert (no_answer.cause, len(server.requests)) == ("model_failed", 4)


@pytest.mark.parametrize("fault", ["shuffled", "no-index"])
def test_unordered_vectors_are_reordered(server, fault):
    request = Embed(texts=("one", "two", "three"))
    assert reply(server, [fault], request).values.tolist() == reply(server, ["ok"], request).values.tolist()


def test_errors_are_never_cached_and_a_hit_makes_no_request(server, tmp_path):
    cache = Cache(tmp_path / "cache.jsonl")
    try:
        server.play(["500"] * 4 + ["null-content"] * 2)
        found = replies(server, [ASK] * 4, cache=cache)
    finally:
        cache.close()
    assert [type(each) for each in found] == [NoAnswer, NoAnswer, Answer, Answer]
    assert len(server.requests) == 4 + 2 + 1
    assert (found[3].usage.calls, found[3].usage.cached_calls, found[3].text) == (0, 1, found[2].text)


def mark(server, faults, **settings):
    """The mark of a sample while the model of the judge fails."""

    async def judged():
        async with Gateway(roles(server, **settings), CallContext(HandClock())) as gateway:
            return await play_script(LlmAsJudge(), SAMPLE, Output("A month."), ask=gateway.answers)

    server.play(faults)
    return asyncio.run(judged())


VERDICTS = ["score=7", "score=-0.1", "score=NaN", 'score="0.9"', "score=true", "score=null", "score=1e999", "duplicate"]
VERDICTS += ["text=", "text=The score is 0.9.", "text=[]", "refusal", 'text={"score": 0.9} {"score": 0.9}']


@pytest.mark.parametrize("fault", VERDICTS)
def test_unreadable_verdict_is_retried_once_then_unscored(server, fault):
    unscored = mark(server, [fault] * 9)
    assert isinstance(unscored, Unscored)
    assert (unscored.cause, len(server.requests)) == ("unreadable", 2)
    assert unscored.usage.calls == 2
    server.forget()
    assert mark(server, [fault, "score=0.5"]).score == 0.5
    assert len(server.requests) == 2


MARKS = {
    **dict.fromkeys(("500", "503", "reset", "half", "not-json"), ("model_failed", 4)),
    "429": ("rate_limited", 4),
    "429=3600": ("rate_limited", 1),
    "401": ("model_failed", 1),
    "quota": ("model_failed", 1),
    "wrong-shape": ("unreadable", 2),
    "huge": ("unreadable", 2),
}


@pytest.mark.parametrize("fault", MARKS)
def test_each_fault_gives_its_unscored_cause(server, fault):
    unscored = mark(server, [fault] * 9)
    assert (unscored.cause, len(server.requests)) == MARKS[fault]


def test_healthy_model_leaves_a_score(server):
    scored = mark(server, ["score=0.75"])
    assert isinstance(scored, MetricScore)
    assert (scored.score, len(server.requests)) == (0.75, 1)


def test_usage_of_unusable_reply_is_counted(server):
    no_answer = reply(server, ["null-content"] * 9)
    assert no_answer.usage.calls == 2
    assert no_answer.usage.prompt_tokens == 2 * 3


def test_many_calls_against_a_flaky_server_all_end_and_are_counted():
    requests = [Ask(messages=(Message("user", f"Question {number}."),)) for number in range(300)]
    faults = {"500": 0.1, "429": 0.1, "reset": 0.05, "half": 0.05, "404": 0.03, "no-choices": 0.05}

    async def every(server):
        async with Gateway(roles(server, concurrency=32), CallContext(HandClock())) as gateway:
            found = await gateway.answers(requests)
            return found, gateway.spent["judge"], gateway.limiter_states()["judge"]

    def outcome(seed):
        with ModelServer(seed=seed, faults=faults) as server:
            found, spent, live = asyncio.run(every(server))
            assert server.peak <= 32
        assert (live.under_way, live.waiting) == (0, 0)
        assert spent.calls >= sum(isinstance(each, Answer) for each in found)
        return [each.text if isinstance(each, Answer) else each.cause for each in found]

    first = outcome(1)
    assert first == outcome(1)
    assert "model_failed" in first


def test_key_is_never_written_or_shown(server, tmp_path, capfd, caplog):
    caplog.set_level(0)
    recording, cache = str(tmp_path / "recorded.jsonl"), Cache(tmp_path / "cache.jsonl")
    url = server.url.replace("http://", "http://me:pass-word-1234@") + "?sig=query-secret-1"
    chat = OpenAIChat(url, "m", api_key=KEY)

    class Raising:
        secrets = chat.secrets

        async def complete(self, ask):
            raise RuntimeError(f"could not reach {url} with {KEY}")

    asks = [Ask(messages=(Message("user", f"{number}: is {KEY} right?"),)) for number in range(7)]
    others = [Ask(messages=(Message("user", "x"),), role="raising")]

    async def every():
        models = {
            "judge": Role(client=chat, recording=recording, retries=0),
            "raising": Role(client=Raising(), retries=0),
        }
        async with Gateway(models, CallContext(HandClock(), cache=cache)) as gateway:
            found = [(await gateway.answers([ask]))[0] for ask in [*asks, *others]]
            return found, gateway.notes, gateway.limiter_states(), repr(models), gateway.spent

    server.play(["401", "ok", f"text=your key is {KEY}", 'message={"reasoning": "' + KEY + '"}', "reset", "307"])
    server.play([f'merge={{"model": "{KEY}"}}'])
    try:
        shown = asyncio.run(every())
    finally:
        cache.close()
    assert [type(each) for each in shown[0]] == [NoAnswer, Answer, Answer, Answer, NoAnswer, NoAnswer, Answer, NoAnswer]
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 2
    assert all(written)
    printed = capfd.readouterr()
    everything = "\n".join([repr(shown), *written, printed.out, printed.err, caplog.text])
    for secret in (KEY, json.dumps(KEY)[1:-1], "pass-word-1234", "query-secret-1"):
        assert secret not in everything
    # This proves that the server received and repeated it.
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "[removed]" in shown[0][2].text


SUITE_WITH_A_JUDGE = """\
name: refunds
dataset: golden.yml
target: { outputs: answers.yml }
metrics: [llm-as-judge]
models:
  judge: { base_url: "${JUDGE_URL}", model: m, api_key_env: JUDGE_KEY, retries: 0, record: recorded.jsonl }
"""


@pytest.mark.parametrize("faults", [["401"] * 2, ["text={}"] * 4, ["reset", "null-content"], ["score=0.5"] * 2])
def test_key_is_in_no_output_of_a_run(server, tmp_path, faults):
    written(tmp_path, FILES | {"suite.yml": SUITE_WITH_A_JUDGE})
    server.play([fault.format(KEY) for fault in faults])
    url = server.url.replace("http://", "http://me:pass-word-1234@") + "?sig=query-secret-1"
    formats = ["--to", "run.json", "--to", "run.md", "--to", "run.html", "--to", "run.xml"]
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-m", "deemster", "run", "suite.yml", *formats],
        cwd=tmp_path,
        env={**os.environ, "JUDGE_URL": url, "JUDGE_KEY": KEY},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (0 if faults[0] == "score=0.5" else 3), done.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"run.json", "run.md", "run.html", "run.xml"} <= {path.name for path in files}
    assert (tmp_path / "recorded.jsonl").exists() == any(fault.startswith(("text", "score")) for fault in faults)
    everything = "\n".join([done.stdout, done.stderr, *(path.read_text(errors="replace") for path in files)])
    for secret in (KEY, json.dumps(KEY)[1:-1], "pass-word-1234", "query-secret-1"):
        assert secret not in everything
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
