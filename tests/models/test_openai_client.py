"""The OpenAI-compatible clients, one attempt at a time, against a real server on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import traceback
from decimal import Decimal

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.models._chat_role import _is_clean
from deemster.models.anthropic_client import AnthropicChat
from deemster.models.http_endpoint import HttpResponse, error_message, redact_url
from deemster.models.model_client import ModelFailure
from deemster.models.openai_client import OpenAIChat, OpenAIEmbedding
from deemster.records import Answer, Ask, Message, Usage
from tests.models.make_requests import asked_in_turn

KEY = "my/own+key=with signs%and 32 letters"
SCHEMA = {"type": "object", "properties": {"reason": {"type": "string"}, "score": {"type": "number"}}}
ASK = Ask(messages=(Message("system", "Judge."), Message("user", "A text.")), schema=SCHEMA)


def answered(server, ask=ASK, fault="ok", **options):
    server.play([fault])
    (result,) = asked_in_turn(OpenAIChat(server.url, "m", **options), ask)
    return result


def embedded(server, texts, fault="ok", **options):
    async def once():
        client = OpenAIEmbedding(server.url, "e", **options)
        try:
            return await client.embed_many(texts)
        except ModelFailure as failure:
            return failure
        finally:
            await client.close()

    server.play([fault])
    return asyncio.run(once())


def test_question_is_sent_completely(server):
    ask = msgspec.structs.replace(ASK, temperature=0.5, seed=7, sample=2, max_tokens=99, logprobs=5)
    answered(server, ask, api_key=KEY, extra={"top_p": 0.9, "user": "ci"})
    (received,) = server.requests
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.document == {
        "model": "m",
        "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": "A text."}],
        "temperature": 0.5,
        "seed": 9,
        "max_tokens": 99,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
        },
        "logprobs": True,
        "top_logprobs": 5,
        "top_p": 0.9,
        "user": "ci",
    }


def test_unset_parameters_are_not_sent(server):
    answered(server, Ask(messages=(Message("user", "Hi."),), seed=None, max_tokens=None), extra={"temperature": None})
    (received,) = server.requests
    assert received.document == {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
    assert "authorization" not in received.headers


FORMS = {
    frozenset(): ["json_schema"],
    frozenset({"json_schema"}): ["json_schema", "json_object"],
    frozenset({"json_schema", "json_object"}): ["json_schema", "json_object", None],
}


@pytest.mark.parametrize("refused", FORMS)
def test_refused_response_format_falls_back_and_is_not_retried(server, refused):
    server.refuses = refused
    first, second = asked_in_turn(OpenAIChat(server.url, "m"), ASK, ASK)
    assert isinstance(first, Answer)
    assert first.text == second.text or refused
    sent = [(request.document.get("response_format") or {}).get("type") for request in server.requests]
    assert sent == [*FORMS[refused], FORMS[refused][-1]]


@pytest.mark.parametrize(
    ("name", "instead"),
    [("logprobs", None), ("seed", None), ("temperature", None), ("max_tokens", "max_completion_tokens")],
)
def test_parameter_refused_by_name_is_not_sent_again(server, name, instead):
    server.refuses = frozenset({name})
    ask = msgspec.structs.replace(ASK, logprobs=2)
    first, second = asked_in_turn(OpenAIChat(server.url, "m"), ask, ask)
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert [name in request.document for request in server.requests] == [True, False, False]
    assert instead is None or server.requests[1].document[instead] == 1024


def test_user_parameters_are_never_dropped(server):
    server.refuses = frozenset({"seed", "logprobs", "temperature"})
    assert answered(server, extra={"seed": 1}).kind == "refused"
    assert answered(server, extra={"temperature": 0.3}).kind == "refused"
    assert answered(server, extra={"logprobs": True}).kind == "refused"


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_limit_of_the_user_is_the_only_one_under_the_name_that_the_endpoint_takes(server, name):
    server.refuses = frozenset({"max_tokens"})
    assert isinstance(answered(server, extra={name: 99}), Answer)
    document = server.requests[-1].document
    assert document["max_completion_tokens"] == 99
    assert "max_tokens" not in document


@pytest.mark.parametrize("status", [400, 422])
def test_refusal_that_names_no_parameter_is_one_request(server, status):
    assert answered(server, msgspec.structs.replace(ASK, logprobs=2), str(status)).status == status
    assert len(server.requests) == 1


@given(st.binary(max_size=200), st.sampled_from([400, 422, 500]))
def test_adaptation_to_endpoint_is_bounded(body, status):
    client = OpenAIChat("http://127.0.0.1:9/v1", "m")
    ask = msgspec.structs.replace(ASK, logprobs=2)
    refusal = b"unknown seed temperature logprobs response_format max_completion_tokens" + body
    for _ in range(7):
        if not client.capabilities.learn(status, refusal, sent=client.request(ask), extra={}):
            break
    else:
        pytest.fail("It still adapts.")


def test_answer_has_usage_and_model(server):
    used = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
        "cost": 0.00012,
    }
    answer = answered(server, fault="merge=" + json.dumps({"usage": used, "model": "m-2026"}))
    assert answer.usage == Usage(
        prompt_tokens=10,
        completion_tokens=5,
        cached_tokens=4,
        reasoning_tokens=3,
        total_tokens=15,
        cost_usd=Decimal("0.00012"),
        model="m-2026",
    )
    assert (answer.model, answer.finish) == ("m-2026", "stop")


@pytest.mark.parametrize("fault", ["bad-usage", "no-usage", 'merge={"usage": null}', 'merge={"usage": [1]}'])
def test_invalid_usage_is_ignored(server, fault):
    answer = answered(server, fault=fault)
    assert answer.usage == Usage(model="m")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_separated_from_answer(server, field):
    answer = answered(server, fault=f'message={{"content": "Yes.", "{field}": "Hm."}}')
    assert (answer.text, answer.thinking) == ("Yes.", "Hm.")


def test_answer_in_parts_is_joined(server):
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Y"}, {"type": "text", "text": "es"}]
    assert answered(server, fault="message=" + json.dumps({"content": parts})).text == "Yes"


def test_refusal_of_model_is_its_answer(server):
    assert answered(server, fault="refusal").text == "I cannot judge this."


def test_log_probabilities_are_read_if_requested_and_offered(server):
    ask = msgspec.structs.replace(ASK, logprobs=3)
    answer = answered(server, ask)
    assert "".join(token.text for token in answer.tokens) == answer.text
    assert {len(token.alternatives) for token in answer.tokens} == {3}
    assert all(token.alternatives[0] == (token.text, token.logprob) for token in answer.tokens)
    assert answered(server).tokens is None
    assert answered(server, ask, "no-logprobs").tokens is None


TROUBLES = {
    "reset": ("transport", None, "The connection was closed before a reply came"),
    "reset-body": ("transport", None, "The reply broke off."),
    "short": ("transport", None, "The reply broke off."),
    "half": ("transport", None, "The reply is no JSON"),
    "not-json": ("transport", None, "The reply is no JSON"),
    "empty": ("transport", None, "The reply is no JSON"),
    "endless": ("transport", None, "No complete reply within 0.25 s."),
    "endless=0.01": ("transport", None, "No complete reply within 0.25 s."),
    "silent": ("transport", None, "No complete reply within 0.25 s."),
    "slow=2": ("transport", None, "No complete reply within 0.25 s."),
    "408": ("transport", 408, "answered 408 Request Timeout"),
    "409": ("transport", 409, "answered 409 Conflict"),
    "425": ("transport", 425, "answered 425 Too Early"),
    "500": ("transport", 500, "answered 500 Internal Server Error: The server had an error."),
    "503": ("transport", 503, "answered 503 Service Unavailable"),
    "529": ("transport", 529, "answered 529: "),
    "429": ("limited", 429, "answered 429 Too Many Requests: Rate limit reached."),
    "quota": ("refused", 429, "insufficient_quota"),
    "307": ("refused", 307, "redirects to /v1/elsewhere, which is not followed"),
    "400": ("refused", 400, "answered 400 Bad Request"),
    "401": ("refused", 401, "Incorrect API key provided: [removed]."),
    "403": ("refused", 403, "answered 403 Forbidden"),
    "404": ("refused", 404, "There is no such model."),
    "413": ("refused", 413, "The request is too large."),
    "422": ("refused", 422, "The request cannot be processed."),
    "list": ("shape", None, "Expected `object`, got `array`"),
    "wrong-shape": ("shape", None, "missing required field `choices`"),
    "error-200": ("shape", None, "The model crashed."),
    "no-choices": ("shape", None, "The reply has no choices."),
    "null-content": ("shape", None, "The reply has no content (finish_reason: stop)."),
    "huge": ("shape", None, "The reply is longer than 4 MB."),
    "deep": ("shape", None, "The reply is nested too deep."),
}


@pytest.mark.parametrize("fault", TROUBLES)
def test_each_fault_is_model_failure_of_its_kind_after_one_request(server, fault):
    kind, status, message = TROUBLES[fault]
    late = fault.startswith(("endless", "silent", "slow"))
    failure = answered(server, fault=fault, api_key=KEY, timeout_s=0.25 if late else 20)
    assert (failure.kind, failure.status) == (kind, status)
    assert message in failure.message
    assert failure.message.startswith("127.0.0.1")
    assert len(server.requests) == 1


def test_model_failure_has_usage_of_unusable_reply(server):
    assert answered(server, fault="null-content").usage.prompt_tokens == 4
    assert answered(server, fault='message={"content": 7}').usage.prompt_tokens == 4


WAITS = {
    "429=2": 2.0,
    "503=1m30s": 90.0,
    "retry-ms=250": 0.25,
    "retry-reset=6m0s": 360.0,
    "429=soon": None,
    "400=5": None,
}


@pytest.mark.parametrize("fault", WAITS)
def test_model_failure_has_retry_after(server, fault):
    assert answered(server, fault=fault).retry_after_s == WAITS[fault]


def test_refused_connection_is_transport_failure():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        (failure,) = asked_in_turn(OpenAIChat(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", "m"), ASK)
    assert failure.kind == "transport"
    assert "No connection" in failure.message


def test_missing_address_hints_at_v1(server):
    (failure,) = asked_in_turn(OpenAIChat(server.url.removesuffix("/v1"), "m"), ASK)
    assert failure.status == 404
    assert "base_url mostly ends with /v1" in failure.message


@pytest.mark.parametrize("field", ["code", "type"])
def test_hard_quota_is_known_by_code_or_type(server, field):
    body = json.dumps({"error": {"message": "You exceeded your quota.", field: "insufficient_quota"}}).encode()
    assert OpenAIChat(server.url, "m")._endpoint.refusal(HttpResponse(429, body, {})).kind == "refused"


def test_without_a_limit_of_its_own_a_client_leaves_time_to_its_caller(server):
    async def limited():
        client = OpenAIChat(server.url, "m")
        try:
            async with asyncio.timeout(0.1):
                await client.complete(ASK)
        finally:
            await client.close()

    server.play(["silent"])
    with pytest.raises(TimeoutError):
        asyncio.run(limited())


def test_error_text_is_shortened_without_control_characters(server):
    failure = answered(server, fault="error-200")
    assert len(failure.message) <= 300
    body = json.dumps({"error": {"message": "\x1b[31mred\u202e" + "x" * 1000}}).encode()
    refusal = OpenAIChat(server.url, "m")._endpoint.refusal(HttpResponse(400, body, {}))
    assert len(refusal.message) == 300
    assert "\x1b" not in refusal.message
    assert "\u202e" not in refusal.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "usage", "model", "logprobs", "data", "embedding", "index"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", [OpenAIChat, AnthropicChat])
@given(body=JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60))
def test_any_body_is_answer_or_model_failure(kind, body):
    client = kind("http://127.0.0.1:9/v1", "m")
    try:
        result = client._answer(body, may_grow=False)
    except ModelFailure as failure:
        result = failure
    assert isinstance(result, Answer) or (result.kind in ("transport", "shape") and result.__context__ is None)


def test_vectors_come_in_the_order_of_their_texts(server):
    texts = ["one", "two words", "three"]
    healthy = embedded(server, texts)
    assert healthy.values.shape == (3, 16)
    assert healthy.values.dtype == np.float32
    assert healthy.usage == Usage(prompt_tokens=6, total_tokens=6, model="e")
    for fault in ("shuffled", "no-index"):
        assert np.array_equal(embedded(server, texts, fault).values, healthy.values)


def test_no_texts_send_no_request(server):
    assert embedded(server, []).values.shape[0] == 0
    assert server.requests == []


def test_vectors_may_come_as_base64(server):
    text = base64.b64encode(np.array([0.5, -2], "<f4").tobytes()).decode()
    fault = "merge=" + json.dumps({"data": [{"embedding": text, "index": 0}]})
    assert embedded(server, ["a"], fault).values.tolist() == [[0.5, -2.0]]
    assert embedded(server, ["a"], 'merge={"data": [{"embedding": "?", "index": 0}]}').kind == "shape"


def test_vector_of_zeros_is_a_vector(server):
    assert not embedded(server, ["a", "b"], "zero").values.any()


VECTORS = {
    "missing": "2 vectors for 3 texts",
    "surplus": "4 vectors for 3 texts",
    "partial-index": "Only 2 of 3 vectors have an index",
    "same-index": "not numbered from 0 to 2",
    "infinite": "wrong shape",
    "overflow": "not finite",
    "null-value": "wrong shape",
    "dimensions": "dimensions 14, 15, 16",
    "empty-vector": "dimensions 0",
}


@pytest.mark.parametrize("fault", VECTORS)
def test_unusable_vectors_are_shape_failure(server, fault):
    failure = embedded(server, ["a", "b", "c"], fault)
    assert failure.kind == "shape"
    assert VECTORS[fault] in failure.message


def test_vector_with_nan_is_invalid_json(server):
    assert embedded(server, ["a"], "nan").kind == "transport"


def test_reply_of_many_long_vectors_is_not_too_long(server):
    server.dimension = 3072
    try:
        assert embedded(server, [f"text {number}" for number in range(100)]).values.shape == (100, 3072)
    finally:
        server.dimension = 16


def test_closed_client_can_be_used_again(server):
    async def asked_twice():
        chat = OpenAIChat(server.url, "m")
        replies = [await chat.complete(ASK)]
        await chat.close()
        await chat.close()
        replies.append(await chat.complete(ASK))
        await chat.close()
        return replies

    assert [type(reply) for reply in asyncio.run(asked_twice())] == [Answer, Answer]


def test_client_serves_one_loop_after_another(server):
    client = OpenAIChat(server.url, "m")
    assert [type(asked_in_turn(client, ASK)[0]) for _ in range(2)] == [Answer, Answer]


@pytest.mark.parametrize(
    "url", ["", "api.openai.com/v1", "ftp://host/v1", "http://", "http://host:99999/v1", "http://[::1"]
)
def test_invalid_address_is_configuration_error(url):
    with pytest.raises(ConfigurationError, match="base_url"):
        OpenAIChat(url, "m")


@pytest.mark.parametrize("key", ["sk-abc\nX-Evil: 1", "schlüssel-geheim", "sk-\x00secret"])
def test_key_invalid_in_header_is_error_without_key(key):
    with pytest.raises(ConfigurationError, match="API key") as caught:
        OpenAIChat("http://127.0.0.1:9/v1", "m", api_key=key)
    assert key not in str(caught.value)


def test_query_of_base_url_is_kept_and_full_address_is_unchanged():
    azure = OpenAIChat("https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21", "m", api_key=KEY)
    assert azure._endpoint.url == (
        "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"
    )
    assert azure._endpoint._headers["api-key"] == KEY
    assert "Authorization" not in azure._endpoint._headers
    assert OpenAIChat("http://h/v1/chat/completions", "m")._endpoint.url == "http://h/v1/chat/completions"


COMPLAINTS = {
    b'{"error": {"message": "No.", "code": "bad"}}': "No. (bad)",
    b'{"error": "No."}': "No.",
    b'{"detail": [{"loc": ["body", "seed"]}]}': '[{"loc":["body","seed"]}]',
    b'[{"error": {"message": "No."}}]': "No.",
    b'{"message": "No."}': "No.",
    b"null": "None",
    b"\xff\xfe": "\ufffd\ufffd",
    b"": "",
    b"[" * 100_000: "[" * 100_000,
}


@pytest.mark.parametrize("body", COMPLAINTS, ids=range(len(COMPLAINTS)))
def test_error_message_of_provider_is_found_in_any_form(body):
    assert error_message(body) == COMPLAINTS[body]


def test_key_is_in_no_name_error_or_traceback(server):
    secret = f"http://user:{'p' * 12}@{server.url.removeprefix('http://')}?key={'q' * 12}"
    client = OpenAIChat(secret, "m", api_key=KEY)
    server.play(["401", "reset", 'merge={"choices": 7}', "307", "text=" + KEY])
    results = asked_in_turn(client, *[ASK] * 5)
    assert [type(result) for result in results] == [ModelFailure] * 4 + [Answer]
    texts = [repr(client), repr(client._endpoint), repr(client.identity), repr(results[-1]), repr(client.secrets)]
    for failure in results[:4]:
        assert failure.__context__ is None
        assert failure.__cause__ is None
        texts += [*traceback.format_exception(failure), repr(vars(failure))]
    for text in texts:
        for hidden in (KEY, "p" * 12, "q" * 12):
            assert hidden not in text
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_credentials_in_address_are_sent_as_header_without_key(server):
    asked_in_turn(OpenAIChat(server.url.replace("http://", "http://user:hunter2hunter2@"), "m"), ASK)
    assert server.requests[0].headers["authorization"] == f"Basic {base64.b64encode(b'user:hunter2hunter2').decode()}"


def test_address_is_shown_without_secrets():
    assert redact_url("https://a:b@host:8/v1?api-version=1&sig=x#f") == "https://host:8/v1?api-version=1&sig=hidden"


def test_addresses_with_different_hidden_parts_differ():
    one, other = (OpenAIChat(f"https://host/v1?tenant={name}", "m").identity for name in ("first-one", "second-one"))
    assert one != other
    assert "first-one" not in repr(one)
    assert (
        OpenAIChat("https://host/v1?api-version=1", "m").identity.keys() == OpenAIChat("https://h", "m").identity.keys()
    )


@pytest.mark.parametrize("kind", [OpenAIChat, OpenAIEmbedding])
def test_secret_in_extra_parameters_is_sent_but_never_shown(server, kind):
    client = kind(server.url, "m", extra={"api_key": KEY, "user": "somebody"})
    server.play([f"429={KEY}", 'merge={"choices": 7, "data": 7}', f"merge={json.dumps({'model': KEY})}"])
    if kind is OpenAIEmbedding:
        client.complete = lambda _: client.embed_many(["a text"])
    first, second, answer = asked_in_turn(client, *[ASK] * 3)
    assert (type(first), type(second), answer.model) == (ModelFailure, ModelFailure, "[removed]")
    for text in map(repr, (client, client.identity, vars(first), vars(second), answer, client.secrets)):
        assert KEY not in text
    assert {request.document["api_key"] for request in server.requests} == {KEY}
    assert client.identity["extra"]["user"] == "somebody"
    assert client.identity != kind(server.url, "m", extra={"api_key": KEY + "x", "user": "somebody"}).identity


def test_empty_truncated_reply_names_max_tokens(server):
    cut = {"index": 0, "message": {"content": None, "reasoning": "Hm, hm"}, "finish_reason": "length"}
    fault = f"merge={json.dumps({'choices': [cut]})}"
    server.play([fault, fault, "null-content"])
    client = OpenAIChat(server.url, "m")
    first, second, other = asked_in_turn(client, ASK, ASK, ASK)
    assert first.message.endswith("It was cut off: its reasoning left too few tokens for the answer.")
    assert second.message.endswith("no content (finish_reason: length). It was cut off: raise `max_tokens`.")
    assert other.message.endswith("no content (finish_reason: stop).")
    assert [request.document["max_tokens"] for request in server.requests] == [1024, 17_408, 17_408]
    assert client.most_tokens(ASK) == 17_408


def test_verdict_that_hidden_reasoning_cut_off_is_asked_for_with_more_tokens(server):
    cut = {"index": 0, "message": {"content": '{"reason": "It'}, "finish_reason": "length"}
    used = {"prompt_tokens": 9, "completion_tokens": 1024, "completion_tokens_details": {"reasoning_tokens": 1000}}
    server.play(["merge=" + json.dumps({"choices": [cut], "usage": used})])
    first, second = asked_in_turn(OpenAIChat(server.url, "m"), ASK, ASK)
    assert (first.kind, first.usage.reasoning_tokens) == ("shape", 1000)
    assert isinstance(second, Answer)


def test_limit_of_free_text_or_of_the_user_does_not_grow(server):
    cut = {"index": 0, "message": {"content": "", "reasoning": "Hm"}, "finish_reason": "length"}
    free = msgspec.structs.replace(ASK, schema=None, max_tokens=9)
    for ask, extra in ((free, {}), (ASK, {"max_tokens": 99})):
        server.play([f"merge={json.dumps({'choices': [cut]})}"] * 2)
        first, second = asked_in_turn(OpenAIChat(server.url, "m", extra=extra), ask, ask)
        assert (first.text, second.text, second.finish) == ("", "", "length")
    assert [request.document["max_tokens"] for request in server.requests] == [9, 9, 99, 99]


@pytest.mark.parametrize("tag", ["think", "reasoning"])
def test_reasoning_in_front_of_the_answer_is_told_apart(server, tag):
    answer = answered(server, fault="message=" + json.dumps({"content": f"<{tag}>\nHm.\n</{tag}>\n\nYes."}))
    assert (answer.text, answer.thinking) == ("Yes.", "\nHm.\n")
    assert answered(server, fault='message={"content": "<b>Yes</b>"}').text == "<b>Yes</b>"


def test_what_a_model_takes_not_is_said_once(server):
    server.refuses = frozenset({"temperature", "seed"})
    client = OpenAIChat(server.url, "m")
    assert client.notes == []
    asked_in_turn(client, ASK, ASK)
    assert client.notes == ["`m` takes no temperature and no seed: it was asked without, so its answers may vary."]


ECHOES = {
    "place": (422, {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": 1}]}, True),
    "nested": (422, {"message": {"detail": [{"loc": ["body", "seed"], "msg": "Not permitted"}]}}, True),
    "list": (400, [{"error": {"code": 400, "message": 'Unknown name "seed": Cannot find field.'}}], True),
    "quoted": (422, {"detail": [{"loc": ["body"], "msg": "Not allowed", "input": {"seed": 1}}]}, False),
    "word": (400, {"error": {"message": "The temperature of the server is high."}}, False),
    "other": (500, {"error": {"message": "Unknown parameter: seed"}}, False),
}


# As providers say it, from threads of 2025 and 2026.
REFUSALS = [
    ("temperature", "Unsupported value: 'temperature' does not support 0.0 with this model. Only 1 is supported."),
    ("temperature", "`temperature` is deprecated for this model."),
    ("temperature", "Argument not supported on this model: temperature"),
    ("temperature", "invalid temperature: only 1 is allowed for this model"),
    ("logprobs", "You are not allowed to request logprobs from this model"),
    ("logprobs", "Unrecognized request argument supplied: logprobs"),
    ("logprobs", "Logprobs is not enabled for models/gemini-2.5-flash-lite"),
    ("response_format", "This response_format type is unavailable now"),
    ("response_format", "This model does not support response format `json_schema`."),
    ("response_format", "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'."),
    (
        "response_format",
        "Unknown name \"additionalProperties\" at 'generation_config.response_schema': Cannot find field.",
    ),
    ("response_format", "'response_format.type' must be 'json_schema' or 'text'"),
    (
        "max_tokens",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.",
    ),
    ("seed", "property 'seed' is unsupported"),
    (None, "This model's maximum context length is 8192 tokens."),
    (None, "temperature must be between 0 and 1"),
    (None, "The prompt was filtered."),
]


@pytest.mark.parametrize(("name", "message"), REFUSALS)
def test_what_providers_say_is_understood(name, message):
    client = OpenAIChat("http://127.0.0.1:9/v1", "m")
    ask = msgspec.structs.replace(ASK, logprobs=2)
    before = client.request(ask)
    body = json.dumps({"error": {"message": message}}).encode()
    assert client.capabilities.learn(400, body, sent=before, extra={}) is (name is not None)
    after = client.request(ask)
    assert {key for key in before if before[key] != after.get(key)} - {"top_logprobs"} == ({name} if name else set())


@pytest.mark.parametrize("name", ECHOES)
def test_refusal_is_learned_from_what_it_says_and_not_from_what_it_quotes(name):
    status, body, learns = ECHOES[name]
    client = OpenAIChat("http://127.0.0.1:9/v1", "m")
    sent = client.request(ASK)
    assert client.capabilities.learn(status, json.dumps(body).encode(), sent=sent, extra={}) is learns
    assert ("seed" in client.request(ASK)) is not learns


def test_long_model_name_is_shortened(server):
    server.play([f'merge={{"model": "{"m" * 100_000}"}}'])

    async def work():
        client = OpenAIChat(server.url, "m")
        try:
            return await client.complete(ASK)
        finally:
            await client.close()

    answer = asyncio.run(work())
    assert answer.model == answer.usage.model == "m" * 256


def test_overriding_subclass_is_not_trusted_as_clean():
    class Own(OpenAIChat):
        async def complete(self, ask):
            return await super().complete(ask)

    class Renamed(OpenAIChat):
        pass

    assert [_is_clean(kind("http://127.0.0.1:9/v1", "m")) for kind in (OpenAIChat, Renamed, Own)] == [True, True, False]
    assert not _is_clean(object())
