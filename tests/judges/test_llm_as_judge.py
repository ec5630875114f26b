"""llm-as-judge: its requests, and the marks of its replies."""

import json
import math

import pytest

from deemster.errors import ConfigurationError
from deemster.judges.llm_as_judge import LlmAsJudge
from deemster.metrics.metric_spec import parse_spec
from deemster.records import MetricScore, NoAnswer, Output, Sample, Token, Unscored
from tests.judges.play import DOWN, OUTPUT, QUESTION, SAMPLE, play, said, scored


def test_one_reply_gives_one_mark_with_details():
    judge = LlmAsJudge()
    mark, rounds = play(judge.script(SAMPLE, OUTPUT), [scored(0.8, "Same city.")])
    assert (mark.score, mark.threshold, mark.success) == (0.8, 0.5, True)
    assert dict(mark.details) == {
        "judge_score": 0.8,
        "judge_reason": "Same city.",
        "model": "m-1",
        "prompt_hash": judge.prompt_hash,
    }
    ((ask,),) = rounds
    assert (ask.role, ask.temperature, ask.seed, ask.sample, ask.logprobs) == ("judge", 0.0, 42, 0, 0)
    assert [message.role for message in ask.messages] == ["system", "user"]


def test_judge_sees_question_expected_and_actual_in_blocks():
    ((ask,),) = [next(LlmAsJudge().script(SAMPLE, OUTPUT))]
    user = ask.messages[1].content
    for label, text in [("question", QUESTION), ("expected_output", "Paris"), ("actual_output", "It is Paris.")]:
        assert f"<<< {label} " in user
        assert f"\n{text}\n>>> {label} " in user


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"question": "Why?"}, "Why?"),
        ({"question": ""}, '{"question": ""}'),
        ({"question": 7, "lang": "é"}, '{"question": 7, "lang": "é"}'),
        ({"text": "Why?"}, '{"text": "Why?"}'),
        ({}, "{}"),
    ],
)
def test_non_text_question_is_shown_as_json(given, shown):
    (ask,) = next(LlmAsJudge().script(Sample("s", given, "x"), OUTPUT))
    assert f"\n{shown}\n>>> question" in ask.messages[1].content


@pytest.mark.parametrize("expected", [42, {"a": [1, None]}, ["x", "é"], True, ""])
def test_expected_value_of_any_kind_is_shown(expected):
    (ask,) = next(LlmAsJudge().script(Sample("s", {}, expected), OUTPUT))
    shown = expected if isinstance(expected, str) else json.dumps(expected, ensure_ascii=False)
    assert f"\n{shown}\n>>> expected_output" in ask.messages[1].content


@pytest.mark.parametrize(
    ("sample", "output", "cause"),
    [
        (Sample("s", {}, None), OUTPUT, "no_expected"),
        (Sample("s", {"question": "\ud800"}, "x"), OUTPUT, "bad_sample"),
        (Sample("s", {"other": "\ud800"}, "x"), OUTPUT, "bad_sample"),
        (Sample("s", {}, "\ud800"), OUTPUT, "bad_sample"),
        (Sample("s", {}, [10**5000]), OUTPUT, "bad_sample"),
        (Sample("s", {"when": {1, 2}}, "x"), OUTPUT, "bad_sample"),
        (SAMPLE, Output("\ud800"), "bad_output"),
    ],
)
def test_unshowable_value_is_unscored_without_request(sample, output, cause):
    mark, rounds = play(LlmAsJudge().script(sample, output))
    assert (mark.cause, rounds) == (cause, [])


def test_sample_without_expected_output_is_issue_before_the_run():
    (issue,) = LlmAsJudge().check(Sample("s", {}, None))
    assert issue.warning
    assert LlmAsJudge().check(SAMPLE) == ()


def test_unreadable_reply_is_requested_once_more():
    mark, rounds = play(LlmAsJudge().script(SAMPLE, OUTPUT), [said("0.9")], [scored(0.9)])
    assert mark.score == 0.9
    assert [ask.again for (ask,) in rounds] == [0, 1]


def test_long_reason_is_truncated():
    script = LlmAsJudge().script(SAMPLE, OUTPUT)
    mark, _ = play(script, [said(reason="e" * 90_000, score=0.5)])
    assert mark.score == 0.5
    assert len(mark.details["judge_reason"]) == 16_000
    assert mark.details["judge_reason"].endswith("e…")


def test_second_unreadable_reply_is_unscored_and_never_a_number():
    mark, rounds = play(LlmAsJudge().script(SAMPLE, OUTPUT), [said("I give 0.9")], [scored(7)])
    assert mark == Unscored("unreadable", "`score` is a number from 0 to 1, not 7.")
    assert len(rounds) == 2


@pytest.mark.parametrize("cause", ["model_failed", "rate_limited", "not_run", "unreadable"])
def test_judge_without_an_answer_leaves_the_pair_unscored_with_its_cause(cause):
    mark, rounds = play(LlmAsJudge().script(SAMPLE, OUTPUT), [NoAnswer(cause=cause, message="No.")])
    assert mark == Unscored(cause, "No.")
    assert len(rounds) == 1


def test_samples_are_requested_together_with_different_seeds():
    judge = LlmAsJudge(samples=3)
    mark, rounds = play(judge.script(SAMPLE, OUTPUT), [scored(0.2), scored(0.6), scored(1.0)])
    (asks,) = rounds
    assert [(ask.sample, ask.seed, ask.temperature) for ask in asks] == [(0, 42, 0.7), (1, 43, 0.7), (2, 44, 0.7)]
    assert len({ask.messages for ask in asks}) == 1
    assert mark.score == pytest.approx(0.6)
    assert mark.details["spread"] == pytest.approx(0.4)
    assert (mark.details["lowest"], mark.details["highest"], mark.details["members"]) == (0.2, 1.0, 3)


def test_panel_asks_every_model_every_time():
    judge = LlmAsJudge(models=["judge", "judge:strict"], samples=2, temperature=1)
    (asks,) = [next(judge.script(SAMPLE, OUTPUT))]
    assert [(ask.role, ask.sample) for ask in asks] == [
        ("judge", 0),
        ("judge", 1),
        ("judge:strict", 0),
        ("judge:strict", 1),
    ]
    assert judge.roles == ("judge", "judge:strict")


def chosen(*pairs):
    return tuple((text, math.log(chance)) for text, chance in pairs)


def test_logprobs_give_expected_value_over_tenths():
    likely = chosen(("8", 0.6), ("6", 0.2), ("high", 0.2))
    head = '{"reason": "r", "score": '
    tokens = (Token(head, -0.1), Token("8", math.log(0.6), likely), Token("}", 0.0))
    mark, rounds = play(LlmAsJudge(logprobs=True).script(SAMPLE, OUTPUT), [said(head + "8}", tokens=tokens)])
    assert rounds[0][0].logprobs == 20
    assert mark.score == pytest.approx((8 * 0.6 + 6 * 0.2) / 0.8 / 10)
    assert mark.details["mass"] == pytest.approx(0.8)
    assert mark.details["scoring"] == "logprobs"


def test_without_log_probabilities_written_number_counts_as_fallback():
    mark, _ = play(LlmAsJudge(logprobs=True).script(SAMPLE, OUTPUT), [scored(8)])
    assert mark.score == 0.8
    assert mark.details["scoring"] == "integer"
    assert mark.details["mass"] is None
    assert "no log-probabilities" in mark.details["fallback"]


def test_with_logprobs_a_score_between_tenths_is_unreadable():
    mark, _ = play(LlmAsJudge(logprobs=True).script(SAMPLE, OUTPUT), [scored(7.5)], [scored(11)])
    assert mark.cause == "unreadable"


@pytest.mark.parametrize(
    "judge",
    [
        LlmAsJudge(),
        LlmAsJudge(samples=5, combine="median", quorum=2, threshold=0.7, name="five"),
        LlmAsJudge(models=["judge", "judge:b"], combine="weighted", weights={"judge:b": 2, "judge": 1}),
        LlmAsJudge(logprobs=True, max_tokens=64, template='Judge\n{{actual_output}}, "now".'),
        LlmAsJudge(temperature=0.3, models="judge:strict"),
    ],
)
def test_judge_round_trips_through_its_spec(judge):
    name, options = parse_spec(str(judge))
    assert name == "llm-as-judge"
    assert LlmAsJudge(**options) == judge


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "whole number from 1 to 100"),
        ({"samples": True}, "whole number"),
        ({"samples": 2, "temperature": 0}, "needs a `temperature` above 0"),
        ({"temperature": 3}, "from 0 to 2"),
        ({"temperature": "hot"}, "from 0 to 2"),
        ({"models": []}, "names of the suite's models"),
        ({"models": [1]}, "names of the suite's models"),
        ({"models": ["judge", "judge"]}, "say `samples`"),
        ({"combine": "avg"}, "knows no `avg`"),
        ({"combine": "medain"}, "Did you mean `median`"),
        ({"combine": "weighted"}, "go together"),
        ({"weights": {"judge": 1}}, "go together"),
        ({"combine": "weighted", "weights": {"jugde": 1}}, "Did you mean `judge`"),
        ({"combine": "weighted", "weights": {"judge": -1}}, "numbers of at least 0"),
        ({"combine": "weighted", "weights": {"judge": 0}}, "one above 0"),
        ({"combine": "weighted", "weights": {"judge": 1}, "models": ["judge", "b"]}, "need every model"),
        ({"combine": "weighted", "weights": {"judge": 1e308}}, "at most 1e\\+300"),
        ({"quorum": 2}, "from 1 to 1"),
        ({"samples": 3, "quorum": 4}, "from 1 to 3"),
        ({"max_tokens": 0}, "at least 1"),
        ({"logprobs": "yes"}, "true or false"),
        ({"threshold": 2}, "between 0 and 1"),
    ],
)
def test_option_out_of_range_is_refused(options, message):
    with pytest.raises(ConfigurationError, match=message):
        LlmAsJudge(**options)


def test_panel_keeps_every_vote_also_those_that_failed():
    judge = LlmAsJudge(models=["a", "b", "c"], quorum=2)
    mark, _ = play(judge.script(SAMPLE, OUTPUT), [scored(0.4, "one"), DOWN, scored(0.8, "three", model="m-3")])
    assert isinstance(mark, MetricScore)
    assert mark.score == pytest.approx(0.6)
    assert [dict(vote) for vote in mark.details["votes"]] == [
        {"role": "a", "sample": 0, "score": 0.4, "reason": "one", "model": "m-1"},
        {"role": "b", "sample": 0, "cause": "model_failed", "message": "The server answered 500."},
        {"role": "c", "sample": 0, "score": 0.8, "reason": "three", "model": "m-3"},
    ]
    assert mark.details["members"] == 2
