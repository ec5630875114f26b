import pytest

import deemster as dm
from deemster.errors import InputError
from deemster.records import Usage
from deemster.report.sample_report import find_sample, sample_sections
from deemster.report.usage_sections import describe_usage


def shown(report, sample_id):
    sections = sample_sections(report, find_sample(report, sample_id))
    return {
        "".join(section.title): {
            "".join(detail.title): {field.label: "".join(field.line) for field in detail.fields}
            for detail in section.details
        }
        for section in sections
    }


def test_sample_is_shown_whole_with_every_mark():
    long = "word " * 2_000
    dataset = dm.Dataset([dm.Sample("a", {"question": "Why?"}, "x"), dm.Sample("b", {}, "y")], name="d")
    outputs = [{"id": "a", "output": long, "retrieved": [{"id": "d1", "text": "passage"}]}, {"id": "b", "output": "y"}]
    found = shown(dm.evaluate(dataset, outputs=outputs, metrics=["exact-match", "contains"]), "a")
    assert found["Question"][""]["expected"] == "x"
    assert found["Output"][""]["output"] == long
    assert found["Output"][""]["retrieved 1"] == '{"id": "d1", "text": "passage"}'
    assert next(title.split(",")[0] for title in found["Scores"]) == "exact-match: fail"


def test_every_repetition_is_shown():
    dataset = dm.Dataset([dm.Sample("a", {}, "x")], name="d")
    found = shown(dm.evaluate(dataset, outputs={"a": ["x", "y"]}, metrics=["exact-match"], repetitions=2), "a")
    assert found["Output, repetition 1"][""]["output"] == "y"


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (
            Usage(prompt_tokens=1_200, completion_tokens=8, latency_ms=412.3),
            "1 call, 1,200 + 8 tokens, 412 ms, cost not known",
        ),
        (Usage(calls=3, cost_usd="0.00001200"), "3 calls, 0.000012 USD"),
        (Usage(cost_usd=2, cost_source="derived"), "1 call, 2 USD, by the price table"),
        (Usage(calls=0, cached_calls=1), "1 call answered from the cache"),
    ],
)
def test_usage_of_a_score_is_said_in_words_and_no_cost_is_claimed_that_is_not_known(usage, words):
    assert describe_usage(usage) == words


def test_unknown_sample_is_answered_with_the_nearest_id():
    report = dm.evaluate(
        dm.Dataset([dm.Sample("window", {}, "x")], name="d"), outputs={"window": "x"}, metrics=["exact-match"]
    )
    with pytest.raises(InputError, match="Did you mean `window`"):
        find_sample(report, "windw")
