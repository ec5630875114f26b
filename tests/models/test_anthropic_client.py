"""The client of Anthropic's Messages API, against a real server on loopback that speaks it."""

from __future__ import annotations

import json

import pytest

from deemster.models import AnthropicChat
from deemster.records import Ask, Message, Usage
from deemster.testing import ModelServer
from tests.models.make_requests import asked_in_turn

KEY = "sk-ant-0123456789abcdef"
SCHEMA = {
    "type": "object",
    "properties": {
        "minimum": {"type": "number", "minimum": 0, "maximum": 1},
        "steps": {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 2},
        "either": {"anyOf": [{"type": "integer", "maximum": 3}, {"type": "null"}]},
    },
    "required": ["minimum"],
}
MESSAGES = (Message("system", "Judge."), Message("user", "A text."), Message("system", "In JSON."))
ASK = Ask(messages=MESSAGES, schema=SCHEMA, logprobs=3)


@pytest.fixture
def server():
    with ModelServer(like="anthropic", answer=lambda messages: messages[0]["content"]) as server:
        yield server


def asked(server, *asks, **options):
    """What comes of each question, one after the other: an answer or the failure it ran into."""
    return asked_in_turn(AnthropicChat(server.url, "claude", api_key=KEY, **options), *asks)


def test_question_is_sent_in_the_form_of_the_api(server):
    server.refuses = frozenset()
    first, second = asked(server, ASK, ASK, extra={"top_k": None})
    assert "It was cut off" in first.message
    assert (second.text, second.thinking, second.finish) == ("Judge.\n\nIn JSON.", "I compare both.", "stop")
    received = server.requests[0]
    assert received.path == "/v1/messages"
    assert (received.headers["x-api-key"], received.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in received.headers
    assert received.document == {
        "model": "claude",
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": "A text."}],
        "temperature": 0.0,
        "system": "Judge.\n\nIn JSON.",
        "output_config": {
            "format": {
                "type": "json_schema",
                "schema": {
                    "type": "object",
                    "properties": {
                        "minimum": {"type": "number"},
                        "steps": {"type": "array", "items": {"type": "string"}},
                        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    },
                    "required": ["minimum"],
                    "additionalProperties": False,
                },
            }
        },
    }


def test_answer_without_a_limit_has_the_one_that_the_api_wants(server):
    (answer,) = asked(server, Ask(messages=MESSAGES, max_tokens=None))
    assert answer.text == "Judge.\n\nIn JSON."
    assert [request.document["max_tokens"] for request in server.requests] == [16_384, 16_384]
    assert ["temperature" in request.document for request in server.requests] == [True, False]
    assert "output_config" not in server.requests[0].document


def test_tokens_of_its_cache_count_as_sent(server):
    usage = {"input_tokens": 5, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 7, "output_tokens": 9}
    server.play([f"merge={json.dumps({'usage': usage, 'model': 'claude-2026'})}"])
    server.refuses = frozenset()
    (answer,) = asked(server, Ask(messages=MESSAGES, max_tokens=5000))
    assert answer.usage == Usage(prompt_tokens=52, completion_tokens=9, cached_tokens=40, model="claude-2026")


def test_refused_schema_is_asked_for_in_plain_words(server):
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "output_config: Not supported."}}
    client = AnthropicChat(server.url, "claude")
    assert client.capabilities.learn(400, json.dumps(refusal).encode(), sent=client.request(ASK), extra={})
    assert "output_config" not in client.request(ASK)


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("401", "refused", "answered 401"),
        ("529", "transport", "answered 529"),
        ("not-json", "transport", "no JSON"),
        ('merge={"content": []}', "shape", "no content (finish_reason: stop)"),
        ('merge={"content": 7}', "shape", "wrong shape"),
    ],
)
def test_fault_is_model_failure_without_the_key(server, fault, kind, said):
    server.refuses = frozenset()
    server.play([fault])
    (failure,) = asked(server, Ask(messages=MESSAGES, max_tokens=5000))
    assert (failure.kind, said in failure.message) == (kind, True)
    assert KEY not in failure.message
