"""What length costs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError, RubricError
from deemster.rubrics import LengthPenalty
from deemster.rubrics.length_penalty import submission_parts

SHORT = LengthPenalty(free_budget=100, max_cap=200)


@pytest.mark.parametrize(
    ("words", "penalty"), [(0, 0.0), (100, 0.0), (150, 0.1649), (199, 0.4920), (200, 0.5), (5000, 0.5)]
)
def test_penalty_equals_numbers_of_specification(words, penalty):
    assert round(SHORT.at(words), 4) == penalty
    assert round(SHORT.of("word\n" * words), 4) == penalty


@given(st.floats(0, 300), st.floats(0, 300))
def test_more_words_never_cost_less(fewer, more):
    fewer, more = sorted((fewer, more))
    assert 0 <= SHORT.at(fewer) <= SHORT.at(more) <= 0.5


@pytest.mark.parametrize(
    ("text", "thinking", "output"),
    [
        ("a b", "", "a b"),
        ("<thinking>a</thinking>b c", "a", "b c"),
        ("<thinking>a</thinking><output>b c</output>", "a", "b c"),
        ("<output>b c</output> d", "", "b c"),
        ("<thinking>a b c", "a b c", ""),
        ("<output>b c", "", "b c"),
    ],
)
def test_parts_of_a_text_are_recognised(text, thinking, output):
    parts = submission_parts(text)
    assert (parts.thinking.split(), parts.output.split()) == (thinking.split(), output.split())


def test_each_part_can_be_counted():
    text = "<thinking>a b c d</thinking><output>e f</output> g"

    def words(part):
        return LengthPenalty(0, 10, penalty_at_cap=1.0, exponent=1, part=part).of(text)

    assert [round(10 * words(part)) for part in ("thinking", "output", "all")] == [4, 2, 7]


def test_submission_may_come_in_parts():
    line = LengthPenalty(0, 10, penalty_at_cap=1.0, exponent=1)
    assert line.of({"thinking": "a b", "output": "c"}) == pytest.approx(0.3)
    assert line.of({"output": "c"}) == pytest.approx(0.1)


def test_custom_count_function_is_used():
    line = LengthPenalty(0, 10, penalty_at_cap=1.0, exponent=1, count=len)
    assert line.of("abc") == pytest.approx(0.3)
    with pytest.raises(RubricError, match="A count of units is a finite number of at least 0, not nan"):
        LengthPenalty(count=lambda _: math.nan).of("abc")


@pytest.mark.parametrize("submission", [3, None, {"answer": "x"}, {"output": 3}])
def test_invalid_submission_is_error(submission):
    with pytest.raises(RubricError, match="A submission"):
        SHORT.of(submission)


def test_all_impossible_settings_are_reported():
    with pytest.raises(ConfigurationError) as error:
        LengthPenalty(-1, math.inf, count=3, part="thnking")
    assert [issue.message for issue in error.value.issues] == [
        "max_cap is inf, which is not a finite number.",
        "free_budget must be a number of at least 0, not -1.",
        "count must be `words` or a function of a text, not a number.",
        "part must be one of `all`, `output`, `thinking`, not `thnking`. Did you mean `thinking`?",
    ]
    with pytest.raises(ConfigurationError, match="free_budget must be below max_cap, and 200 is not"):
        LengthPenalty(200, 200)
    with pytest.raises(ConfigurationError, match="exponent must be a number above 0, not 0"):
        LengthPenalty(exponent=0)
