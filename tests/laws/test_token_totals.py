"""The tokens of a run are the tokens of the requests that were sent: counted by a real server, whatever is shared.

Tokens of cached and shared calls are a figure of their own. With it, every run of the same work counts the same tokens.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deemster as dm
from deemster.records.usage import count_tokens
from deemster.testing import ModelServer
from deemster.testing.server_replies import completion_reply, embedding_reply, verdict
from tests.builders.arguments import arguments

METRICS = (
    "llm-as-judge",
    {"g-eval": {"name": "depth", "preset": "completeness"}},
    "answer-relevancy",
    "cosine-embedding",
    "bertscore-like",
    "refusal-quality",
)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RUBRIC = [
    {"name": "facts", "weight": 2, "requirement": "All is right."},
    {"name": "tone", "requirement": "It is kind."},
]


class Bill:
    """A server, and the tokens of everything that it answered."""

    def __init__(self):
        self.server = ModelServer(answer=self.answer, logprobs=False)
        self.chats, self.fails = Counter(), True

    def answer(self, messages):
        # Some replies cannot be read, so that the judge is asked again.
        fails = self.fails and sum(json.dumps(messages.body).encode()) % 5 == 0
        text = "no verdict" if fails else verdict(messages, seed=1)
        self.chats.update(completion_reply(messages.body, text, logprobs=False)["usage"]["total_tokens"] * ["chat"])
        self.chats["calls"] += 1
        return text

    def clear(self, *, fails=True):
        self.server.forget()
        self.chats.clear()
        self.fails = fails

    @property
    def total(self):
        embeds = [each.document for each in self.server.requests if each.path.endswith("embeddings")]
        tokens = sum(embedding_reply(each, dimension=1)["usage"]["total_tokens"] for each in embeds)
        return self.chats["calls"] + len(embeds), self.chats["chat"] + tokens

    @property
    def models(self):
        each = {"base_url": self.server.url, "retries": 0, "price": {"input": 1, "output": 1}}
        return {"judge": {**each, "model": "j"}, "embedding": {**each, "model": "e", "batch": 3}}


@pytest.fixture(scope="module")
def bill():
    found = Bill()
    with found.server:
        yield found


def evaluated(bill, numbers, metrics, *, repetitions=1, cache=None, fails=True):
    bill.clear(fails=fails)
    samples = [
        {
            "id": f"s{place}",
            "input": {"question": f"What is {number}?"},
            "expected_output": f"It is {number} of it.",
            "metadata": {"refusal_expected": False},
        }
        for place, number in enumerate(numbers)
    ]
    return dm.evaluate(
        samples,
        target=lambda asked: f"{asked['question'][8:-1]} is what it is.",
        metrics=list(metrics),
        models=bill.models,
        repetitions=repetitions,
        calls=dm.ModelCalls(cache=cache),
    )


def billed(report):
    """Calls and tokens of a report, the same three ways: in all, by metric, by model."""
    usage = report.usage
    tokens = (usage.total.prompt_tokens or 0) + (usage.total.completion_tokens or 0)
    each = usage.by_metric.values()
    assert tokens == sum((part.prompt_tokens or 0) + (part.completion_tokens or 0) for part in each)
    models = () if report.cost is None else report.cost.models
    assert tokens == sum(model.prompt_tokens + model.completion_tokens for model in models)
    assert usage.total.calls == sum(model.calls for model in models)
    assert report.cost is None or report.cost.total_usd * 1_000_000 == tokens
    return usage.total.calls, tokens


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=7),
    st.lists(st.integers(0, 3), max_size=3),
    st.sets(st.integers(0, len(METRICS) - 1), min_size=1, max_size=3),
    st.integers(1, 3),
    st.booleans(),
)
def test_tokens_of_run_are_those_of_requests_sent(bill, numbers, earlier, chosen, repetitions, cached):
    metrics = [METRICS[place] for place in sorted(chosen)]
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "answers.jsonl") if cached else None
        if earlier and cached:
            evaluated(bill, earlier, metrics, cache=cache)
        report = evaluated(bill, numbers, metrics, repetitions=repetitions, cache=cache)
        assert billed(report) == bill.total
        if cached:
            again = evaluated(bill, numbers, metrics, repetitions=repetitions, cache=cache)
            assert bill.total == (0, 0)
            assert (again.cost, again.usage.total.prompt_tokens, again.usage.total.calls) == (None, None, 0)
            # What the second run did not send is what the first sent, or shared.
            first = (report.usage.total.cached_call_tokens or 0) + billed(report)[1]
            assert again.usage.total.cached_call_tokens == first


def test_ten_identical_samples_share_one_call(bill):
    report = evaluated(bill, [1] * 10, ["llm-as-judge"], fails=False)
    calls, tokens = bill.total
    assert billed(report) == (1, tokens) == (calls, tokens)
    assert (report.usage.total.cached_calls, report.usage.total.cached_call_tokens) == (9, 9 * tokens)
    text = report.to_markdown()
    assert "cache hit tokens" in text
    assert f"{9 * tokens:,}" in text


@pytest.mark.parametrize("cached", [False, True])
def test_stopped_and_resumed_run_counts_the_tokens_of_both_parts(bill, tmp_path, cached):
    samples = [{"id": f"s{n}", "input": {"question": f"Q{n % 5}?"}, "expected_output": "x"} for n in range(12)]
    options = {
        "target": lambda asked: f"{asked['question']} x",
        "metrics": ["llm-as-judge", "bertscore-like"],
        "models": {name: {**entry, "concurrency": 1} for name, entry in bill.models.items()},
        "where": tmp_path / "runs.db",
        "cache": tmp_path / "answers.jsonl" if cached else None,
    }
    bill.clear()
    first = dm.evaluate(samples, **arguments(budget_tokens=5_000, **options))
    assert first.run.status == "incomplete"
    assert billed(first) == bill.total
    whole = dm.evaluate(samples, **arguments(resume=True, **options))
    assert whole.run.status == "complete"
    assert billed(whole) == bill.total
    assert billed(whole)[1] > billed(first)[1]


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=6), st.sampled_from(["per_criterion", "per_item"]), st.booleans()
)
def test_tokens_of_grading_are_those_of_requests_sent(bill, numbers, calls, cached):
    data = dm.RubricDataset([{"submission": f"Text {number}."} for number in numbers], rubric={"criteria": RUBRIC})
    # Judges of one role share the calls; the other one asks for itself.
    judges = [dm.Judge("a", "judge"), dm.Judge("b", "judge"), dm.Judge("c", "other")]
    grader = dm.CriterionGrader(judges, calls=calls)
    models = {"judge": bill.models["judge"], "other": {**bill.models["judge"], "model": "o"}}
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "answers.jsonl") if cached else None
        bill.clear()
        grading = dm.grade(data, grader, models=models, calls=dm.ModelCalls(cache=cache))
        usage = grading.usage
        assert (usage.calls, count_tokens(usage, 0)) == bill.total
        assert grading.cost_usd * 1_000_000 == usage.prompt_tokens + usage.completion_tokens == usage.total_tokens
        if cached:
            bill.clear()
            again = dm.grade(data, grader, models=models, calls=dm.ModelCalls(cache=cache)).usage
            assert bill.total == (0, 0)
            first = usage.total_tokens + (usage.cached_call_tokens or 0)
            assert (again.calls, again.total_tokens, again.cached_call_tokens) == (0, None, first)


@pytest.mark.parametrize("cached", [False, True])
def test_tokens_of_improvement_are_those_of_requests_sent(bill, tmp_path, cached):
    bill.clear()
    models = {"judge": bill.models["judge"], "writer": {**bill.models["judge"], "model": "w"}}
    # Every submission stands there three times, so that verdicts on it share a call.
    items = [
        {
            "id": f"i{number}",
            "submission": f"Text {number // 3}.",
            "ground_truth": ["MET" if number % 2 else "UNMET"] * 2,
        }
        for number in range(60)
    ]
    rubric = dm.Rubric.parse(json.dumps({"criteria": RUBRIC}))
    grader = dm.CriterionGrader([dm.Judge("a", "judge"), dm.Judge("b", "judge")])
    options = {"cache": tmp_path / "answers.jsonl"} if cached else {}
    found = dm.improve_rubric(
        rubric,
        dm.RubricDataset(items, rubric=rubric),
        grader,
        models=models,
        settings=dm.grading.ImprovementSettings("writer", rounds=1),
        **arguments(**options),
    )
    calls, tokens = bill.total
    assert calls
    assert (found.usage.calls, found.usage.total_tokens) == (calls, tokens)
    assert found.usage.cached_call_tokens > 0
