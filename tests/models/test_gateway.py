"""The gateway: every request to a model goes through it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.models import Cache, CallContext, FakeChat, FakeEmbedding, Gateway, ModelFailure, Price, Role
from deemster.models.clock import FrozenClock
from deemster.models.secret_redaction import Secrets
from deemster.records import Answer, Embed, Message, NoAnswer, Token, Usage
from tests.models.fake_clock import VirtualClock, run
from tests.models.make_requests import Remote, gateway, question


async def test_replies_come_in_the_order_of_the_requests():
    async def slow(ask):
        text = ask.messages[0].content
        await asyncio.sleep(10 - int(text))
        return text

    async with gateway(FakeChat(slow)) as opened:
        assert [reply.text for reply in await opened.answers([question(str(n)) for n in range(9)])] == [
            str(n) for n in range(9)
        ]


async def test_empty_round_gets_no_replies():
    async with gateway(Remote()) as opened:
        assert await opened.answers([]) == []


async def test_identical_requests_are_sent_and_counted_once():
    client = Remote()
    async with gateway(client) as opened:
        rounds = await asyncio.gather(*(opened.answers([question(), question()]) for _ in range(4)))
        replies = [reply for replies in rounds for reply in replies]
        spent = opened.spent["judge"]
    assert len(client.sent) == 1
    assert {reply.text for reply in replies} == {"re: Is it right?"}
    assert sorted(reply.usage.calls for reply in replies) == [0] * 7 + [1]
    assert sum(reply.usage.cached_calls for reply in replies) == 7
    assert (spent.calls, spent.cached_calls) == (1, 7)


async def test_repeated_question_is_answered_from_memory_for_free():
    client = Remote()
    async with gateway(client) as opened:
        await opened.answers([question()])
        (again,) = await opened.answers([question()])
        assert (len(client.sent), again.usage.calls, again.usage.cached_calls) == (1, 0, 1)


@pytest.mark.parametrize("in_memory", [1 << 20, 1])
async def test_without_a_cache_a_question_is_still_asked_once_a_run(monkeypatch, in_memory):
    monkeypatch.setattr("deemster.models.answer_cache._IN_MEMORY", in_memory)

    client = Remote()
    async with gateway(client) as opened:
        for sample in (*range(500), *range(500)):
            await opened.answers([question(sample=sample)])
        assert len(client.sent) == 500


async def test_another_sample_of_the_same_question_is_another_request():
    client = Remote()
    async with gateway(client) as opened:
        await opened.answers([question(sample=n) for n in range(3)])
        assert len(client.sent) == 3


async def test_if_first_asker_is_cancelled_another_sends_the_request():
    client = Remote()
    async with gateway(client) as opened:
        tasks = [asyncio.ensure_future(opened.answers([question()])) for _ in range(3)]
        await asyncio.sleep(0.5)
        tasks[0].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert [type(replies[0]) for replies in results[1:]] == [Answer, Answer]
    assert client.sent == [0.0, 0.5]


async def test_failure_that_is_shared_is_counted_once():
    client = Remote(ModelFailure("shape", "odd", may_cost=True), ModelFailure("shape", "odd", may_cost=True))
    async with gateway(client) as opened:
        first, second = await opened.answers([question(), question()])
    assert first.usage.calls == 2
    assert second == NoAnswer(cause="unreadable", message=first.message)


def test_sync_method_runs_in_thread():
    import threading

    class Plain:
        is_local = True

        def complete(self, ask):
            return Answer(text=threading.current_thread().name)

    async def work():
        async with Gateway({"judge": Role(client=Plain())}) as opened:
            return (await opened.answers([question()]))[0]

    assert asyncio.run(work()).text.startswith("deemster-model")


def test_sync_method_may_return_awaitable():
    class Odd:
        def complete(self, ask):
            async def later():
                return Answer(text="late")

            return later()

    async def work():
        async with Gateway({"judge": Role(client=Odd())}) as opened:
            return (await opened.answers([question()]))[0]

    assert asyncio.run(work()).text == "late"


@pytest.mark.parametrize(
    ("error", "requests", "cause", "message"),
    [
        (KeyError("choices"), 1, "model_failed", "KeyError: choices"),
        (ConnectionResetError("reset"), 4, "model_failed", "ConnectionResetError: reset"),
        (TimeoutError(), 4, "model_failed", "No reply came in time."),
        (SystemExit(3), 1, "model_failed", "SystemExit: 3"),
        (ValueError("key hush-hush-hush"), 1, "model_failed", "ValueError: key [removed]"),
    ],
)
async def test_exception_of_client_is_no_answer(error, requests, cause, message):
    class Broken(Remote):
        secrets = Secrets(["hush-hush-hush"])

        async def complete(self, ask):
            self.sent.append(0.0)
            raise error

    client = Broken()
    async with gateway(client) as opened:
        reply = (await opened.answers([question()]))[0]
    assert len(client.sent) == requests
    assert reply.cause == cause
    assert reply.message.startswith(message)


@pytest.mark.parametrize("reply", [None, "yes", {"text": "yes"}, Answer(text=None)])
async def test_invalid_answer_is_requested_once_more_then_unreadable(reply):
    class Odd(Remote):
        async def complete(self, ask):
            self.sent.append(0.0)
            return reply

    client = Odd()
    async with gateway(client) as opened:
        no_answer = (await opened.answers([question()]))[0]
    assert len(client.sent) == 2
    assert no_answer.cause == "unreadable"


async def test_key_that_the_server_echoes_is_not_in_the_answer():
    class Echo(Remote):
        secrets = Secrets(["hush-hush-hush"])

        async def complete(self, ask):
            return Answer(text="hush-hush-hush", thinking="a hush-hush-hush")

    async with gateway(Echo()) as opened:
        assert "hush-hush" not in repr((await opened.answers([question()]))[0])


@pytest.mark.parametrize(
    "echo",
    [
        {"model": "hush-hush-hush"},
        {"finish": "hush-hush-hush"},
        {"usage": Usage(model="hush-hush-hush")},
        {"tokens": (Token("hush-hush-hush", -1.0),)},
        {"tokens": (Token("hush-", -1.0), Token("hush-hush", -1.0))},
        {"tokens": (Token("fine", -1.0, (("fine", -1.0), ("hush-hush-hush", -2.0))),)},
    ],
)
async def test_no_field_of_an_answer_and_no_file_holds_a_key(echo, tmp_path):
    class Echo(Remote):
        secrets = Secrets(["hush-hush-hush"])

        async def complete(self, ask):
            return Answer(text="fine", **echo)

    cache = Cache(tmp_path / "cache.jsonl")
    async with gateway(Echo(), cache=cache) as opened:
        reply = (await opened.answers([question()]))[0]
    cache.close()

    shown = repr((reply, opened.spent)) + (tmp_path / "cache.jsonl").read_text()
    assert "fine" in shown
    assert "hush" not in shown.replace("[removed]", "")


@pytest.mark.parametrize(
    "usage",
    [
        Usage(prompt_tokens=10**30, completion_tokens=1),
        Usage(total_tokens=2**63),
        Usage(prompt_tokens=1, completion_tokens=1, cost_usd=Decimal("1e20")),
    ],
)
async def test_impossible_usage_is_ignored(usage):
    async with gateway(Remote(usage=usage)) as opened:
        result = (await opened.answers([question()]))[0]
    usage = result.usage
    assert (usage.calls, usage.prompt_tokens, usage.total_tokens, usage.cost_usd) == (1, None, None, None)
    assert usage.model == "far-1-2026"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(text="x", usage={"prompt_tokens": 3}), "`usage` of Answer is a Usage, not a dict."),
        (Answer(text="x", model=5), "`model` of Answer is text, not a int."),
    ],
)
async def test_other_fields_of_answer_are_checked(answer, message):
    class Odd(Remote):
        async def complete(self, ask):
            return answer

    async with gateway(Odd()) as opened:
        reply = (await opened.answers([question()]))[0]
    assert reply.cause == "unreadable"
    assert reply.message == f"{message} (2 attempts)"


async def test_client_raising_cancelled_fails_only_its_call():
    class Cancelling(Remote):
        async def complete(self, ask):
            self.sent.append(0.0)
            raise asyncio.CancelledError

    client = Cancelling()
    async with gateway(client, settings={"retries": 1}) as opened:
        reply = (await opened.answers([question()]))[0]
        sent = len(client.sent)
    assert (reply.cause, sent) == ("model_failed", 2)
    assert reply.message.startswith("The client cancelled the request itself.")


def test_unknown_failure_kind_is_error():
    with pytest.raises(ValueError, match=r"one of transport, limited, shape, refused, local, not 'limitted'"):
        ModelFailure("limitted", "Slow down.")


async def test_question_with_a_lone_surrogate_fails_alone():
    async with gateway(Remote()) as opened:
        bad, good = await opened.answers([question("\ud800"), question("fine")])
    assert bad.cause == "model_failed"
    assert isinstance(good, Answer)


async def test_answer_with_lone_surrogate_can_be_cached(tmp_path):
    cache = Cache(tmp_path / "c")
    async with gateway(FakeChat([Answer(text="a\ud800")], identity={"a": 1}), cache=cache) as opened:
        (reply,) = await opened.answers([question()])
    kept = len(cache)
    cache.close()
    assert reply.text == "a\ufffd"
    assert kept == 1


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (question(role="juge"), "Did you mean `judge`?"),
        (question(role="embedding"), "The role `embedding` embeds"),
        (Embed(texts=("a",), role="judge"), "The role `judge` chats"),
        (Embed(texts=("a",), role="vectors"), "{embedded: true}"),
    ],
)
async def test_unknown_role_is_configuration_error(request_, message):
    roles = {"judge": Role(client=FakeChat(["x"])), "embedding": Role(client=FakeEmbedding(), kind="embedding")}
    async with Gateway(roles, CallContext(VirtualClock())) as opened:
        reply = (await opened.answers([request_]))[0]
        fault = opened.configuration_error
    assert reply.cause == "not_run"
    assert message in str(fault)


def test_use_of_closed_gateway_is_error():
    with pytest.raises(RuntimeError, match="not open"):
        run(Gateway({"judge": Role(client=Remote())}).answers([question()]))


async def test_dry_run_counts_without_calls(tmp_path):
    cache = Cache(tmp_path / "c")
    settings_ = {"prices": {"": Price(Decimal(2), Decimal(10))}}
    async with gateway(Remote(), cache=cache, settings=settings_) as opened:
        await opened.answers([question("known")])
    client = Remote()
    async with gateway(client, cache=cache, settings=settings_, dry_run=True) as opened:
        asks = [question("known"), question("12345678x", max_tokens=100), question("a", max_tokens=50)]
        replies = await opened.answers(asks)
    cache.close()
    planned = opened.planned["judge"]
    assert client.sent == []
    assert isinstance(replies[0], Answer)
    assert [reply.cause for reply in replies[1:]] == ["not_run", "not_run"]
    assert (planned.calls, planned.prompt_tokens, planned.completion_tokens) == (2, 3 + 1, 150)
    assert planned.cost_usd == Decimal("0.001508")


async def test_dry_run_without_a_price_has_no_cost():
    async with gateway(Remote(), dry_run=True) as opened:
        await opened.answers([question()])
        assert opened.planned["judge"].cost_usd is None


async def test_frozen_clock_measures_no_latency():
    clock = FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with Gateway({"judge": Role(client=FakeChat(["a"]))}, CallContext(clock)) as opened:
        assert (await opened.answers([question()]))[0].usage.latency_ms is None


async def test_clients_are_closed_once():
    class Closing(Remote):
        closed = 0

        async def close(self):
            self.closed += 1

    client = Closing()
    async with Gateway({"a": Role(client=client), "b": Role(client=client)}):
        pass
    assert client.closed == 1


async def test_live_limits_are_given_by_role():
    async with gateway(Remote(), settings={"concurrency": 2}) as opened:
        tasks = [asyncio.ensure_future(opened.answers([question(str(n))])) for n in range(5)]
        await asyncio.sleep(0.5)
        live = opened.limiter_states()["judge"]
        await asyncio.gather(*tasks)
        assert live == (2, 2, 3)


kinds = st.sampled_from([None, "transport", "limited", "shape", "refused"])


@given(st.lists(kinds, max_size=60), st.integers(1, 40), st.integers(0, 3), st.integers(1, 9))
async def test_every_request_gets_one_reply_and_every_call_counts_once(fates, count, retries, concurrency):
    client = Remote(*[None if fate is None else ModelFailure(fate, fate, may_cost=True) for fate in fates])
    async with gateway(client, settings={"retries": retries, "concurrency": concurrency}) as opened:
        replies = await asyncio.gather(*(opened.answers([question(str(n))]) for n in range(count)))
        replies = [reply for (reply,) in replies]
    answered = [reply for reply in replies if isinstance(reply, Answer)]
    by_cause = [reply for reply in replies if isinstance(reply, NoAnswer)]
    assert len(answered) + len(by_cause) == count
    assert {reply.cause for reply in by_cause} <= {"model_failed", "rate_limited", "unreadable", "not_run"}
    # Every attempt here may have cost, so the sent, reported and summed tokens agree.
    reported = sum(reply.usage.calls for reply in replies if reply.usage is not None)
    assert len(client.sent) == reported == (opened.spent["judge"] or Usage(calls=0)).calls
    assert opened.limiter_states()["judge"].under_way == 0


async def test_fake_chat_answers_from_table_and_records_requests():
    client = FakeChat({"cat": {"score": 1}, "dog": "no"})
    async with gateway(client) as opened:
        replies = await opened.answers([question("a cat"), question("a dog"), question("a cow")])
    assert [reply.text for reply in replies[:2]] == ['{"score":1}', "no"]
    assert replies[2].cause == "model_failed"
    assert client.asked[0].messages == (Message("user", "a cat"),)


async def test_after_halt_nothing_is_sent_and_open_calls_finish():
    client = Remote()
    async with gateway(client, settings={"concurrency": 2, "rpm": 4}) as opened:
        tasks = [asyncio.ensure_future(opened.answers([question(str(n))])) for n in range(6)]
        await asyncio.sleep(15.5)
        opened.halt("Interrupted.")
        replies = await asyncio.gather(*tasks, opened.answers([question("late")]))
        sent = client.sent
        replies = [reply for (reply,) in replies]
        end = asyncio.get_running_loop().time()
        limits = opened.limiter_states()
    assert sent == [0.0, 15.0]
    assert [type(reply) for reply in replies] == [Answer] * 2 + [NoAnswer] * 5
    assert {(reply.cause, reply.message) for reply in replies[2:]} == {("not_run", "Interrupted.")}
    assert end == 16.0
    assert limits["judge"].under_way == 0


async def test_after_halt_failed_attempt_is_not_repeated():
    client = Remote(ModelFailure("transport", "503"))
    async with gateway(client) as opened:
        task = asyncio.ensure_future(opened.answers([question()]))
        await asyncio.sleep(0.5)
        opened.halt("Interrupted.")
        reply = (await task)[0]
    assert len(client.sent) == 1
    assert reply.cause == "model_failed"


async def test_non_json_client_identity_is_error():
    client = Remote()
    client.identity = {"base_url": "https://x", "model": object()}
    async with gateway(client) as opened:
        (reply,) = await opened.answers([question()])
        fault = opened.configuration_error
    assert isinstance(reply, Answer)
    assert "`identity`" in str(fault)


async def test_unused_model_needs_no_identity():
    class Heavy(Remote):
        @property
        def identity(self):
            raise AssertionError

    roles = {"judge": Role(client=Remote()), "heavy": Role(client=Heavy())}
    async with Gateway(roles, CallContext(VirtualClock())) as opened:
        reply = (await opened.answers([question()]))[0]
        spent = opened.spent
    assert isinstance(reply, Answer)
    assert list(spent) == ["judge"]


async def test_model_failure_of_client_shows_no_secrets():
    class Telling(Remote):
        secrets = ("hush-hush-hush",)

        async def complete(self, ask):
            raise ModelFailure("refused", "hush-hush-hush is not accepted")

    async with gateway(Telling()) as opened:
        assert (await opened.answers([question()]))[0].message == "[removed] is not accepted (1 attempt)"
