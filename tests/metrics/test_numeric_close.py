"""Numbers within a tolerance."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.metrics.numeric_close import NumericClose, find_number, parse_number
from deemster.records import Output, Sample


def marked(expected, text, **options):
    return NumericClose(**options).score(Sample("s", {}, expected), Output(text))


def test_number_within_tolerance_scores_one():
    assert marked(3.14159, "3.1415").score == 0.0
    assert marked(3.14159, "3.1415", rel_tol=1e-4).score == 1.0
    assert marked("1,234.5", " 1234.5\n").score == 1.0
    assert marked(-2000, "-2e3").score == 1.0
    assert marked(0, "0.001").score == 0.0
    assert marked(0, "0.001", abs_tol=0.001).score == 1.0


def test_distance_uses_exact_decimals():
    assert 0.4 - 0.3 > 0.1
    mark = marked(0.3, "0.4", abs_tol=0.1, rel_tol=0)
    assert (mark.score, mark.details) == (1.0, {"valid": True, "error": 0.1})


@pytest.mark.parametrize(
    "text", ["", "inf", "-inf", "nan", "1_000", "12 apples", "1,23", "0x10", "1.2.3", "--1", "²", "١"]
)
def test_output_without_a_number_scores_zero(text):
    mark = marked(1, text)
    assert (mark.score, mark.details) == (0.0, {"valid": False, "error": None})


@pytest.mark.parametrize("expected", [True, "abc", "", "inf", float("nan"), float("inf"), [1], {"a": 1}, "1_000"])
def test_non_numeric_expected_output_is_unscored_with_warning(expected):
    assert marked(expected, "1").cause == "bad_sample"
    (issue,) = NumericClose().check(Sample("s", {}, expected))
    assert issue.warning


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("It costs $1,234.50 or 20%.", "1234.50", "20"),
        ("between 3-5 days", "3", "5"),
        ("COVID-19 cases: -7", "19", "-7"),
        ("x=-5, y=.5", "-5", "0.5"),
        ("1,2,3", "1", "3"),
        ("5kg", "5", "5"),
        ("总共5个", "5", "5"),
        ("The answer is 42.", "42", "42"),
        ("1_000 or 7", "7", "7"),
        ("a1 b2", None, None),
        ("none", None, None),
    ],
)
def test_first_or_last_number_of_text_is_found(text, first, last):
    assert find_number(text) == (None if first is None else Decimal(first))
    assert find_number(text, last=True) == (None if last is None else Decimal(last))


def test_extract_chooses_the_number():
    assert marked(42, "of 7, 42", extract="last").score == 1.0
    assert marked(7, "of 7, 42", extract="first").score == 1.0
    assert marked(7, "of 7, 42").details["valid"] is False


def test_numbers_beyond_float_are_compared():
    assert marked("1e400", "1e400").score == 1.0
    mark = marked(1, "1e400")
    assert (mark.score, mark.details["error"]) == (0.0, None)
    assert marked(1, "1e99999999999999999999").details["valid"] is False
    assert marked(10**5000, "1e5000").score == 1.0


@given(st.text(alphabet="0123456789,.-+eE_ x"))
def test_any_text_parses_as_number_or_none(text):
    for found in (parse_number(text), find_number(text), find_number(text, last=True)):
        assert found is None or found.is_finite()


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_number_is_close_to_itself(number):
    assert marked(number, str(number), rel_tol=0).score == 1.0


@pytest.mark.parametrize(
    "option", [{"rel_tol": -1}, {"abs_tol": float("inf")}, {"rel_tol": True}, {"abs_tol": "1"}, {"extract": "frist"}]
)
def test_option_out_of_range_is_refused(option):
    with pytest.raises(ConfigurationError):
        NumericClose(**option)
