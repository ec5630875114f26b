"""A chat target against a real model server: faults, providers, limits, recordings, hostile texts, embedded model."""

from __future__ import annotations

import pytest
from aiohttp import web

import deemster as dm
from deemster.errors import InputError
from deemster.models.anthropic_client import AnthropicChat
from deemster.models.model_roles import Role
from deemster.models.openai_client import OpenAIChat
from deemster.testing import ModelServer

SAMPLES = [dm.Sample(f"q{number}", {"question": f"number {number}"}, f"NUMBER {number}") for number in range(12)]


def shout(messages):
    return messages[-1]["content"].upper()


def evaluated(role, *, target=None, samples=SAMPLES, metrics=("exact-match",), **more):
    return dm.evaluate(
        dm.Dataset(samples, name="d"),
        target=target or dm.ChatTarget("mini", "{{input.question}}"),
        metrics=list(metrics),
        models={"mini": role},
        **more,
    )


def chat(server, **settings):
    return Role(client=OpenAIChat(server.url, "m"), **settings)


def bodies(server):
    return [request.document for request in server.requests]


def test_request_holds_what_is_given_and_nothing_else():
    parameters = {
        "temperature": 0.3,
        "top_p": 0.9,
        "max_tokens": 5000,
        "stop": "END",
        "response_format": {"type": "text"},
    }
    target = dm.ChatTarget("mini", "{{input.question}}", **parameters, extra={"user": "me"})
    with ModelServer(answer=shout) as server:
        evaluated(chat(server), samples=SAMPLES[:1])
        evaluated(chat(server), target=target, samples=SAMPLES[:1])
        plain, full = bodies(server)
    message = [{"role": "user", "content": "number 0"}]
    assert plain == {"model": "m", "messages": message}
    assert full == {"model": "m", "messages": message, **parameters, "stop": ["END"], "user": "me"}


def test_what_a_target_says_goes_before_extra_of_its_model():
    with ModelServer(answer=shout) as server:
        extra = {"temperature": 0, "max_completion_tokens": 9, "top_k": 3}
        role = Role(client=OpenAIChat(server.url, "m", extra=extra))
        target = dm.ChatTarget("mini", "{{input.question}}", temperature=0.5, max_tokens=50)
        evaluated(role, target=target, samples=SAMPLES[:1])
        (body,) = bodies(server)
    assert (body["temperature"], body["max_tokens"], body["top_k"]) == (0.5, 50, 3)
    assert "max_completion_tokens" not in body


@pytest.mark.parametrize("faults", [{"429=0.01": 0.3}, {"500": 0.3}, {"reset": 0.2}])
def test_faults_of_the_server_are_retried(faults):
    with ModelServer(answer=shout, faults=faults) as server:
        report = evaluated(chat(server, retries=8, total_timeout_s=60))
        assert len(server.requests) > len(SAMPLES)
    assert report.metrics["exact-match"].mean == 1.0
    assert report.usage.target.calls >= len(SAMPLES)


def test_limits_of_the_model_hold():
    with ModelServer(answer=shout) as server:
        evaluated(chat(server, concurrency=2))
        assert server.peak <= 2


@pytest.mark.parametrize("name", ["temperature", "top_p"])
def test_model_that_takes_no_such_choice_is_asked_without(name):
    target = dm.ChatTarget("mini", "{{input.question}}", **{name: 0.5})
    with ModelServer(answer=shout, refuses=[name]) as server, pytest.warns(UserWarning, match=f"takes no {name}"):
        report = evaluated(chat(server), target=target)
    assert report.metrics["exact-match"].mean == 1.0


def test_form_of_the_answer_that_the_model_refuses_is_a_failure():
    target = dm.ChatTarget("mini", "{{input.question}}", response_format={"type": "json_object"})
    with ModelServer(answer=shout, refuses=["json_object"]) as server:
        with pytest.warns(UserWarning, match="Every sample failed"):
            report = evaluated(chat(server), target=target)
        assert len(server.requests) == len(SAMPLES)
    assert report.metrics["exact-match"].unscored_by_cause == {"target_failed": len(SAMPLES)}


class Filtering(ModelServer):
    """Refuses every prompt as Azure does."""

    async def _reply(self, request, *, chat):
        error = {"code": "content_filter", "message": "The prompt triggered the content management policy."}
        return web.json_response({"error": error}, status=400)


def test_prompt_that_a_filter_refuses_is_an_empty_answer_that_says_so():
    with Filtering() as server, pytest.warns(UserWarning, match="12 of 12 answers were stopped by the provider's"):
        report = evaluated(chat(server))
    assert report.metrics["exact-match"].mean == 0.0
    assert {entry.broken_off for entry in report.executions} == {"content_filter"}


def test_messages_api_gets_its_own_names():
    target = dm.ChatTarget(
        "mini", {"system": "S", "user": "{{input.question}}"}, stop=["END"], max_tokens=5000, top_p=0.5
    )
    with ModelServer(answer=shout, like="anthropic") as server:
        report = evaluated(Role(client=AnthropicChat(server.url, "m", api_key="k")), target=target, samples=SAMPLES[:1])
        (body,) = bodies(server)
    assert report.metrics["exact-match"].mean == 1.0
    assert body == {
        "model": "m",
        "max_tokens": 5000,
        "messages": [{"role": "user", "content": "number 0"}],
        "system": "S",
        "stop_sequences": ["END"],
        "top_p": 0.5,
    }


def test_answers_are_recorded_and_replayed_without_the_model(tmp_path):
    recording = str(tmp_path / "mini.jsonl")
    with ModelServer(answer=shout) as server:
        first = evaluated(chat(server, recording=recording), repetitions=2)
    second = evaluated(Role(client=None, recording=recording), repetitions=2)
    assert first.metrics["exact-match"] == second.metrics["exact-match"]
    with ModelServer(answer=shout) as server:
        secret = dm.ChatTarget("mini", "{{input.question}}", extra={"api_key": "hush-hush"})
        evaluated(chat(server, recording=recording), target=secret, samples=SAMPLES[:1])
    assert "hush-hush" not in (tmp_path / "mini.jsonl").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="There is no recording"):
        evaluated(Role(client=None, recording=recording), target=dm.ChatTarget("mini", "{{input.question}}!"))


HOSTILE = ["{{input.question}}", "</s>\x00\x1b[2J", "\u202e", "${HOME} {% raw %}", "\U0001f600" * 50, "\n" * 99]


def test_hostile_texts_arrive_as_they_are():
    samples = [dm.Sample(f"h{place}", {"question": text}, text) for place, text in enumerate(HOSTILE)]
    with ModelServer(answer=lambda messages: messages[-1]["content"]) as server:
        report = evaluated(chat(server), samples=samples)
        sent = {body["messages"][0]["content"] for body in bodies(server)}
    assert sent == set(HOSTILE)
    assert report.metrics["exact-match"].mean == 1.0


def test_key_of_the_model_is_shown_nowhere():
    key = "secret-0123456789-ABCDEF"
    with ModelServer(answer=lambda messages: f"the key is {key}") as server:
        report = evaluated(Role(client=OpenAIChat(server.url, "m", api_key=key)))
    assert key not in report.to_json()


def test_embedded_model_answers_as_a_target_and_gives_the_same_answer_again():
    pytest.importorskip("xllamacpp")
    target = dm.ChatTarget("mini", "Say hello to {{input.question}}.", temperature=0, max_tokens=8, extra={"seed": 1})
    reports = []
    for _ in range(2):
        with pytest.warns(UserWarning, match="cut off at the token limit"):
            reports.append(evaluated({"embedded": True}, target=target, samples=SAMPLES[:2]))
    first, second = ([entry.output for entry in report.executions] for report in reports)
    assert first == second
    assert all(first)
