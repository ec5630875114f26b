"""`deemster check` of models: one small request for each role, and advice for every failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from deemster.testing import ModelServer
from tests.cli.workspace import ANSWERS, GOLDEN, called, written

KEY = "sk-test-0123456789abcdefXYZ"
HEAD = "dataset: golden.yml\ntarget: { outputs: answers.yml }\n"
READY = '{"ready": true}'
JUDGE = "{ base_url: '${URL}', model: toy-1, api_key_env: TOY_KEY, price: { input: 1, output: 2 } }"
CLIENTS = """\
from deemster.models import ModelFailure
from deemster.records import Answer

class Good:
    is_local = True

    def complete(self, ask):
        return Answer(text='{"ready": true}', model="mine-1")

class Bad:
    async def complete(self, ask):
        raise RuntimeError("no\\x1b[31m luck")

class Vector:
    def embed_many(self, texts):
        return [[1.0, 2.0, 3.0] for _ in texts]
"""


@pytest.fixture(scope="module")
def running_server():
    with ModelServer(answer=lambda _: READY) as server:
        yield server


@pytest.fixture
def server(server, folder, monkeypatch):
    monkeypatch.setenv("URL", server.url)
    monkeypatch.setenv("TOY_KEY", KEY)
    written(folder, {"golden.yml": GOLDEN, "answers.yml": ANSWERS, "clients.py": CLIENTS})
    return server


def checked(models=None, *, metrics="[llm-as-judge]", code=0, **env):
    """The output of the check: its table by role, and its explanations."""
    section = "" if models is None else "models:\n" + "".join(f"  {name}: {entry}\n" for name, entry in models.items())
    written(Path(), {"suite.yml": f"{HEAD}metrics: {metrics}\n{section}"})
    result = called("check", "suite.yml", **env)
    assert result.exit_code == code, result.output
    table = result.stdout.partition("\nrole  ")[2]
    rows = {line.split("  ")[0]: " ".join(line.split()) for line in table.splitlines()[1:]}
    return rows, result.stderr


def test_working_model_is_listed_with_capabilities(server):
    rows, said = checked({"judge": JUDGE})
    assert rows == {"judge": "judge toy-1 JSON by schema, log-probabilities - 16 + 4 $0.000024"}
    assert said == ""
    (request,) = server.requests
    assert request.document["response_format"]["type"] == "json_schema"
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("refuses", "works"),
    [
        (["json_schema"], "JSON, but not by schema, log-probabilities"),
        (["json_schema", "json_object"], "JSON in plain text, log-probabilities"),
        (["logprobs"], "JSON by schema, no log-probabilities"),
    ],
)
def test_missing_capabilities_of_server_are_found(server, refuses, works):
    server.refuses = frozenset(refuses)
    assert works in checked({"judge": JUDGE})[0]["judge"]


def test_ignored_logprobs_request_means_no_log_probabilities(server):
    server.logprobs = False
    assert "JSON by schema, no log-probabilities" in checked({"judge": JUDGE})[0]["judge"]


def test_server_failing_on_logprobs_is_asked_without(server):
    server.play(["500"])
    assert "log-probabilities" in checked({"judge": JUDGE})[0]["judge"]
    assert ["logprobs" in request.document for request in server.requests] == [True, False]


def test_embedding_model_is_listed_with_dimension(server):
    rows, _ = checked({"embedding": "{ base_url: '${URL}', model: e-1 }"}, metrics="[exact-match]")
    assert rows["embedding"].startswith("embedding e-1 vectors of dimension 16")
    assert rows["embedding"].endswith("unknown")


def test_custom_clients_and_embedded_models_are_checked(server):
    entries = {"judge": "{ client: 'clients:Good' }", "embedding:mine": "{ client: 'clients:Vector' }"}
    rows, _ = checked({**entries, "embedding": "{ embedded: true }"})
    assert rows["judge"] == "judge mine-1 JSON, no log-probabilities - - free"
    assert "vectors of dimension 3" in rows["embedding:mine"]
    assert "vectors of dimension 256" in rows["embedding"]
    assert rows["embedding"].endswith("free")
    assert server.requests == []


def test_replay_role_is_not_asked(server, tmp_path):
    written(tmp_path, {"recorded.jsonl": ""})
    rows, _ = checked({"judge": "{ replay: recorded.jsonl }"})
    assert "answers from a recording" in rows["judge"]


def test_check_does_not_change_recording(server, tmp_path):
    checked({"judge": "{ base_url: '${URL}', model: m, record: recorded.jsonl }"})
    assert not (tmp_path / "recorded.jsonl").exists()
    assert not (tmp_path / ".deemster").exists()


CUT_OFF = '{"choices": [{"message": {"role": "assistant", "content": null}, "finish_reason": "length"}]}'
FAILURES = [
    ("401", "answered 401 Unauthorized", "The key in TOY_KEY is not accepted."),
    ("402", "answered 402", "no credit left"),
    ("403", "answered 403 Forbidden", "may not use this model"),
    ("404", "There is no such model.", "Either no model there is called `toy-1`, or `base_url` is wrong."),
    ("quota", "quota", "no credit left"),
    ("429", "answered 429", "set `rpm` and `tpm`"),
    ("503", "overloaded", "the server's own failure"),
    ("413", "answered 413", "`extra: {name: null}`"),
    ("307", "redirects to", "Write the address it redirects to"),
    ("not-json", "no JSON", "does not speak the OpenAI protocol"),
    ("wrong-shape", "wrong shape", "does not speak the OpenAI protocol"),
    ("reset", "The connection was closed before a reply came", "If it speaks TLS, `base_url` begins with https://."),
    (f"merge={CUT_OFF}", "It was cut off", "A model that reasons needs more room for it: `extra: {max_tokens: 4096}`"),
    ("text=Of course! I am ready.", "It answers, but not with JSON", "take a model that follows such an order"),
]


@pytest.mark.parametrize(("fault", "message", "advice"), FAILURES, ids=[fault for fault, *_ in FAILURES])
def test_failure_is_reported_with_advice(server, fault, message, advice):
    server.play([fault] * 4)
    rows, said = checked({"judge": JUDGE}, code=2)
    assert rows["judge"] == "judge toy-1 cannot be used - - -"
    assert message in said
    assert advice in said
    assert KEY not in said


def test_refused_connection_is_reported(server):
    _, said = checked({"judge": "{ base_url: 'http://127.0.0.1:9/v1', model: m }"}, code=2)
    assert "judge: 127.0.0.1: No connection: " in said
    assert "Look whether the server runs" in said


def test_server_without_tls_is_reported(server):
    _, said = checked({"judge": f"{{ base_url: '{server.url.replace('http', 'https')}', model: m }}"}, code=2)
    assert "judge: 127.0.0.1: No connection by TLS: " in said
    assert "`base_url` begins with http:// and not https://." in said


def test_proxy_that_cannot_be_reached_is_named_without_its_password(server):
    proxy = {"http_proxy": "http://me:hush-hush@127.0.0.1:9", "HTTP_PROXY": None, "NO_PROXY": None, "no_proxy": None}
    _, said = checked({"judge": "{ base_url: 'http://model.test/v1', model: m }"}, code=2, **proxy)
    assert "model.test: No connection to the proxy 127.0.0.1:9, which the environment names: " in said
    assert "NO_PROXY the hosts that are reached without one." in said
    assert "hush" not in said


def test_role_of_wrong_kind_is_unusable(server):
    _, said = checked({"judge": "{ base_url: '${URL}', model: m, kind: embedding }"}, code=2)
    assert "The role `judge` embeds, and it is asked to chat" in said
    assert server.requests == []


def test_base_url_without_v1_is_reported(server):
    _, said = checked({"judge": f"{{ base_url: '{server.url.removesuffix('/v1')}', model: m }}"}, code=2)
    assert "Most servers have it under /v1: `base_url: .../v1`." in said


def test_hanging_server_is_abandoned(server):
    server.play(["silent"])
    _, said = checked({"judge": "{ base_url: '${URL}', model: m, timeout_s: 0.05 }"}, code=2)
    assert "If the model is only slow, raise `timeout_s`." in said


@pytest.mark.parametrize(
    ("entry", "advice"),
    [
        (JUDGE.replace("TOY_KEY", "NO_SUCH_KEY"), "No key was sent, for NO_SUCH_KEY is not set"),
        ("{ base_url: '${URL}', model: m }", "Name the variable that holds it: `api_key_env: OPENAI_API_KEY`."),
    ],
)
def test_refused_request_without_key_names_api_key_env(server, entry, advice):
    server.play(["401"])
    assert advice in checked({"judge": entry}, code=2)[1]


def test_invalid_role_does_not_hide_others(server):
    entries = {
        "judge": JUDGE,
        "judge:far": "{ base_url: 'https://models.invalid/v1', model: m, api_key_env: NO_SUCH_KEY }",
        "judge:mine": "{ client: 'clients:Bad' }",
    }
    rows, said = checked(entries, code=2)
    assert "JSON by schema" in rows["judge"]
    assert {name for name, row in rows.items() if "cannot be used" in row} == {"judge:far", "judge:mine"}
    assert "judge:far: suite.yml:6: The environment has no variable `NO_SUCH_KEY`" in said
    assert "  Set it first: export NO_SUCH_KEY=..." in said
    assert r"judge:mine: RuntimeError: no\x1b[31m luck" in said
    assert "Look at the client `clients:Bad`." in said


def test_missing_role_is_an_issue(server):
    _, said = checked(None, code=2)
    assert "Write `models: {judge: {provider: openai, model: ...}}`." in said


def test_suite_without_models_is_reported(server):
    written(Path(), {"suite.yml": f"{HEAD}metrics: [exact-match]\n"})
    result = called("check", "suite.yml")
    assert (result.exit_code, result.stdout.count("\n")) == (0, 1)


def test_offline_no_model_is_asked(server):
    written(Path(), {"suite.yml": f"{HEAD}metrics: [llm-as-judge]\nmodels: {{ judge: {JUDGE} }}\n"})
    result = called("check", "suite.yml", "--offline")
    assert (result.exit_code, server.requests) == (0, [])
    assert "role" not in result.stdout


@pytest.mark.parametrize("section", ["[judge]", "judge", "3"])
def test_models_section_that_is_not_a_map_is_bad_input(server, tmp_path, section):
    written(tmp_path, {"suite.yml": f"{HEAD}metrics: [llm-as-judge]\nmodels: {section}\n"})
    result = called("check", "suite.yml")
    assert result.exit_code == 2
    assert "`models` is a map of roles" in result.stderr


def test_latency_of_reply_is_shown(server):
    rows, _ = checked({"judge": JUDGE}, SOURCE_DATE_EPOCH=None)
    assert " ms " in rows["judge"]


def test_file_with_only_models_is_accepted(server):
    written(Path(), {"models.yml": f"models:\n  judge: {JUDGE}\n"})
    result = called("check", "models.yml")
    assert result.exit_code == 0, result.output
    assert "judge  toy-1" in result.stdout
    assert len(server.requests) == 1


@pytest.mark.parametrize("text", ["metrics: []\ndataset: golden.yml\n", "models:\n", "models: {}\n"])
def test_file_without_models_must_be_a_suite(server, text):
    written(Path(), {"suite.yml": text})
    result = called("check", "suite.yml")
    assert result.exit_code == 2
    assert "`metrics` is a list of at least one metric" in result.stderr


def test_advice_knows_the_key_of_a_preset(server, tmp_path):
    server.play(["401"])
    _, said = checked({"judge": "{ provider: groq, base_url: '${URL}', model: m }"}, code=2, GROQ_API_KEY=KEY)
    assert "The key in GROQ_API_KEY is not accepted." in said
    _, said = checked({"judge": "{ provider: groq, model: m }"}, code=2)
    assert "Set it first: export GROQ_API_KEY=..." in said
