"""Answers recorded once and replayed ever after."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from deemster.errors import ConfigurationError
from deemster.models import CallContext, FakeEmbedding, Gateway, Role
from deemster.models._record_replay import Recording
from deemster.models.answer_cache import Cache
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.records import Answer, Embed, Usage
from tests.models.fake_clock import VirtualClock
from tests.models.make_requests import Remote, question

KEY = "super-secret-key-1"


async def asked(client, requests, path, *, kind="chat", **options):
    name = "judge" if kind == "chat" else "embedding"

    role = Role(client=client, kind=kind, recording=str(path))
    async with Gateway({name: role}, CallContext(VirtualClock(), **options)) as opened:
        replies = await opened.answers(requests)
    return replies, opened


async def test_recorded_answers_are_replayed_without_model(tmp_path):
    path = tmp_path / "r.jsonl"
    requests = [question("one"), question("two")]
    first, _ = await asked(Remote(), requests, path)
    second, opened = await asked(None, requests, path)
    assert [reply.text for reply in second] == [reply.text for reply in first] == ["re: one", "re: two"]
    assert {(reply.usage.calls, reply.usage.cached_calls, reply.usage.cost_usd) for reply in second} == {(0, 1, 0)}
    assert opened.configuration_error is None


async def test_recording_is_sorted_and_independent_of_order(tmp_path):
    requests = [question(str(n)) for n in range(9)]
    await asked(Remote(), requests, tmp_path / "a")
    await asked(Remote(takes_s=0.3), requests[::-1], tmp_path / "b")
    await asked(Remote(), requests[:4], tmp_path / "c")
    await asked(Remote(), requests, tmp_path / "c")
    files = [(tmp_path / name).read_bytes() for name in "abc"]
    assert files[0] == files[1] == files[2]
    keys = [json.loads(line)["key"] for line in files[0].splitlines()]
    assert keys == sorted(keys)
    assert len(keys) == 9


async def test_recorded_answer_is_not_requested_again(tmp_path):
    client = Remote()
    await asked(client, [question()], tmp_path / "r")
    await asked(client, [question(), question("new")], tmp_path / "r")
    assert len(client.sent) == 2


@pytest.mark.parametrize("client", [None, Remote()])
async def test_missing_recording_names_the_request_and_stops_the_run(tmp_path, client):
    await asked(Remote(), [question("known")], tmp_path / "r")
    reasons = []
    requests = [question("known"), question("What is\nunknown?"), question("other")]
    replies, opened = await asked(client, requests, tmp_path / "r", offline=True, on_stop=reasons.append)
    assert isinstance(replies[0], Answer)
    assert [reply.cause for reply in replies[1:]] == ["not_run", "not_run"]
    assert isinstance(opened.configuration_error, ConfigurationError)
    assert len(opened.configuration_error.issues) == 2
    assert "no recording of the request" in str(opened.configuration_error)
    assert "What is unknown?" in str(opened.configuration_error)
    assert len(reasons) == 1


@pytest.mark.parametrize("template", ["Question:\n{}\n\n" + "Rules. " * 60, "Rules. " * 60 + "\n\nAnswer:\n{}"])
async def test_missing_long_requests_are_shown_with_both_ends(tmp_path, template):
    texts = ["What is the capital of France?", "How long is a month?"]
    _, opened = await asked(None, [question(template.format(text)) for text in texts], tmp_path / "r", offline=True)
    for text, issue in zip(texts, opened.configuration_error.issues, strict=True):
        assert text in issue.message
        assert len(issue.message) < 350


async def test_offline_remote_model_is_not_asked():
    client = Remote()
    async with Gateway({"judge": Role(client=client)}, CallContext(VirtualClock(), offline=True)) as opened:
        (reply,) = await opened.answers([question()])
    sent = client.sent
    fault = opened.configuration_error
    assert reply.cause == "not_run"
    assert sent == []
    assert "offline" in str(fault)


async def test_offline_local_model_is_asked():
    role = Role(client=FakeEmbedding(), kind="embedding")
    async with Gateway({"embedding": role}, CallContext(VirtualClock(), offline=True)) as opened:
        (reply,) = await opened.answers([Embed(texts=("a",))])
    fault = opened.configuration_error
    assert reply.values.shape == (1, 16)
    assert fault is None


async def test_vectors_round_trip_recording_exactly(tmp_path):
    requests = [Embed(texts=("a b", "c"))]
    first, _ = await asked(FakeEmbedding(), requests, tmp_path / "r", kind="embedding")
    second, _ = await asked(None, requests, tmp_path / "r", kind="embedding", offline=True)
    assert np.array_equal(first[0].values, second[0].values)
    missing, opened = await asked(None, [Embed(texts=("a b", "d"))], tmp_path / "r", kind="embedding", offline=True)
    assert missing[0].cause == "not_run"
    assert "the text 'd'" in str(opened.configuration_error)


async def test_recording_holds_no_secret(tmp_path):
    class Echo(Remote):
        secrets = Secrets([KEY])

        async def complete(self, ask):
            return Answer(text=f'your "{KEY}\\" and Bearer abcdefgh12345', thinking=KEY, usage=Usage())

    path = tmp_path / "r"
    replies, _ = await asked(Echo(), [question(f"my key is {KEY}, authorization: abcdefgh\\")], path)
    text = path.read_text()
    assert KEY not in text
    assert "abcdefgh12345" not in text
    assert KEY not in repr(replies)
    again, _ = await asked(None, [question(f"my key is {KEY}, authorization: abcdefgh\\")], path)
    assert again[0].text == replies[0].text


async def test_torn_last_line_is_skipped_with_warning(tmp_path):
    path = tmp_path / "r"
    await asked(Remote(), [question("one"), question("two")], path)
    path.write_bytes(path.read_bytes()[:-20])
    recording = Recording(path, secrets=NO_SECRETS)
    assert len(recording) == 1
    assert recording.notes == [f"{path}:2: the last line is incomplete and is passed over."]
    client = Remote()
    await asked(client, [question("one"), question("two")], path)
    assert len(client.sent) == 1
    assert len(Recording(path, secrets=NO_SECRETS)) == 2


async def test_damaged_line_is_passed_over_and_asked_for_again(tmp_path):
    path = tmp_path / "r"
    await asked(Remote(), [question("one"), question("two")], path)
    whole = path.read_bytes()
    lines = path.read_text().splitlines()
    path.write_text(f"{lines[0][:-9]}\n{lines[1]}\n")
    recording = Recording(path, secrets=NO_SECRETS)
    assert len(recording) == 1
    assert [note.startswith(f"{path}:1: this is not a recorded answer (") for note in recording.notes] == [True]
    client = Remote()
    await asked(client, [question("one"), question("two")], path)
    assert (len(client.sent), path.read_bytes()) == (1, whole)


async def test_changed_answer_does_not_fit_its_check_sum(tmp_path):
    path = tmp_path / "r"
    await asked(Remote(), [question("one"), question("two")], path)
    path.write_bytes(path.read_bytes().replace(b"re: one", b"re: 0ne"))
    recording = Recording(path, secrets=NO_SECRETS)
    assert (recording.answer(question("one")), recording.answer(question("two")).text) == (None, "re: two")
    assert len(recording.notes) == 1
    assert recording.notes[0].endswith(": this line does not fit its check sum and is passed over.")


async def test_recording_without_check_sums_is_read(tmp_path):
    path = tmp_path / "r"
    await asked(Remote(), [question("one")], path)
    (line,) = (json.loads(each) for each in path.read_text().splitlines())
    assert len(line.pop("check")) == 8
    path.write_text(json.dumps(line) + "\n")
    recording = Recording(path, secrets=NO_SECRETS)
    assert (recording.answer(question("one")).text, recording.notes) == ("re: one", [])


def test_file_without_any_recorded_answer_is_error(tmp_path):
    (tmp_path / "r").write_text("name: another file\n")
    with pytest.raises(ConfigurationError, match="No line of this file is a recorded answer"):
        Recording(tmp_path / "r", secrets=NO_SECRETS)


async def test_no_flipped_bit_changes_an_answer_in_silence(tmp_path):
    path = tmp_path / "r"
    texts = ["one", "two", "three"]
    await asked(Remote(), [question(text) for text in texts], path)
    whole = path.read_bytes()
    right = {text: Recording(path, secrets=NO_SECRETS).answer(question(text)) for text in texts}
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        recording = Recording(path, secrets=NO_SECRETS)
        found = {text: recording.answer(question(text)) for text in texts}
        assert all(found[text] in (None, right[text]) for text in texts)
        assert recording.notes or found == right


def test_recording_that_is_a_pipe_is_error(tmp_path):
    os.mkfifo(tmp_path / "r")
    with pytest.raises(ConfigurationError, match="This is a named pipe, not a file"):
        Recording(tmp_path / "r", secrets=NO_SECRETS)


async def test_unwritable_recording_is_error(tmp_path):
    (tmp_path / "folder").write_text("a file")
    replies, opened = await asked(Remote(), [question()], tmp_path / "folder" / "r")
    assert isinstance(replies[0], Answer)
    assert "cannot be written" in str(opened.configuration_error)


@pytest.mark.parametrize("lost", [1, 20])
async def test_recording_is_readable_after_torn_line_and_kill(tmp_path, lost):
    path = tmp_path / "r"
    await asked(Remote(), [question("one"), question("two")], path)
    path.write_bytes(path.read_bytes()[:-lost])
    killed = Recording(path, secrets=NO_SECRETS)
    killed.keep(question("three"), Answer(text="3"))
    # Read while the other is not closed, as after a kill.
    again = Recording(path, secrets=NO_SECRETS)
    killed.close()
    assert again.notes == []
    assert len(again) == (3 if lost == 1 else 2)
    assert again.answer(question("three")).text == "3"


async def test_dry_run_records_nothing(tmp_path):
    path, cache = tmp_path / "r", Cache(tmp_path / "cache.jsonl")
    await asked(Remote(), [question("one")], tmp_path / "other", cache=cache)
    _, opened = await asked(Remote(), [question("one")], path, cache=cache, dry_run=True)
    cache.close()
    assert opened.planned["judge"].calls == 0
    assert not path.exists()


def test_two_writers_of_one_recording_lose_nothing(tmp_path):
    one, other = (Recording(tmp_path / "r", secrets=NO_SECRETS) for _ in range(2))
    one.keep(question("one"), Answer(text="1"))
    other.keep(question("two"), Answer(text="2"))
    one.close()
    other.keep(question("three"), Answer(text="3"))
    other.close()
    assert len(Recording(tmp_path / "r", secrets=NO_SECRETS)) == 3
