"""Texts of all scripts together, in full batches, each distinct text once."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deemster.models import Budget, FakeEmbedding, ModelFailure, Price
from deemster.records import Embed, NoAnswer, Usage, Vectors
from deemster.records.usage import sum_usage
from tests.models.make_requests import embedded, gateway


def length(text):
    return [float(len(text)), 1.0]


async def test_texts_of_many_scripts_go_in_one_request_each_once():
    client = FakeEmbedding(length)
    replies, _ = await embedded(client, ("a", "bb"), ("bb", "ccc"), ("a", "a"))
    assert client.asked == [["a", "bb", "ccc"]]
    assert [reply.values.tolist() for reply in replies] == [[[1, 1], [2, 1]], [[2, 1], [3, 1]], [[1, 1], [1, 1]]]
    assert {reply.values.dtype.name for reply in replies} == {"float32"}


async def test_batch_leaves_when_it_is_full():
    client = FakeEmbedding(length)
    await embedded(client, tuple("abcdefg"), settings={"batch": 3})
    assert client.asked == [["a", "b", "c"], ["d", "e", "f"], ["g"]]


@pytest.mark.parametrize("is_local", [True, False])
async def test_vectors_are_cached_in_memory(is_local):
    client = FakeEmbedding(length, is_local=is_local)
    async with gateway(client, role="embedding", kind="embedding") as opened:
        await opened.answers([Embed(texts=("a", "b"))])
        (again,) = await opened.answers([Embed(texts=("b", "a", "b"))])
    assert client.asked == [["a", "b"]]
    assert again.values.shape == (3, 2)
    if is_local:
        assert again.usage is None
    else:
        assert (again.usage.calls, again.usage.cached_calls, again.usage.cost_usd) == (0, 1, 0)


async def test_vector_memory_is_bounded(monkeypatch):
    monkeypatch.setattr("deemster.models._embedding_role.KEPT_BYTES", 8 * 10)
    client = FakeEmbedding(length)
    replies, opened = await embedded(client, tuple("abcdefghijklmnopqrstuvwxyz"))
    assert replies[0].values.shape == (26, 2)
    assert len(opened._open_roles["embedding"]._kept) <= 10


async def test_no_texts_send_no_request():
    client = FakeEmbedding(length)
    replies, _ = await embedded(client, ())
    assert client.asked == []
    assert len(replies[0].values) == 0


@settings(deadline=None)
@given(st.lists(st.lists(st.text("abc", max_size=3), max_size=6).map(tuple), min_size=1, max_size=8), st.integers(1, 5))
async def test_every_request_gets_its_own_vectors_in_its_own_order(rounds, batch):
    client = FakeEmbedding()
    replies, _ = await embedded(client, *rounds, settings={"batch": batch})
    alone = FakeEmbedding()
    for texts, reply in zip(rounds, replies, strict=True):
        expected = np.array([alone._made_up(text) for text in texts], dtype=np.float32)
        assert np.array_equal(reply.values, expected.reshape(reply.values.shape))
    sent = [text for request in client.asked for text in request]
    assert sorted(sent) == sorted({text for texts in rounds for text in texts})
    assert all(len(request) <= batch for request in client.asked)


class Counting:
    """Reports a token for each character, and money."""

    def __init__(self) -> None:
        self.asked = []

    async def embed_many(self, texts):
        self.asked.append(list(texts))
        tokens = sum(map(len, texts))
        return Vectors(
            values=np.ones((len(texts), 3)), usage=Usage(prompt_tokens=tokens, total_tokens=tokens), model="e"
        )


async def test_usage_of_batch_is_split_to_exact_sum():
    replies, opened = await embedded(
        Counting(), ("aaaa", "b"), ("c",), ("aaaa",), settings={"prices": {"e": Price(Decimal(1))}}
    )
    usages = [reply.usage for reply in replies]
    total = sum_usage(usages)
    assert (total.calls, total.cached_calls, total.prompt_tokens) == (1, 1, 6)
    assert total.cost_usd == Decimal("0.000006")
    assert (usages[2].calls, usages[2].cached_calls) == (0, 1)
    assert opened.spent["embedding"].prompt_tokens == 6


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([[1.0, 2.0]], "1 vectors came for 2 texts."),
        ([[1.0], [1.0, 2.0]], "one length"),
        ([[1.0, float("nan")], [1.0, 2.0]], "not finite"),
        ([[1.0, 1e300], [1.0, 2.0]], "not finite"),
        ([[], []], "one length"),
        ([["1", "2"], ["1", "2"]], "lists of numbers"),
        ([[True, False], [True, False]], "lists of numbers"),
        ([[None, 1.0], [1.0, 2.0]], "lists of numbers"),
        ([1.0, 2.0], "lists of numbers"),
        (None, "lists of numbers"),
    ],
)
async def test_vectors_of_the_wrong_shape_are_unreadable(values, why):
    class Odd:
        asked = 0

        async def embed_many(self, texts):
            self.asked += 1
            return values

    client = Odd()
    replies, _ = await embedded(client, ("a", "b"), settings={"retries": 3})
    assert replies[0].cause == "unreadable"
    assert why in replies[0].message
    assert client.asked == 2


async def test_bad_vector_of_one_text_does_not_affect_others():
    class Odd:
        async def embed_many(self, texts):
            return [[float("nan") if text == "" else 1.0] for text in texts]

    replies, _ = await embedded(Odd(), ("a",), ("",), ("b",))
    assert [type(reply) for reply in replies] == [Vectors, NoAnswer, Vectors]


async def test_dimension_that_changes_between_batches_is_unreadable():
    replies, _ = await embedded(
        FakeEmbedding(lambda text: [1.0] * (2 if text < "c" else 3)), tuple("ab"), tuple("cd"), settings={"batch": 2}
    )
    assert isinstance(replies[0], Vectors)
    assert replies[1].cause == "unreadable"
    assert "3 parts where others have 2" in replies[1].message


class Picky:
    """Refuses every request that holds a text it does not like."""

    def __init__(self, bad, failure) -> None:
        self.bad, self.failure, self.asked = bad, failure, []

    async def embed_many(self, texts):
        self.asked.append(list(texts))
        if self.bad in texts:
            raise self.failure
        return [length(text) for text in texts]


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_refused_text_does_not_affect_others(status):
    client = Picky("f", ModelFailure("refused", "too long", status=status))
    replies, _ = await embedded(client, *[(letter,) for letter in "abcdefgh"])
    assert [type(reply) for reply in replies] == [Vectors] * 5 + [NoAnswer] + [Vectors] * 2
    assert replies[5].cause == "model_failed"
    assert len(client.asked) == 7


async def test_single_refused_text_is_one_request():
    client = Picky("f", ModelFailure("refused", "too long", status=400))
    await embedded(client, ("f",))
    assert len(client.asked) == 1


async def test_refused_key_sends_one_request_for_any_number_of_texts():
    client = Picky("f", ModelFailure("refused", "no", status=401))
    replies, _ = await embedded(client, tuple("abcdef"))
    assert len(client.asked) == 1
    assert replies[0].cause == "model_failed"


async def test_transport_failure_retries_whole_batch():
    client = Picky("a", ModelFailure("transport", "503"))
    await embedded(client, tuple("abc"), settings={"retries": 3})
    assert len(client.asked) == 4


async def test_failed_text_is_retried_on_next_request():
    client = Picky("a", ModelFailure("refused", "no"))
    async with gateway(client, role="embedding", kind="embedding") as opened:
        (first,) = await opened.answers([Embed(texts=("a",))])
        client.bad = None
        (second,) = await opened.answers([Embed(texts=("a",))])
    assert isinstance(first, NoAnswer)
    assert isinstance(second, Vectors)


async def test_cancelled_waiter_does_not_stop_batch():
    class Slow(Counting):
        async def embed_many(self, texts):
            await asyncio.sleep(1.0)
            return await super().embed_many(texts)

    client = Slow()
    async with gateway(client, role="embedding", kind="embedding") as opened:
        tasks = [asyncio.ensure_future(opened.answers([Embed(texts=(text,))])) for text in "ab"]
        await asyncio.sleep(0.5)
        tasks[0].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert isinstance(results[1][0], Vectors)
    assert client.asked == [["a", "b"]]


async def test_closing_cancels_open_batches():
    class Endless:
        async def embed_many(self, texts):
            await asyncio.Event().wait()

    async with gateway(Endless(), role="embedding", kind="embedding") as opened:
        waiting = asyncio.ensure_future(opened.answers([Embed(texts=("a",))]))
        await asyncio.sleep(1.0)
    (reply,) = await waiting
    tasks = len(asyncio.all_tasks())
    assert reply.cause == "not_run"
    assert tasks == 1


async def test_text_with_a_lone_surrogate_fails_alone():
    client = FakeEmbedding(length)
    replies, _ = await embedded(client, ("\ud800",), ("a",))
    assert replies[0].cause == "model_failed"
    assert isinstance(replies[1], Vectors)
    assert client.asked == [["a"]]


async def test_exhausted_budget_leaves_texts_not_run():
    replies, opened = await embedded(Counting(), ("aaaa",), settings={}, budget=Budget(tokens=3))
    assert replies[0].cause == "not_run"
    assert opened.exhausted is not None


async def test_dry_run_counts_batches_and_calls_nothing():
    client = FakeEmbedding(length)
    replies, opened = await embedded(client, ("12345",), ("a", "b"), settings={"batch": 2}, dry_run=True)
    planned = opened.planned["embedding"]
    assert client.asked == []
    assert {reply.cause for reply in replies} == {"not_run"}
    assert (planned.calls, planned.prompt_tokens, planned.cost_usd) == (2, 4, 0)


async def test_impossible_cost_is_ignored_and_vectors_are_kept():
    class Dear(FakeEmbedding):
        async def embed_many(self, texts):
            usage = Usage(prompt_tokens=1, cost_usd=Decimal("1e20"))
            return Vectors(values=await super().embed_many(texts), usage=usage)

    async with gateway(Dear(is_local=False), role="embedding", kind="embedding") as opened:
        replies = await asyncio.gather(*(opened.answers([Embed(texts=(text,))]) for text in ("a", "b", "c")))
    assert all(isinstance(reply, Vectors) for (reply,) in replies)
    assert [reply.usage.cost_usd for (reply,) in replies] == [None, None, None]
