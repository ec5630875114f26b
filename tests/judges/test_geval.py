"""G-Eval: its requests, and how a number on a rubric becomes a mark."""

import math

import pytest

from deemster.errors import ConfigurationError
from deemster.judges.geval import GEval
from deemster.metrics.metric_spec import parse_spec
from deemster.records import Output, Sample, Token, Unscored
from tests.judges.play import DOWN, OUTPUT, QUESTION, SAMPLE, play, said, scored

THREE = [{"range": [value, value], "outcome": f"o{value}"} for value in (1, 2, 3)]
STEPS = ["Read it.", "Decide."]


def judged(metric, *rounds, sample=SAMPLE, output=OUTPUT):
    return play(metric.script(sample, output), *rounds)


def again(metric):
    return GEval(**parse_spec(str(metric)).options)


def ten(*, first, second):
    """A reply of 10 in two tokens, with the alternatives of each."""
    text = '{"reason": "r", "score": '
    tokens = (
        Token(text, 0.0),
        Token("1", math.log(first["1"]), tuple((word, math.log(share)) for word, share in first.items())),
        Token("0", math.log(second["0"]), tuple((word, math.log(share)) for word, share in second.items())),
        Token("}", 0.0),
    )
    return said(text=text + "10}", tokens=tokens)


def test_written_number_is_scaled_to_rubric():
    mark, rounds = judged(GEval(steps=STEPS), [scored(7, "Good.")])
    assert (mark.score, mark.rubric_score, mark.threshold, mark.success) == (0.7, 7.0, 0.5, True)
    assert (mark.details["rubric_value"], mark.details["rubric_range"]) == (7, (0, 10))
    assert (mark.details["judge_reason"], mark.details["model"], mark.details["scoring"]) == ("Good.", "m-1", "integer")
    ((ask,),) = rounds
    assert (ask.role, ask.temperature, ask.seed, ask.sample, ask.logprobs) == ("judge", 0.0, 42, 0, 0)
    assert list(ask.schema["properties"]) == ["reason", "score"]
    assert ask.schema["properties"]["score"] == {"type": "integer", "minimum": 0, "maximum": 10}


@pytest.mark.parametrize(("value", "score"), [(1, 0.0), (2, 0.5), (3, 1.0)])
def test_lowest_rubric_value_is_score_zero(value, score):
    mark, _ = judged(GEval(steps=STEPS, rubric=THREE), [scored(value)])
    assert (mark.score, mark.rubric_score) == (score, value)


@pytest.mark.parametrize("value", [7.5, 11, -1, "7/10", "7", True, None, [7], 1e300])
def test_value_off_rubric_is_retried_then_unscored(value):
    mark, rounds = judged(GEval(steps=STEPS), [scored(value)], [scored(value)])
    assert isinstance(mark, Unscored)
    assert mark.cause == "unreadable"
    assert [ask.again for (ask,) in rounds] == [0, 1]


def test_readable_second_reply_counts():
    mark, _ = judged(GEval(steps=STEPS), [scored(11)], [scored(10)])
    assert mark.score == 1.0


def test_judge_without_an_answer_is_unscored_with_its_cause():
    mark, _ = judged(GEval(steps=STEPS), [DOWN])
    assert mark == Unscored("model_failed", "The server answered 500.")


def test_lower_is_better_passes_at_and_below_the_threshold():
    metric = GEval(steps=STEPS, rubric=THREE, higher_is_better=False)
    marks = [judged(metric, [scored(value)])[0] for value in (1, 2, 3)]
    assert [(mark.score, mark.success, mark.higher_is_better) for mark in marks] == [
        (0.0, True, False),
        (0.5, True, False),
        (1.0, False, False),
    ]


@pytest.mark.parametrize(
    ("higher", "value", "score", "native"),
    [(True, 10, 1.0, 10), (True, 9, 0.0, 0), (True, 0, 0.0, 0), (False, 0, 0.0, 0), (False, 1, 1.0, 10)],
)
def test_strict_makes_everything_but_the_best_the_worst(higher, value, score, native):
    mark, _ = judged(GEval(steps=STEPS, strict=True, higher_is_better=higher), [scored(value)])
    assert (mark.score, mark.rubric_score, mark.details["rubric_value"]) == (score, native, value)


def test_expected_value_handles_two_token_number_and_reports_mass():
    # P(10) = .5 * .8, P(1) = .5 * .2, P(9) = .3, P(8) = .1; "x" is no number, 42 is off the rubric.
    reply = ten(first={"1": 0.5, "9": 0.3, "8": 0.1, "x": 0.04, "42": 0.06}, second={"0": 0.8, "}": 0.2})
    mark, rounds = judged(GEval(steps=STEPS, scoring="logprobs"), [reply])
    expected = (10 * 0.4 + 1 * 0.1 + 9 * 0.3 + 8 * 0.1) / 0.9
    assert mark.details["rubric_value"] == pytest.approx(expected)
    assert mark.score == pytest.approx(expected / 10)
    assert mark.rubric_score == 8.0
    assert mark.details["mass"] == pytest.approx(0.9)
    assert mark.details["scoring"] == "logprobs"
    assert rounds[0][0].logprobs == 20


def test_expected_value_ignores_numbers_off_rubric():
    rubric = [{"range": [8, 9], "outcome": "a"}, {"range": [10, 10], "outcome": "b"}]
    reply = ten(first={"1": 0.5, "9": 0.25, "7": 0.25}, second={"0": 1.0})
    mark, _ = judged(GEval(steps=STEPS, scoring="logprobs", rubric=rubric), [reply])
    expected = (10 * 0.5 + 9 * 0.25) / 0.75
    assert mark.details["rubric_value"] == pytest.approx(expected)
    assert mark.score == pytest.approx((expected - 8) / 2)
    assert mark.details["mass"] == pytest.approx(0.75)


def test_without_log_probabilities_written_number_is_fallback():
    mark, _ = judged(GEval(steps=STEPS, scoring="logprobs"), [scored(6)])
    assert (mark.score, mark.details["scoring"], mark.details["mass"]) == (0.6, "integer", None)
    assert mark.details["fallback"] == "The model gave no log-probabilities."


def test_strict_rounds_expected_value():
    metric = GEval(steps=STEPS, scoring="logprobs", strict=True)
    near, _ = judged(metric, [ten(first={"1": 0.9, "9": 0.1}, second={"0": 1.0})])
    far, _ = judged(metric, [ten(first={"1": 0.4, "9": 0.6}, second={"0": 1.0})])
    assert (near.score, near.rubric_score) == (1.0, 10.0)
    assert (far.score, far.rubric_score) == (0.0, 0.0)


def test_samples_are_averaged_and_a_half_is_rounded_up():
    metric = GEval(steps=STEPS, scoring="samples", samples=4)
    mark, rounds = judged(metric, [scored(6), scored(7), scored(7), scored(6)])
    assert (mark.score, mark.rubric_score, mark.details["rubric_value"]) == (0.65, 7.0, 6.5)
    assert [(ask.sample, ask.temperature) for ask in rounds[0]] == [(0, 0.7), (1, 0.7), (2, 0.7), (3, 0.7)]
    assert [vote["score"] for vote in mark.details["votes"]] == [6, 7, 7, 6]


def test_integer_panel_takes_majority_and_tie_goes_to_worse():
    up = GEval(steps=STEPS, models=["a", "b"])
    down = GEval(steps=STEPS, models=["a", "b"], higher_is_better=False)
    assert up.combine == "majority"
    replies = [scored(3, "low"), scored(8, "high")]
    low, high = judged(up, replies)[0], judged(down, replies)[0]
    assert (low.rubric_score, low.details["judge_reason"], low.details["agreement"]) == (3.0, "low", 0.5)
    assert (high.rubric_score, high.details["judge_reason"]) == (8.0, "high")


def test_too_few_members_leave_it_unscored():
    mark, _ = judged(GEval(steps=STEPS, models=["a", "b", "c"]), [scored(3), DOWN, DOWN])
    assert mark.cause == "no_quorum"


def test_learned_weights_favour_agreeing_members():
    metric = GEval(steps=STEPS, models=["a", "b", "c"], combine="dawid-skene", rubric=THREE)
    truth = [1, 3, 1, 3, 1, 3, 1, 3]
    odd = [3, 3, 1, 1, 3, 3, 1, 1]
    marks = [judged(metric, [scored(t), scored(t), scored(o)])[0] for t, o in zip(truth, odd, strict=True)]
    settled = metric.settle(marks)
    assert [mark.rubric_score for mark in settled] == truth
    assert [mark.score for mark in settled] == pytest.approx([(value - 1) / 2 for value in truth])
    assert settled[0].details["votes"] == marks[0].details["votes"]
    assert settled[0].details["weights"]["c#0"] == pytest.approx(0.0, abs=1e-6)


def test_criteria_become_steps_once_and_steps_are_in_prompt_and_details():
    metric = GEval(criteria="Is it polite?")
    mark, rounds = judged(metric, [said(steps=["Look for insults.", " Weigh the tone. "])], [scored(9)])
    (first,), (second,) = rounds
    assert (first.role, first.temperature, first.seed, first.sample) == ("judge", 0.0, 42, 0)
    assert "Is it polite?" in first.messages[1].content
    assert "1. Look for insults.\n2. Weigh the tone.\n" in second.messages[0].content
    assert mark.details["steps"] == ("Look for insults.", "Weigh the tone.")


def test_request_for_steps_is_same_for_every_sample_and_member():
    metric = GEval(criteria="Is it polite?", models=["a", "b"], fields=["actual_output"])
    first = next(metric.script(SAMPLE, OUTPUT))
    other = next(metric.script(Sample("t", {"question": "Other?"}), Output("Else.")))
    assert len(first) == 1
    assert first == other


def test_criteria_with_a_divider_line_are_not_split():
    ((ask,),) = [next(GEval(criteria="First.\n=====\nSecond {{rubric}}.").script(SAMPLE, OUTPUT))]
    assert ask.messages[1].content.endswith("First.\n=====\nSecond {{rubric}}.")


@pytest.mark.parametrize("steps", [[], "Read.", ["Read.", 7], ["Read.", " "], ["x"] * 21, None])
def test_unreadable_steps_are_retried_then_unscored(steps):
    mark, rounds = judged(GEval(criteria="c"), [said(steps=steps)], [said(steps=steps)])
    assert mark.cause == "unreadable"
    assert [ask.again for (ask,) in rounds] == [0, 1]


def test_no_answer_to_the_request_for_steps_is_unscored():
    assert judged(GEval(criteria="c"), [DOWN])[0].cause == "model_failed"


def test_other_criteria_make_another_identity():
    versions = [GEval(criteria=criteria).version for criteria in ("a", "b")]
    assert versions[0] != versions[1]
    assert GEval(criteria="a").version == versions[0]


def test_only_the_fields_named_are_shown_in_their_order():
    metric = GEval(steps=STEPS, fields=["actual_output", "context", "expected_output"])
    sample = Sample("s", {"question": QUESTION, "context": ["One.", "Two."]}, {"city": "Paris"})
    (ask,) = next(metric.script(sample, OUTPUT))
    user = ask.messages[1].content
    assert QUESTION not in user
    places = [user.index(text) for text in ("\nOne.\n", "\nTwo.\n", '\n{"city": "Paris"}\n', "\nIt is Paris.\n")]
    assert places == sorted(places)
    for label in ("passage_1", "passage_2", "expected_output", "actual_output"):
        assert f"<<< {label} " in user


def test_expected_output_may_stand_in_the_metadata():
    metric = GEval(steps=STEPS, fields=["expected_output", "actual_output"], expected="requirement")
    sample = Sample("s", {}, "Paris", {"requirement": "It names a river."})
    (ask,) = next(metric.script(sample, OUTPUT))
    assert "It names a river." in ask.messages[1].content
    assert "Paris\n" not in ask.messages[1].content.split("<<< actual_output")[0]
    assert metric.needs == ("requirement",)
    assert judged(metric, sample=Sample("s", {}, "Paris"))[0].cause == "no_expected"


def test_prompt_says_if_context_is_empty():
    metric = GEval(steps=STEPS, fields=["input", "context"])
    (ask,) = next(metric.script(SAMPLE, Output("o", retrieved=[])))
    assert "no passage was retrieved" in ask.messages[1].content


def test_sample_without_shown_fields_is_unscored_without_request():
    no_reference = GEval(steps=STEPS, fields=["expected_output"])
    assert judged(no_reference, sample=Sample("s", {}))[0].cause == "no_expected"
    assert judged(GEval(steps=STEPS, fields=["context"]))[0].cause == "bad_sample"
    assert judged(GEval(steps=STEPS), output=Output("\ud800"))[0].cause == "bad_output"


def test_sample_is_checked_before_the_run_but_its_context_may_come_with_the_output():
    metric = GEval(steps=STEPS, fields=["context", "expected_output"])
    assert metric.check(SAMPLE) == ()
    assert "no `expected_output`" in metric.check(Sample("s", {}))[0].message
    assert "`input.context`" in metric.check(Sample("s", {"context": 7}, "x"))[0].message


@pytest.mark.parametrize("context", ["", [], 7, [7]])
def test_retrieved_of_output_overrides_context_of_sample(context):
    metric = GEval(steps=STEPS, fields=["context"])
    sample = Sample("s", {"context": context}, "x")
    mark, _ = judged(metric, [scored(7)], sample=sample, output=Output("a", retrieved=[{"id": "d", "text": "p"}]))
    assert mark.score == 0.7
    assert judged(metric, sample=sample)[0].cause == "bad_sample"


def test_few_shot_examples_are_in_blocks_before_the_case():
    shot = {"score": 2, "reason": "Too long.", "input": "Why?", "actual_output": "Because of <<< things."}
    metric = GEval(steps=STEPS, few_shot=[shot], info="A shop for shoes.")
    (ask,) = next(metric.script(SAMPLE, OUTPUT))
    system, user = (message.content for message in ask.messages)
    assert "A shop for shoes." in system
    assert user.index("example_1_actual_output") < user.index('{"reason": "Too long.", "score": 2}')
    assert user.index('{"reason": "Too long.", "score": 2}') < user.index("The case to be judged")
    assert again(metric) == metric


def test_placeholders_inside_values_are_not_filled():
    metric = GEval(steps=["Look at {{actual_output}}."], info="{{nonce}}")
    (ask,) = next(metric.script(SAMPLE, Output("{{steps}} {{case}}")))
    system, user = (message.content for message in ask.messages)
    assert "1. Look at {{actual_output}}." in system
    assert "{{nonce}}" in system
    assert "\n{{steps}} {{case}}\n" in user


class TestRefusalCheck:
    metric = GEval(preset="groundedness", refusal_check=True)
    sample = Sample("s", {"question": "How?", "context": "Nothing on it."}, "I cannot tell.")

    def test_declined_reference_judges_refusal_instead(self):
        declines = [said(reason="It declines.", declines=True)]
        mark, rounds = judged(self.metric, declines, [scored(1)], sample=self.sample, output=Output("It is blue."))
        assert (mark.score, mark.rubric_score, mark.success) == (0.0, 1.0, False)
        assert (mark.details["reference_refuses"], mark.details["judged_as"]) == (True, "refusal-alignment")
        assert "\nI cannot tell.\n" in rounds[0][0].messages[1].content
        assert "It is blue." not in rounds[0][0].messages[1].content
        assert "<<< expected_output" in rounds[1][0].messages[1].content
        assert "passage_1" not in rounds[1][0].messages[1].content

    def test_answered_reference_judges_quality(self):
        mark, rounds = judged(self.metric, [said(reason="r", declines=False)], [scored(3)], sample=self.sample)
        assert mark.details["reference_refuses"] is False
        assert "judged_as" not in mark.details
        assert "<<< passage_1" in rounds[1][0].messages[1].content

    @pytest.mark.parametrize("expected", [True, False])
    def test_metadata_flag_avoids_refusal_question(self, expected):
        sample = Sample("s", self.sample.input, "x", {"refusal_expected": expected})
        mark, rounds = judged(self.metric, [scored(3)], sample=sample)
        assert mark.details["reference_refuses"] is expected
        assert len(rounds) == 1

    def test_a_reference_that_declines_needs_no_context(self):
        sample = Sample("s", {"question": "How?"}, "I cannot tell.", {"refusal_expected": True})
        assert judged(self.metric, [scored(3)], sample=sample)[0].score == 1.0

    def test_non_boolean_metadata_is_bad_sample(self):
        sample = Sample("s", self.sample.input, "x", {"refusal_expected": "yes"})
        assert judged(self.metric, sample=sample)[0].cause == "bad_sample"

    @pytest.mark.parametrize("declines", ["true", 1, None])
    def test_non_boolean_reply_is_unreadable(self, declines):
        reply = [said(reason="r", declines=declines)]
        assert judged(self.metric, reply, reply, sample=self.sample)[0].cause == "unreadable"

    def test_refusal_check_needs_its_rubric_and_polarity(self):
        with pytest.raises(ConfigurationError, match="needs a rubric from 1 to 3"):
            GEval(preset="faithfulness", refusal_check=True)
        with pytest.raises(ConfigurationError, match="higher is better"):
            GEval(preset="redundancy", refusal_check=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a `preset`, `criteria` or `steps`"),
        ({"steps": STEPS, "criteria": "c"}, "`criteria` or `steps`, not both"),
        ({"preset": "completness"}, "Did you mean `completeness`?"),
        ({"preset": 7}, "`preset` of g-eval is a name"),
        ({"criteria": " "}, "`criteria` of g-eval is text"),
        ({"criteria": "\ud800"}, "not valid Unicode"),
        ({"steps": "Read."}, "`steps` of g-eval are 1 to 20 texts"),
        ({"steps": ["Read.", ""]}, "`steps[1]` of g-eval is text"),
        ({"steps": STEPS, "fields": ["output"]}, "`fields` of g-eval knows no 'output'"),
        ({"steps": STEPS, "fields": "input"}, "`fields` of g-eval are some of"),
        ({"steps": STEPS, "fields": []}, "`fields` of g-eval are some of"),
        ({"steps": STEPS, "fields": ["input", "input"]}, "names one twice"),
        ({"steps": STEPS, "rubric": [{"range": [1, 1], "outcome": "o"}]}, "two are the least"),
        ({"steps": STEPS, "threshold": 1.5}, "`threshold` of g-eval is a number between 0 and 1"),
        ({"steps": STEPS, "strict": 1}, "`strict` of g-eval is true or false"),
        ({"steps": STEPS, "higher_is_better": "no"}, "`higher_is_better` of g-eval is true or false"),
        ({"steps": STEPS, "scoring": "logprob"}, "Did you mean `logprobs`?"),
        ({"steps": STEPS, "scoring": "samples"}, "needs `samples`"),
        ({"steps": STEPS, "scoring": "logprobs", "combine": "majority"}, "is for whole numbers"),
        ({"steps": STEPS, "scoring": "samples", "samples": 3, "combine": "median"}, "is `mean` or `weighted`"),
        ({"steps": STEPS, "info": 7}, "`info` of g-eval is text"),
        ({"steps": STEPS, "few_shot": "x"}, "`few_shot` of g-eval is a list"),
        ({"steps": STEPS, "few_shot": None}, "`few_shot` of g-eval is a list"),
        ({"steps": STEPS, "few_shot": 7}, "`few_shot` of g-eval is a list"),
        (
            {"steps": STEPS, "few_shot": [{"score": 3, "reason": "r", "input": "\ud800", "actual_output": "a"}]},
            "g-eval.few_shot[0].input holds a lone surrogate, which is no character",
        ),
        ({"steps": STEPS, "few_shot": [7]}, "g-eval.few_shot[0] must be a map with `score` and `reason`, not a number"),
        ({"steps": STEPS, "few_shot": [{"score": 3, "reason": "r", "input": "i"}]}, "[0]: `actual_output` is missing"),
        (
            {"steps": STEPS, "few_shot": [{"score": 11, "reason": "r", "input": "i", "actual_output": "a"}]},
            "g-eval.few_shot[0].score must be a whole number from 0 to 10, not 11",
        ),
        (
            {"steps": STEPS, "few_shot": [{"score": 3, "reason": "r", "context": "c"}]},
            "g-eval.few_shot[0]: `input` is missing",
        ),
        (
            {
                "steps": STEPS,
                "few_shot": [{"score": 3, "reason": "r", "input": "i", "actual_output": "a", "context": "c"}],
            },
            "g-eval.few_shot[0]: `context` is not shown to the judge",
        ),
        (
            {"steps": STEPS, "few_shot": [{"score": 3, "reason": "r", "inputs": "i"}]},
            "Did you mean `input`?",
        ),
        ({"steps": STEPS, "combine": "most"}, "`combine` of g-eval knows no `most`"),
    ],
)
def test_invalid_options_are_error_with_reason(options, message):
    with pytest.raises(ConfigurationError) as error:
        GEval(**options)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "metric",
    [
        GEval(criteria="Is it polite?"),
        GEval(steps=STEPS, rubric=THREE, fields=["actual_output", "input"], name="auto"),
        GEval(steps=STEPS, higher_is_better=False, strict=True, threshold=0.25),
        GEval(steps=STEPS, scoring="logprobs", models=["a", "b"]),
        GEval(steps=STEPS, scoring="samples", samples=5, temperature=1.0),
        GEval(steps=STEPS, models=["a", "b"], combine="weighted", weights={"a": 1, "b": 2}, quorum=1),
        GEval(preset="redundancy", threshold=0.0),
        GEval(preset="completeness", rubric=THREE, steps=STEPS, higher_is_better=False),
        GEval(preset="completeness", criteria="Is all of it there?"),
    ],
    ids=str,
)
def test_spec_round_trips(metric):
    assert again(metric) == metric
    assert again(metric).version == metric.version


def test_options_override_preset():
    metric = GEval(preset="completeness", criteria="Is all of it there?", fields=["actual_output"], threshold=1.0)
    quality = metric.quality
    assert (quality.about, quality.steps, quality.fields) == ("Is all of it there?", None, ("actual_output",))
    assert (quality.low, quality.high, metric.threshold, metric.name) == (1, 3, 1.0, "completeness")


def test_order_of_fields_does_not_change_identity():
    one, other = (
        GEval(steps=STEPS, fields=fields) for fields in (["actual_output", "input"], ["input", "actual_output"])
    )
    assert one == other
    assert one.fields == ("input", "actual_output")
