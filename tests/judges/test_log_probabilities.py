"""The expectation of a score over what the judge might have written."""

import math

import pytest

from deemster.judges._log_probabilities import expected_score
from deemster.records import Answer, Token

HEAD = '{"reason": "The score 3 is a score of 3.", "score": '


def token(text, *alternatives, chance=None):
    likely = dict(alternatives)
    chance = likely.get(text, 1.0) if chance is None else chance
    return Token(text, math.log(chance), tuple((word, math.log(share)) for word, share in alternatives))


def found(*tokens, low=0, high=10):
    answer = Answer(text="".join(each.text for each in tokens), tokens=tokens)
    return expected_score(answer, low=low, high=high)


def test_one_token_is_weighed_with_its_alternatives():
    seen = found(token(HEAD), token("8", ("8", 0.5), ("9", 0.25), ("7", 0.25)), token("}"))
    assert seen.value == pytest.approx(8.0)
    assert seen.mass == pytest.approx(1.0)
    assert seen.probabilities == pytest.approx({7: 0.25, 8: 0.5, 9: 0.25})


def test_number_of_two_tokens_is_followed():
    # P(9) = .3; of the .6 for "1": "0" follows with .9 and "}" with .1. P(10) = .54, P(1) = .06; .1 was not seen.
    seen = found(token(HEAD), token("1", ("1", 0.6), ("9", 0.3)), token("0", ("0", 0.9), ("}", 0.1)), token("}"))
    assert seen.mass == pytest.approx(0.9)
    assert seen.value == pytest.approx((10 * 0.54 + 9 * 0.3 + 1 * 0.06) / 0.9)
    assert seen.probabilities == pytest.approx({1: 0.06 / 0.9, 9: 0.3 / 0.9, 10: 0.54 / 0.9})


def test_prefix_of_longer_number_splits_probability():
    seen = found(token(HEAD), token("1", ("1", 0.8), ("2", 0.2)), token("}", ("}", 0.75), ("0", 0.25)))
    assert seen.value == pytest.approx(1 * 0.6 + 10 * 0.2 + 2 * 0.2)
    assert seen.mass == pytest.approx(1.0)


def test_mass_outside_the_rubric_is_left_out_and_reported():
    seen = found(
        token(HEAD),
        token("3", ("3", 0.4), ("1", 0.2), ("7", 0.3), ("great", 0.05), ("03", 0.05)),
        token("}"),
        low=1,
        high=5,
    )
    assert seen.mass == pytest.approx(0.6)
    assert seen.value == pytest.approx((3 * 0.4 + 1 * 0.2) / 0.6)


def test_chosen_token_missing_from_its_alternatives_still_counts():
    seen = found(token(HEAD), token("2", ("8", 0.5), chance=0.25), token("}"))
    assert seen.value == pytest.approx((2 * 0.25 + 8 * 0.5) / 0.75)


def test_number_sharing_its_token_is_found():
    whole = token(" 7}", (" 7}", 0.5), (" 9}", 0.25), (" 7.5}", 0.125), ("7}", 0.125))
    seen = found(token(HEAD[:-1]), whole)
    assert seen.mass == pytest.approx(0.75)
    assert seen.value == pytest.approx((7 * 0.5 + 9 * 0.25) / 0.75)


def test_fractions_and_powers_are_not_integers():
    seen = found(token(HEAD), token("7", ("7", 1.0)), token("}", ("}", 0.5), (".", 0.25), ("e", 0.25)))
    assert (seen.value, seen.mass) == (pytest.approx(7.0), pytest.approx(0.5))


def test_fenced_reply_is_read_at_same_position():
    seen = found(token("```json\n" + HEAD), token("6", ("6", 0.5), ("4", 0.5)), token("\n}\n```"))
    assert seen.value == pytest.approx(5.0)


@pytest.mark.parametrize("before", ["", "{", '{"reason": "\\\\xe6\\\\x9d", ', '{"reason": "\ufffd\ufffd", '])
@pytest.mark.parametrize("after", ["", "<|im_end|>", "</s>"])
def test_tokens_may_cover_only_end_of_reply(before, after):
    # Half a character is a token that no text can hold; a token that ends the message is in no text.
    tokens = (token(before), token('"score": '), token("8", ("8", 0.5), ("6", 0.5)), token("}"), token(after))
    seen = expected_score(Answer(text='{"reason": "\u6771", "score": 8}', tokens=tokens), low=0, high=10)
    assert seen.value == pytest.approx(7.0)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(text=HEAD + "7}"),
        Answer(text=HEAD + "7}", tokens=()),
        Answer(text=HEAD + "7}", tokens=(token(HEAD), token("7"))),
        Answer(text='{"score": 7, "reason": "r"}', tokens=(token('{"score": 7, "reason": "r"}'),)),
        Answer(text=HEAD + "7.0}", tokens=(token(HEAD), token("7.0"), token("}"))),
        Answer(text=HEAD + "-7}", tokens=(token(HEAD), token("-7"), token("}"))),
        Answer(text=HEAD + "7}", tokens=(token(HEAD), Token("7", math.nan), token("}"))),
        Answer(text=HEAD + "7}", tokens=(token(HEAD), Token("7", 800.0), token("}"))),
        Answer(text=HEAD + "7}", tokens=(token(HEAD), Token("7", 1.0), token("}"))),
        Answer(text=HEAD + "7}", tokens=(token(HEAD), Token("7", -math.inf), token("}"))),
        Answer(text=HEAD + "99}", tokens=(token(HEAD), token("99"), token("}"))),
    ],
)
def test_missing_expected_value_has_reason(answer):
    seen = expected_score(answer, low=0, high=10)
    assert seen.value is None
    assert seen.mass is None
    assert seen.missing.endswith(".")


def test_score_named_within_the_reason_is_never_taken():
    text = '{"score": 2, "reason": "ends with \\"score\\": 9}"}'
    assert expected_score(Answer(text=text, tokens=(token(text),)), low=0, high=10).value is None
