"""A first run with the preset of each provider, against a server that behaves like it: scores at the first try."""

from __future__ import annotations

import json

import pytest

from deemster.models.providers import PROVIDERS
from deemster.testing import ModelServer
from deemster.testing.provider_behaviours import BEHAVIOURS
from tests.cli.workspace import called, started, written

KEY = "sk-test-0123456789abcdefXYZ"
SAMPLES = [{"id": f"s{n}", "input": {"question": f"Question {n}?"}, "expected_output": "Paris"} for n in range(12)]
SUITE = """\
dataset: golden.json
target: { outputs: answers.json }
metrics: [llm-as-judge, { llm-as-judge: { name: sure, logprobs: true } }]
models:
  judge: { provider: NAME, model: m-1, base_url: "${URL}", price: { input: 1, output: 2 } }
"""
# What the run says of a model once, because the scores depend on it.
TAKES_NO_TEMPERATURE = "warning: `m-1` takes no temperature: it was asked without, so its answers may vary."
NOTES = {
    "openai": TAKES_NO_TEMPERATURE,
    "azure": TAKES_NO_TEMPERATURE,
    "anthropic": TAKES_NO_TEMPERATURE,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answers = {sample["id"]: f"It is Paris, {sample['id']}." for sample in SAMPLES}
    written(
        tmp_path,
        {
            "golden.json": json.dumps({"name": "towns", "samples": SAMPLES}),
            "answers.json": json.dumps({"outputs": answers}),
        },
    )
    return tmp_path


def verdict(_):
    return '{"reason": "It names the town.", "score": 1}'


def first_run(folder, provider, server, *flags):
    written(folder, {"suite.yml": SUITE.replace("NAME", provider)})
    key = {} if PROVIDERS[provider].api_key_env is None else {PROVIDERS[provider].api_key_env: KEY}
    result = called("run", "suite.yml", *flags, "--to", "report.json", URL=server.url, **key)
    return result, json.loads((folder / "report.json").read_text())


def test_every_preset_has_a_server_that_behaves_like_it():
    assert BEHAVIOURS.keys() == PROVIDERS.keys()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_first_run_scores_every_output(folder, provider):
    with ModelServer(like=provider, answer=verdict) as server:
        result, report = first_run(folder, provider, server)
    assert result.exit_code == 0, result.output
    assert [figures["n_scored"] for figures in report["metrics"].values()] == [12, 12]
    assert not any(figures["n_unscored"] for figures in report["metrics"].values())
    notes = [line for line in result.stderr.splitlines() if " takes no " in line]
    assert notes == ([NOTES[provider]] if provider in NOTES else [])
    assert KEY not in result.output


@pytest.mark.parametrize("provider", PROVIDERS)
def test_server_without_usage_is_no_obstacle(folder, provider):
    with ModelServer(like=provider, answer=verdict, faults={"no-usage": 1}) as server:
        result, report = first_run(folder, provider, server)
    assert result.exit_code == 0, result.output
    assert not any(figures["n_unscored"] for figures in report["metrics"].values())


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_budget_holds_where_reasoning_needs_more_tokens(folder, provider):
    written(folder, {"suite.yml": SUITE.replace("NAME", provider)})
    flags = ("--budget", "50000tokens", "--to", "report.json")
    with ModelServer(like=provider, answer=verdict) as server:
        environ = {"URL": server.url, PROVIDERS[provider].api_key_env: KEY}
        process = started(folder, "run", "suite.yml", *flags, env=environ)
        process.communicate(timeout=60)
    report = json.loads((folder / "report.json").read_text())
    assert (process.returncode, report["budget"]["halted"]) == (3, True)
    assert report["metrics"]["llm-as-judge"]["n_scored"] > 0
    assert report["budget"]["spent_tokens"] <= 50_000


@pytest.mark.parametrize(
    ("provider", "works"),
    [
        ("openai", "JSON by schema, no log-probabilities, no temperature"),
        ("anthropic", "JSON by schema, no log-probabilities, no temperature, no seed"),
        ("deepseek", "JSON, but not by schema, log-probabilities"),
        ("groq", "JSON, but not by schema, no log-probabilities"),
        ("vllm", "JSON by schema, log-probabilities"),
    ],
)
def test_check_says_what_a_model_takes(folder, provider, works):
    written(folder, {"suite.yml": SUITE.replace("NAME", provider)})
    key = {} if PROVIDERS[provider].api_key_env is None else {PROVIDERS[provider].api_key_env: KEY}
    with ModelServer(like=provider, answer=lambda _: '{"ready": true}') as server:
        result = called("check", "suite.yml", URL=server.url, **key)
    assert result.exit_code == 0, result.output
    assert works in " ".join(result.stdout.split())
    reasons = "The model reasons before it answers." in result.stderr
    assert reasons is (BEHAVIOURS[provider].reasons is not None)


RUBRIC = {
    "name": "essay",
    "criteria": [
        {"name": "facts", "requirement": "The facts are right."},
        {
            "name": "depth",
            "requirement": "How deep is it?",
            "options": [{"label": "not", "value": 0}, {"label": "very", "value": 1}],
        },
        {
            "name": "clarity",
            "requirement": "How clear is it?",
            "scale_type": "numeric",
            "minimum": 0,
            "maximum": 10,
            "step": 0.5,
        },
    ],
}
JUDGES = [
    "llm-as-judge",
    "answer-relevancy",
    "completeness",
    {"g-eval": {"name": "manners", "criteria": "Is it polite?"}},
    {"rubric": {"file": "rubric.json", "name": "essay"}},
]


def test_schema_of_every_judge_is_one_that_anthropic_takes(folder):
    suite = {
        "dataset": "golden.json",
        "target": {"outputs": "answers.json"},
        "metrics": JUDGES,
        "models": {"judge": {"provider": "anthropic", "model": "m", "base_url": "${URL}"}},
    }
    written(folder, {"suite.yml": json.dumps(suite), "rubric.json": json.dumps(RUBRIC)})
    with ModelServer(like="anthropic") as server:
        result = called("run", "suite.yml", "--limit", "2", URL=server.url, ANTHROPIC_API_KEY=KEY)
        assert result.exit_code in (0, 3), result.output
        asked = [request.document for request in server.requests]
    assert len(asked) > 10
    assert all("output_config" in document for document in asked)
