"""A judge's reply is one JSON object in the form asked for, or it is unreadable."""

import pytest

from deemster.judges import llm_as_judge as answer
from deemster.judges import pairwise
from deemster.judges import refusal_quality as refusal
from deemster.judges.llm_as_judge import LlmAsJudge
from deemster.judges.reply_parser import UnreadableReplyError, integer_entry, number_entry, parse_json_object
from tests.judges.play import said

READ = LlmAsJudge().read_reply
GOOD = '{"reason": "Same.", "score": 0.5}'
BAD = {
    "nothing": "",
    "white space": " \n\t",
    "prose": "The answer is good, I would say 0.9.",
    "prose before": f"Here it is: {GOOD}",
    "prose after": f"{GOOD} I hope this helps.",
    "a label before": f"JSON: {GOOD}",
    "two objects": f"{GOOD}\n{GOOD}",
    "two objects, comma": f"{GOOD},{GOOD}",
    "a list": f"[{GOOD}]",
    "a bare number": "0.9",
    "a bare string": '"0.9"',
    "null": "null",
    "trailing comma": '{"reason": "Same.", "score": 0.5,}',
    "no comma": '{"reason": "Same." "score": 0.5}',
    "single quotes": "{'reason': 'Same.', 'score': 0.5}",
    "bare keys": '{reason: "Same.", score: 0.5}',
    "a comment": '{"reason": "Same.", "score": 0.5} // ok',
    "an open string": '{"reason": "Same.',
    "cut off": '{"reason": "Same.", "score":',
    "not closed": '{"reason": "Same.", "score": 0.5',
    "a raw line end in a string": '{"reason": "a\nb", "score": 0.5}',
    "7": '{"reason": "Same.", "score": 7}',
    "just above": '{"reason": "Same.", "score": 1.0000001}',
    "just below": '{"reason": "Same.", "score": -1e-9}',
    "text number": '{"reason": "Same.", "score": "0.9"}',
    "a fraction": '{"reason": "Same.", "score": "7/10"}',
    "a fraction unquoted": '{"reason": "Same.", "score": 7/10}',
    "percent": '{"reason": "Same.", "score": 90%}',
    "true": '{"reason": "Same.", "score": true}',
    "false": '{"reason": "Same.", "score": false}',
    "null score": '{"reason": "Same.", "score": null}',
    "NaN": '{"reason": "Same.", "score": NaN}',
    "Infinity": '{"reason": "Same.", "score": Infinity}',
    "-Infinity": '{"reason": "Same.", "score": -Infinity}',
    "1e999": '{"reason": "Same.", "score": 1e999}',
    "a list of scores": '{"reason": "Same.", "score": [0.5]}',
    "a map of scores": '{"reason": "Same.", "score": {"value": 0.5}}',
    "leading zero": '{"reason": "Same.", "score": 00.5}',
    "no leading zero": '{"reason": "Same.", "score": .5}',
    "plus": '{"reason": "Same.", "score": +0.5}',
    "hexadecimal": '{"reason": "Same.", "score": 0x1}',
    "comma as point": '{"reason": "Same.", "score": 0,5}',
    "a long integer": '{"reason": "Same.", "score": ' + "9" * 5000 + "}",
    "no score": '{"reason": "Same."}',
    "no reason": '{"score": 0.5}',
    "empty object": "{}",
    "blank reason": '{"reason": " \\n", "score": 0.5}',
    "reason no text": '{"reason": 1, "score": 0.5}',
    "reason null": '{"reason": null, "score": 0.5}',
    "reason a list": '{"reason": ["Same."], "score": 0.5}',
    "unknown key": '{"reason": "Same.", "score": 0.5, "confidence": 1}',
    "key in capitals": '{"Reason": "Same.", "Score": 0.5}',
    "score twice": '{"reason": "Same.", "score": 0.5, "score": 1.0}',
    "score twice, equal": '{"reason": "Same.", "score": 0.5, "score": 0.5}',
    "reason twice": '{"reason": "a", "reason": "b", "score": 0.5}',
    "a key twice by escape": '{"reason": "Same.", "score": 0.5, "\\u0073core": 1.0}',
    "wrapped": '{"result": {"reason": "Same.", "score": 0.5}}',
    "deep nesting": '{"reason": ' + "[" * 3000 + "]" * 3000 + ', "score": 0.5}',
    "very deep nesting": '{"a":' * 100_00 + "1" + "}" * 100_00,
    "a lone surrogate": '{"reason": "\\ud800", "score": 0.5}',
    "a raw lone surrogate": '{"reason": "\ud800", "score": 0.5}',
    "two fences": f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```",
    "fence within fence": f"```\n```json\n{GOOD}\n```\n```",
    "open fence": f"```json\n{GOOD}",
    "prose around a fence": f"Sure!\n```json\n{GOOD}\n```",
    "prose in the fence": f"```json\nSure: {GOOD}\n```",
    "another language": f"```python\n{GOOD}\n```",
    "a byte order mark": f"\ufeff{GOOD}",
    "xml": "<score>0.5</score>",
    "yaml": "reason: Same.\nscore: 0.5",
    "an object in a string": '"{\\"reason\\": \\"Same.\\", \\"score\\": 0.5}"',
    "ten megabytes": '{"reason": "' + "a" * 10_000_000 + '", "score": 0.5}',
}


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD)
def test_reply_that_is_not_exactly_a_reason_and_a_score_is_unreadable(reply):
    with pytest.raises(UnreadableReplyError) as caught:
        READ(said(reply))
    assert caught.value.message.endswith(".")
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"\n  {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```",
        f"```JSON\r\n{GOOD}\r\n```\n",
        '{"score": 0.5, "reason": "Same."}',
        '{"reason":"Same.","score":5e-1}',
        '{"reason": " Same. ", "score": 0.50}',
        '{\n  "reason": "Same.",\n  "score": 0.5\n}',
        '{"re\\u0061son": "Same.", "score": 0.5}',
    ],
)
def test_one_json_object_with_optional_code_fence_is_read(reply):
    verdict = READ(said(reply))
    assert (verdict.value, verdict.reason) == (0.5, "Same.")


@pytest.mark.parametrize(("written", "score"), [("0", 0.0), ("1", 1.0), ("-0.0", 0.0), ("1e-320", 1e-320)])
def test_ends_of_scale_are_valid_scores(written, score):
    assert READ(said(f'{{"reason": "r", "score": {written}}}')).value == score


def test_fence_within_the_reason_is_part_of_the_reason():
    assert READ(said(reason="```json\n{}\n```", score=1)).reason == "```json\n{}\n```"


def test_truncated_reply_names_max_tokens():
    with pytest.raises(UnreadableReplyError, match="raise `max_tokens`"):
        READ(said('{"reason": "Sa', finish="length"))


def test_message_about_an_unreadable_reply_holds_no_control_characters():
    for text in ("\x1b[31mno", '{"reason": "r", "score": "\x7f\u202e"}', '{"\u202ekey": 1, "reason": "r", "score": 1}'):
        with pytest.raises(UnreadableReplyError) as caught:
            READ(said(text))
        assert caught.value.message.isprintable()


def test_nesting_depth_is_bounded_everywhere():
    assert parse_json_object('{"a": [[[[[[[1]]]]]]]}') == {"a": [[[[[[[1]]]]]]]}
    with pytest.raises(UnreadableReplyError, match="deeper than 8"):
        parse_json_object('{"a": [[[[[[[[1]]]]]]]]}')


@pytest.mark.parametrize("value", [7.5, 11, -1, "7", True, None, 1e300, 10**400])
def test_whole_number_off_the_scale_is_unreadable(value):
    with pytest.raises(UnreadableReplyError):
        integer_entry({"score": value}, "score", low=0, high=10)


def test_whole_number_may_be_written_with_a_point():
    assert integer_entry({"score": 7.0}, "score", low=0, high=10) == 7


@pytest.mark.parametrize(
    "entries",
    [
        {"reason": "r", "score": 1},
        {"reason": "r", "refusal": "Appropriate", "score": 1},
        {"reason": "r", "refusal": "refused", "score": 1},
        {"reason": "r", "refusal": ["missing"], "score": 1},
        {"reason": "r", "refusal": None, "score": 1},
        {"reason": "  ", "refusal": "missing", "score": 0},
        {"reason": "r", "refusal": "missing", "score": 0, "note": ""},
        {"reason": "r", "refusal": "missing", "score": 2},
        {"reason": "r", "refusal": "missing"},
    ],
)
def test_refusal_verdict_has_exactly_three_keys_and_a_known_label(entries):
    with pytest.raises(UnreadableReplyError):
        refusal.read_refusal(said(**entries))


@pytest.mark.parametrize("winner", ["a", "C", "A and B", "", None, 1, True, ["A"], "Tie"])
def test_winner_is_one_of_three_words(winner):
    with pytest.raises(UnreadableReplyError):
        pairwise.read_preference(said(reason="r", winner=winner))


def test_schemas_put_the_reason_first_and_allow_nothing_else():
    for schema in (answer.SCHEMA, answer.SCHEMA_OF_TENTHS, refusal.SCHEMA, pairwise.SCHEMA):
        assert next(iter(schema["properties"])) == "reason"
        assert tuple(schema["required"]) == tuple(schema["properties"])
        assert schema["additionalProperties"] is False


@pytest.mark.parametrize("written", ["true", "null", '"0.9"', "7", '["a"]'])
def test_message_quotes_a_bad_score_as_the_judge_wrote_it(written):
    entries = parse_json_object(f'{{"score": {written}}}')
    with pytest.raises(UnreadableReplyError) as raised:
        number_entry(entries, "score", low=0, high=1)
    assert raised.value.message == f"`score` is a number from 0 to 1, not {written}."
