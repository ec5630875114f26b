"""A run makes as many requests as its dry run says: for every metric that asks a model, whatever the model answers."""

from __future__ import annotations

import asyncio
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deemster as dm
from deemster.engine.model_access import build_model_access
from deemster.evaluation.dry_run import plan_job_calls
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.grading.grade_dataset import plan_grading_calls
from deemster.judges._metric_table import PRESETS, TABLE
from deemster.judges.judge_cascade import Cascade
from deemster.models import FakeChat, FakeEmbedding, Role
from deemster.records import Answer, Ask, MetricScore, Output, Token

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
OPTIONS = [
    {"label": "none", "value": 0},
    {"label": "n-a", "na": True},
    {"label": "some", "value": 0.5},
    {"label": "all", "value": 1},
]
RUBRIC = {
    "criteria": [
        {"name": "facts", "requirement": "All is right."},
        {"name": "depth", "requirement": "How deep is it?", "options": OPTIONS},
        {
            "name": "shown",
            "requirement": "It is shown.",
            "check": {"metric": "claim-faithfulness", "args": {"max_claims": 3}},
        },
    ]
}
CASCADE = {"judges": ["judge", "strong"], "cascade": {"unsure_below": 0.9}}


class TwoRounds:
    """A metric of the user's own, with a second round for each entry of the first reply."""

    name = "two-rounds"
    roles = ("judge",)
    most_listed = 4

    def script(self, sample, output):
        schema = {"type": "object", "properties": {"parts": {"type": "array", "items": {"type": "string"}}}}
        (reply,) = yield [Ask(messages=(dm.records.Message("user", output.text),), schema=schema)]
        parts = json.loads(reply.text)["parts"][:4] if reply.text.startswith("{") else []
        if parts:
            yield [Ask(messages=(dm.records.Message("user", f"{sample.id} {part}"),)) for part in parts]
        return MetricScore(1.0)


SPECS = {
    **{name: {name: {}} for name in (*TABLE["judge"], *TABLE["semantic"]) if name not in ("g-eval", "rubric")},
    **{preset: preset for preset in PRESETS},
    "panel": {"llm-as-judge": {"name": "panel", "models": ["judge", "strong"], "samples": 2}},
    "g-eval": {"g-eval": {"name": "depth", "criteria": "Is it deep?"}},
    "refusal": {"g-eval": {"name": "firm", "preset": "completeness", "refusal_check": True}},
    "few-claims": {"claim-faithfulness": {"name": "few", "max_claims": 3}},
    "rubric": {"rubric": {"rubric": RUBRIC}},
    "per-item": {"rubric": {"rubric": RUBRIC, "calls": "per_item", "name": "whole"}},
    "cascade": {"rubric": {"rubric": RUBRIC, "name": "cascade", **CASCADE}},
    "cascade-of-items": {"rubric": {"rubric": RUBRIC, "name": "cascades", "calls": "per_item", **CASCADE}},
    "two-rounds": TwoRounds(),
}


def test_every_judge_of_the_catalog_is_covered():
    assert {*TABLE["judge"], *PRESETS} <= set(SPECS)


class Model:
    """Answers at random, in the form that is asked for."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def __call__(self, ask):
        if ask.schema is None:
            return "Yes."
        # Some replies cannot be read, and are asked for again. The second reply can: without one, a later round may be
        # left out, and fewer requests are made than the least.
        is_unreadable = not ask.again and self.random.random() < 0.2
        text = "..." if is_unreadable else json.dumps(self.value(ask.schema))
        chance = self.random.choice([0.0, -0.01, -2.0])
        tokens = tuple(Token(letter, chance, ((letter, chance),)) for letter in text) if ask.logprobs else None
        return Answer(text=text, tokens=tokens)

    def value(self, schema):
        pick = self.random
        if "anyOf" in schema:
            return self.value(pick.choice(schema["anyOf"]))
        if "enum" in schema:
            return pick.choice(schema["enum"])
        kind = schema["type"]
        if kind == "object":
            return {name: self.value(each) for name, each in schema["properties"].items()}
        if kind == "array":
            kinds = schema["items"].get("anyOf") or [schema["items"]] * pick.choice([1, 2, 3])
            return [self.value(each) for each in kinds]
        if kind == "boolean":
            return pick.random() < 0.5
        if kind == "string":
            return f"Text {pick.randrange(10**9)}."
        low, high = schema.get("minimum", 0), schema.get("maximum", 1)
        return pick.randint(low, high) if kind == "integer" else round(low + pick.random() * (high - low), 2)


def models(seed):
    model = Model(seed)
    return {
        **{role: Role(client=FakeChat(model, is_local=False, identity={"m": role})) for role in ("judge", "strong")},
        "embedding": Role(client=FakeEmbedding(is_local=False), kind="embedding", batch=3),
    }


def requests(roles):
    return {role: len(entry.client.asked) for role, entry in roles.items()}


def within(planned, roles):
    counts = requests(roles)
    for role, count in counts.items():
        if role not in planned.roles:
            assert not count
            continue
        least, most = planned.roles[role]
        assert least.calls <= count <= most.calls, (role, least.calls, count, most.calls)


def job(name, seed, *, numbers, repetitions, with_context):
    samples = [
        {
            "id": f"s{place}",
            "input": {"question": f"What is {number}?", **({"context": ["It is so."]} if with_context else {})},
            "expected_output": f"It is {number}.",
            "metadata": {"refusal_expected": False, "baseline_output": "It is not."},
        }
        for place, number in enumerate(numbers)
    ]

    def target(asked):
        # What is embedded depends on the words of the answer, so that the dry run's stand-in must be right.
        number = asked["question"].split()[-1][:-1]
        text = f"It is {number}." if name in TABLE["semantic"] else f"The answer is {number}, is it not?"
        return Output(text, retrieved=[{"id": "p", "text": "A passage."}])

    roles = models(seed)
    built = resolve_arguments(samples, target=target, metrics=[SPECS[name]], models=roles, repetitions=repetitions)
    options = {"metrics": [SPECS[name]], "models": roles, "repetitions": repetitions}
    return built, roles, lambda: dm.evaluate(samples, target=target, **options)


@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(1, 2), st.booleans())
def test_requests_of_run_are_in_range_of_dry_run(name, seed, numbers, repetitions, with_context):
    built, roles, run = job(name, seed, numbers=numbers, repetitions=repetitions, with_context=with_context)
    planned = asyncio.run(plan_job_calls(built))
    assert not any(requests(roles).values())
    assert any(plan.least.calls for plan in planned.roles.values())
    run()
    assert any(requests(roles).values())
    within(planned, roles)


def test_later_rounds_are_counted_for_every_sample():
    def most(numbers):
        built, *_ = job("few-claims", 0, numbers=numbers, repetitions=1, with_context=True)
        return asyncio.run(plan_job_calls(built)).roles["judge"].most.calls

    assert most([0, 1, 2]) == 3 * most([0])
    assert most([0, 0]) == most([0]), "equal samples share their requests"


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from(["probability", "consistency"]), st.booleans())
def test_requests_of_grading_are_in_range_of_dry_run(seed, items, by, per_item):
    data = dm.RubricDataset([{"submission": f"Text {number}."} for number in range(items)], rubric=RUBRIC)
    cascade = Cascade(cheap=dm.Judge("a", "judge"), strong=(dm.Judge("b", "strong"),), by=by)
    grader = dm.CriterionGrader(cascade, calls="per_item" if per_item else "per_criterion", temperature=0.5)
    roles = models(seed)
    planned = asyncio.run(plan_grading_calls(data, grader, build_model_access(roles)))
    dm.grade(data, grader, models=roles)
    within(planned, roles)


def test_judge_without_context_in_the_sample_is_counted_with_an_assumed_one():
    for with_context in (True, False):
        built, _, _ = job("groundedness", 0, numbers=[1, 2], repetitions=1, with_context=with_context)
        planned = asyncio.run(plan_job_calls(built))
        assert planned.roles["judge"].least.calls == 2
        assert planned.assumes_context is not with_context


def test_range_of_claims_ends_at_most_claims():
    built, _, _ = job("claim-faithfulness", 0, numbers=[1], repetitions=1, with_context=True)
    least, most = asyncio.run(plan_job_calls(built)).roles["judge"]
    assert (least.calls, most.calls) == (1, 2 * 51)
