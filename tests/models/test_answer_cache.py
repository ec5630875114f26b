"""The answer cache on disk."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from decimal import Decimal

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.models import Cache, FakeEmbedding, ModelFailure, Price
from deemster.models.answer_cache import ask_key, identity_prefix, store_vector, text_key
from deemster.models.openai_client import OpenAIChat, OpenAIEmbedding
from deemster.records import Answer, Ask, Embed, Message, NoAnswer, Token, Usage
from tests.models.fake_clock import run
from tests.models.make_requests import Remote, gateway, question

ANSWER = Answer(
    text="yes",
    usage=Usage(prompt_tokens=10, completion_tokens=2, latency_ms=3.0, cost_usd=Decimal("0.1"), model="m"),
    model="m",
    tokens=(Token("yes", -0.1, (("yes", -0.1), ("no", -2.5))),),
    thinking="hm\nhm",
    finish="stop",
)
KEY = bytes(range(32))
PREFIX = identity_prefix({"model": "m"})

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
asks = st.builds(
    Ask,
    messages=st.lists(
        st.builds(Message, role=st.sampled_from(["system", "user", "assistant"]), content=texts), max_size=3
    ).map(tuple),
    schema=st.none() | st.dictionaries(texts, texts | st.integers(0, 3), max_size=2),
    temperature=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.none() | st.integers(0, 3),
    max_tokens=st.none() | st.integers(1, 3),
    logprobs=st.integers(0, 2),
    sample=st.integers(0, 2),
    again=st.integers(0, 1),
    subject=st.sampled_from(["", "a", "b"]),
    parameters=st.none() | st.dictionaries(st.sampled_from(["top_p"]), st.integers(0, 1)),
)


@given(asks, asks)
def test_cache_keys_are_equal_only_for_equal_questions(one, other):
    same = one == other and list((one.schema or {}).items()) == list((other.schema or {}).items())
    assert (ask_key(PREFIX, one) == ask_key(PREFIX, other)) == same


@given(asks, st.data())
def test_changing_any_field_that_is_sent_changes_the_key(ask, data):
    changes = {
        "messages": (*ask.messages, Message("user", "")),
        "schema": {"type": "object"} if ask.schema != {"type": "object"} else None,
        "temperature": ask.temperature + 0.1,
        "seed": 7 if ask.seed is None else None,
        "max_tokens": 7 if ask.max_tokens is None else None,
        "logprobs": ask.logprobs + 1,
        "sample": ask.sample + 1,
        "again": 1 - ask.again,
        "subject": f"{ask.subject}a",
        "parameters": {} if ask.parameters is None else None,
    }
    # Neither is sent, so neither changes an answer.
    unsent = {"role": "another", "once": not ask.once}
    assert set(changes) | set(unsent) == set(Ask.__struct_fields__)
    assert ask_key(PREFIX, ask) == ask_key(PREFIX, msgspec.structs.replace(ask, **unsent))
    field = data.draw(st.sampled_from(sorted(changes)))
    assert ask_key(PREFIX, ask) != ask_key(PREFIX, msgspec.structs.replace(ask, **{field: changes[field]}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((Message("user", "ab"), Message("user", "c")), (Message("user", "a"), Message("user", "bc"))),
        ((Message("user", '","'),), (Message("user", ""), Message("user", ""))),
        ((Message("user", "a"),), (Message("system", "a"),)),
        ((Message("user", "é"),), (Message("user", "e\u0301"),)),
        ((Message("user", "a"),), (Message("user", "a "),)),
    ],
)
def test_similar_questions_have_different_keys(one, other):
    assert ask_key(PREFIX, Ask(messages=one)) != ask_key(PREFIX, Ask(messages=other))


def test_order_of_schema_keys_changes_cache_key():
    one, other = {"reason": "string", "score": "number"}, {"score": "number", "reason": "string"}
    assert ask_key(PREFIX, question(schema=one)) != ask_key(PREFIX, question(schema=other))


@given(st.dictionaries(texts, texts, max_size=3), st.dictionaries(texts, texts, max_size=3))
def test_identity_of_client_is_in_cache_key(one, other):
    keys = [ask_key(identity_prefix(identity), question()) for identity in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


urls = st.builds(
    "{}://{}{}/{}{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["a.example", "b.example"]),
    st.sampled_from(["", ":8000"]),
    st.sampled_from(["v1", "v2", "v1/v1"]),
    st.sampled_from(["", "?tenant=one", "?tenant=two", "?api-version=1", "?api-version=2"]),
)
parameters = st.dictionaries(
    st.sampled_from(["top_p", "user", "api_key"]), st.none() | st.sampled_from([0.5, 1, "1", "one", True]), max_size=2
)


@given(st.lists(st.tuples(urls, st.sampled_from(["m", "m1", "M"]), parameters), min_size=2, max_size=2))
def test_clients_share_answers_only_with_same_address_model_and_parameters(settings):
    chats = [ask_key(identity_prefix(OpenAIChat(*each[:2], extra=each[2]).identity), question()) for each in settings]
    vectors = [text_key(identity_prefix(OpenAIEmbedding(*each[:2], extra=each[2]).identity), "a") for each in settings]
    # Compared as text, because 1 and True are equal but are sent differently.
    same = settings[0][:2] == settings[1][:2] and len({repr(sorted(each[2].items())) for each in settings}) == 1
    assert (chats[0] == chats[1]) == (vectors[0] == vectors[1]) == same


@pytest.mark.parametrize("change", [{"base_url": "https://h/v2"}, {"model": "n"}, {"extra": {"top_p": 0.5}}])
def test_cache_key_depends_on_client_settings_but_not_api_key(change):
    usual = {"base_url": "https://h/v1", "model": "m", "extra": {"top_p": 0.25}, "api_key": "first-key-0123"}
    for kind in (OpenAIChat, OpenAIEmbedding):
        before, after, other = (kind(**usual | new).identity for new in ({}, change, {"api_key": "second-key-0123"}))
        assert identity_prefix(before) != identity_prefix(after)
        assert identity_prefix(before) == identity_prefix(other)


def test_chat_and_embedding_model_of_same_name_have_different_keys():
    kinds = [identity_prefix(kind("https://h/v1", "m").identity) for kind in (OpenAIChat, OpenAIEmbedding)]
    assert kinds[0] != kinds[1]


def test_question_and_a_text_do_not_collide():
    assert text_key(PREFIX, "a") != ask_key(PREFIX, question("a"))


def test_cached_answer_round_trips(tmp_path):
    path = tmp_path / "deep" / "cache.jsonl"
    cache = Cache(path)
    cache.keep(KEY, ANSWER)
    again = Cache(path)
    for opened in (cache, again):
        assert opened.answer(KEY) == ANSWER
        opened.close()
    assert again.notes == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_cache_hit_is_free_and_marked_cached(tmp_path):
    async def work(client):
        cache = Cache(tmp_path / "c")
        async with gateway(client, cache=cache, settings={"prices": {"": Price(Decimal(1), Decimal(1))}}) as opened:
            (reply,) = await opened.answers([question()])
            spent = opened.spent["judge"]
        cache.close()
        return reply, spent

    first, _ = run(work(Remote()))
    client = Remote()
    second, spent = run(work(client))
    assert client.sent == []
    assert second.text == first.text
    assert first.usage.cost_usd > 0
    for usage in (second.usage, spent):
        assert (usage.calls, usage.cached_calls, usage.cost_usd, usage.latency_ms) == (0, 1, 0, None)
    assert (first.usage.prompt_tokens, second.usage.prompt_tokens, second.usage.cached_call_tokens) == (10, None, 15)


def test_cache_key_does_not_depend_on_role(tmp_path):
    async def work(name, client):
        cache = Cache(tmp_path / "c")
        async with gateway(client, role=name, cache=cache) as opened:
            await opened.answers([question(role=name)])
        cache.close()

    run(work("judge", Remote()))
    client = Remote()
    run(work("judge:strict", client))
    assert client.sent == []


async def test_failures_are_never_cached(tmp_path):
    cache = Cache(tmp_path / "c")
    async with gateway(Remote(ModelFailure("refused", "no")), cache=cache) as opened:
        (failed,) = await opened.answers([question()])
        (answered,) = await opened.answers([question()])
    cache.close()
    assert isinstance(failed, NoAnswer)
    assert answered.usage.calls == 1


async def test_client_without_identity_is_not_cached_on_disk(tmp_path):
    client = Remote()
    client.identity = None
    cache = Cache(tmp_path / "c")
    async with gateway(client, cache=cache) as opened:
        await opened.answers([question()])
        await opened.answers([question()])
    kept = len(cache)
    cache.close()
    assert (len(client.sent), kept) == (1, 0)


def test_vectors_of_remote_model_are_cached(tmp_path):
    async def work():
        client = FakeEmbedding(identity={"m": 1}, is_local=False)
        cache = Cache(tmp_path / "c")
        async with gateway(client, role="embedding", kind="embedding", cache=cache) as opened:
            (reply,) = await opened.answers([Embed(texts=("a", "b"))])
        cache.close()
        return reply, client.asked

    first, _ = run(work())
    second, asked = run(work())
    assert asked == []
    assert np.array_equal(first.values, second.values)
    assert (second.usage.calls, second.usage.cached_calls) == (0, 1)


@given(cut=st.integers(1, 10_000))
def test_torn_last_line_is_skipped_with_warning_and_file_stays_usable(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cache") / "c"
    cache = Cache(path)
    for n in range(3):
        cache.keep(bytes([n]) * 32, ANSWER)
    cache.close()
    data = path.read_bytes()
    last = len(data) // 3
    path.write_bytes(data[: len(data) - 2 - cut % (last - 2)])
    torn = Cache(path)
    assert len(torn) == 2
    assert torn.notes == [f"{path}: the last line is incomplete and is passed over."]
    torn.keep(b"n" * 32, ANSWER)
    torn.close()
    again = Cache(path)
    assert len(again) == 3
    assert again.answer(b"n" * 32).text == "yes"
    assert again.answer(bytes([0]) * 32).text == "yes"
    assert again.notes == [f"{path}: 1 line cannot be read and is passed over."]
    again.close()


def test_unreadable_lines_are_skipped_and_counted(tmp_path):
    path = tmp_path / "c"
    cache = Cache(path)
    cache.keep(KEY, ANSWER)
    cache.close()
    path.write_bytes(b"one\ntwo\n" + path.read_bytes())
    again = Cache(path)
    assert again.answer(KEY) == ANSWER
    assert again.notes == [f"{path}: 2 lines cannot be read and are passed over."]
    again.close()


def test_line_without_line_end_is_completed_by_next_write(tmp_path):
    path = tmp_path / "c"
    cache = Cache(path)
    cache.keep(KEY, ANSWER)
    cache.close()
    path.write_bytes(path.read_bytes()[:-1])
    torn = Cache(path)
    torn.keep(b"n" * 32, ANSWER)
    torn.close()
    again = Cache(path)
    assert again.answer(KEY).text == again.answer(b"n" * 32).text == "yes"
    again.close()


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_flipped_bit_never_changes_an_answer(tmp_path_factory, place, bit):
    path = tmp_path_factory.mktemp("cache") / "c"
    cache = Cache(path)
    cache.keep(KEY, ANSWER)
    whole = cache.answer(KEY)
    cache.close()
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= 1 << bit
    path.write_bytes(data)
    flipped = Cache(path)
    kept = flipped.answer(KEY)
    assert kept is None or kept == whole
    if kept is None and KEY not in flipped:
        flipped.keep(KEY, ANSWER)
        assert flipped.answer(KEY) == whole
    flipped.close()


APPENDING = """
import sys
from deemster.models import Cache
from deemster.records import Answer
cache = Cache(sys.argv[1])
for n in range(200):
    cache.keep((int(sys.argv[2]) * 1000 + n).to_bytes(32), Answer(text="x" * n))
"""


ENDLESS = """
import itertools, sys
from deemster.models import Cache
from deemster.records import Answer
cache = Cache(sys.argv[1])
for n in itertools.count():
    cache.keep(n.to_bytes(32), Answer(text="x" * 5000))
    if n == 100:
        print("under way", flush=True)
"""


def test_cache_is_readable_after_kill(tmp_path):
    path = tmp_path / "c"
    with subprocess.Popen([sys.executable, "-c", ENDLESS, path], stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"under way\n"
        writer.kill()
    cache = Cache(path)
    assert len(cache) > 100
    assert all(cache.answer(n.to_bytes(32)).text == "x" * 5000 for n in range(len(cache)))
    cache.close()


def test_several_processes_append_to_one_file(tmp_path):
    path = tmp_path / "c"
    workers = [subprocess.Popen([sys.executable, "-c", APPENDING, path, str(start)]) for start in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    cache = Cache(path)
    assert len(cache) == 600
    assert cache.notes == []
    assert all(cache.answer((start * 1000 + n).to_bytes(32)).text == "x" * n for start in range(3) for n in range(200))
    cache.close()


def test_lines_of_other_process_do_not_shift_own_offsets(tmp_path):
    one, other = Cache(tmp_path / "c"), Cache(tmp_path / "c")
    one.keep(b"1" * 32, ANSWER)
    other.keep(b"2" * 32, msgspec.structs.replace(ANSWER, text="no"))
    one.keep(b"3" * 32, msgspec.structs.replace(ANSWER, text="maybe"))
    assert one.answer(b"3" * 32).text == "maybe"
    assert other.answer(b"2" * 32).text == "no"
    assert one.answer(b"1" * 32).text == "yes"
    one.close()
    other.close()


def test_full_disk_is_warning_and_run_continues(tmp_path):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    cache = Cache(tmp_path / "c")
    cache._file.close()
    cache._file = Full()
    cache.keep(KEY, ANSWER)
    cache.keep(KEY, ANSWER)
    assert cache.notes == [f"{tmp_path / 'c'}: nothing more is kept: No space left on device."]
    assert cache.answer(KEY) is None


async def test_answer_is_written_before_loop_continues(tmp_path):
    cache = Cache(tmp_path / "c")
    lines = []
    for n in range(3):
        cache.keep(bytes([n]) * 32, ANSWER)
        lines.append((tmp_path / "c").read_bytes().count(b"\n"))
    cache.close()
    assert lines == [1, 2, 3]


def test_unopenable_cache_is_error_with_path(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cache cannot be opened"):
        Cache(tmp_path / "file" / "cache")


def test_cached_vector_round_trips_exactly():
    values = np.random.default_rng(1).standard_normal(7).astype(np.float32)
    assert np.array_equal(store_vector(values, "m").values(), values)


def test_cache_that_is_garbage_closes_its_file_and_its_index(tmp_path, monkeypatch):
    monkeypatch.setattr("deemster.models.answer_cache._RECENT", 1)
    cache = Cache(tmp_path / "cache.jsonl")
    cache.keep(KEY, Answer(text="yes"))
    file, older = cache._file, cache._lines._older
    del cache
    assert file.closed
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        older.execute("SELECT 1")


@pytest.mark.parametrize("recent", [1, 4, 4096])
def test_lines_are_found_whether_the_index_holds_them_in_memory_or_not(tmp_path, monkeypatch, recent):
    monkeypatch.setattr("deemster.models.answer_cache._RECENT", recent)
    path = tmp_path / "cache.jsonl"
    cache = Cache(path)
    for number in range(10):
        cache.keep(bytes([number % 6]) * 32, Answer(text=str(number)))
    for each in (cache, Cache(path)):
        assert len(each) == 6
        assert [each.answer(bytes([number]) * 32).text for number in range(6)] == ["6", "7", "8", "9", "4", "5"]
        assert bytes([6]) * 32 not in each
        each.close()


def test_key_of_a_judges_question_is_the_one_of_version_0_2():
    ask = Ask(messages=(Message("user", "Judge this."),), schema={"type": "object"})
    key = ask_key(identity_prefix({"model": "m"}), ask).hex()
    assert key == "02d2a63a5c921695b64d338de45fc1a25e1a50ec43f13873b136774879f996bb"
