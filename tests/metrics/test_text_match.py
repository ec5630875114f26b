from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.metrics.regex_match import Regex
from deemster.metrics.text_match import (
    Contains,
    ContainsAll,
    ContainsAny,
    ExactMatch,
    LengthWithin,
    Levenshtein,
    StartsWith,
)
from deemster.records import MetricScore, Output, Sample, Unscored
from tests.builders.marks import marked

EVERY = (ExactMatch(), Contains(), ContainsAny(), ContainsAll(), StartsWith(), Levenshtein())
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def scored(metric, expected, text):
    mark = marked(metric, expected, text)
    assert isinstance(mark, MetricScore), mark
    return mark


def cause(metric, expected, text="x"):
    mark = marked(metric, expected, text)
    assert isinstance(mark, Unscored), mark
    return mark.cause


def test_exact_match_is_case_sensitive_by_default():
    assert scored(ExactMatch(), "Paris", "paris").score == 0
    assert scored(ExactMatch(normalize=["casefold"]), "Paris", "paris").score == 1


def test_exact_match_details_have_first_difference():
    details = scored(ExactMatch(), "abcdef", "abcxef!").details
    assert details == {"match": False, "expected_chars": 6, "actual_chars": 7, "first_difference": 3}
    assert scored(ExactMatch(), "abc", "ab").details["first_difference"] == 2
    assert scored(ExactMatch(), "", "").details == {
        "match": True,
        "expected_chars": 0,
        "actual_chars": 0,
        "first_difference": None,
    }


def test_composed_and_decomposed_letters_differ_without_nfc():
    composed = "caf\u00e9"
    decomposed = unicodedata.normalize("NFD", composed)
    assert scored(ExactMatch(), composed, decomposed).score == 0
    assert scored(ExactMatch(normalize=["nfc"]), composed, decomposed).score == 1
    assert scored(ExactMatch(normalize=True), composed, f" {decomposed.upper()} ").score == 1


def test_any_of_accepts_each_text_of_a_list_and_describes_the_nearest():
    metric = ExactMatch(any_of=True)
    assert scored(metric, ["Paris", "City of Light"], "City of Light").score == 1
    details = scored(metric, ["London", "Paris"], "Par").details
    assert details == {"match": False, "expected_chars": 5, "actual_chars": 3, "first_difference": 3}
    assert cause(metric, "Paris") == "bad_sample"
    assert cause(metric, []) == "bad_sample"
    assert scored(metric, ["Paris", 3], "3").score == 1
    assert cause(metric, ["Paris", None]) == "bad_sample"
    assert cause(metric, None) == "no_expected"


def test_contains_finds_a_text_and_its_position():
    assert scored(Contains(), "30 days", "within 30 days.").details == {"match": True, "position": 7}
    assert scored(Contains(), "31 days", "within 30 days.").details == {"match": False, "position": None}
    assert scored(Contains(normalize=["casefold"]), "STRASSE", "Die Straße").score == 1


@pytest.mark.parametrize("metric", [Contains(), ContainsAny(), ContainsAll(), StartsWith()])
def test_empty_expected_text_is_bad_sample(metric):
    assert cause(metric, "") == "bad_sample"
    assert cause(type(metric)(normalize=["strip"]), "  ") == "bad_sample"


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        (ContainsAny(), 1),
        (ContainsAll(), 0),
        (ContainsAny(credit="fraction"), 2 / 3),
        (ContainsAll(credit="fraction"), 2 / 3),
    ],
)
def test_several_texts_are_counted(metric, score):
    mark = scored(metric, ["red", "blue", "green"], "red and blue")
    assert mark.score == score
    assert mark.details == {"required": 3, "found": 2, "missing": ("green",)}


def test_contains_any_and_all_take_one_text_too():
    assert scored(ContainsAny(), "red", "a red rose").score == 1
    assert scored(ContainsAll(), "red", "a rose").score == 0
    assert cause(ContainsAll(), []) == "bad_sample"
    assert cause(ContainsAll(), ["red", ""]) == "bad_sample"


def test_missing_texts_are_cut_at_twenty():
    details = scored(ContainsAll(), [f"t{number}" for number in range(21)], "nothing").details
    assert len(details["missing"]) == 20
    assert details["truncated"] is True
    assert "truncated" not in scored(ContainsAll(), [f"t{number}" for number in range(20)], "nothing").details


def test_starts_with_looks_at_the_beginning_only():
    assert scored(StartsWith(), "Yes", "Yes, sure").details == {"match": True}
    assert scored(StartsWith(), "Yes", "Oh Yes").score == 0
    assert scored(StartsWith(normalize=True), "yes", "  YES!").score == 1


def test_levenshtein_of_kitten_and_sitting_is_three():
    mark = scored(Levenshtein(), "kitten", "sitting")
    assert mark.score == 4 / 7
    assert mark.details == {"distance": 3, "expected_chars": 6, "actual_chars": 7}


def test_two_empty_texts_score_one_and_one_empty_text_scores_zero():
    assert scored(Levenshtein(), "", "").score == 1
    assert scored(Levenshtein(), "", "abc").score == 0
    assert scored(Levenshtein(), "abc", "").score == 0


def test_texts_above_max_cells_are_too_large_not_wrong():
    assert scored(Levenshtein(max_cells=9), "abc", "abc").score == 1
    assert cause(Levenshtein(max_cells=8), "abc", "abc") == "too_large"


@pytest.mark.parametrize(
    ("unit", "text", "length"),
    [("chars", "né e", 4), ("words", "snake_case x2!", 3), ("lines", "a\nb\n", 2), ("lines", "", 0), ("words", " ", 0)],
)
def test_length_is_measured_in_the_unit_asked_for(unit, text, length):
    metric = LengthWithin(min=length, max=length, unit=unit)
    assert scored(metric, None, text).score == 1
    assert scored(metric, None, text).details == {"length": length, "unit": unit}
    assert scored(LengthWithin(min=length + 1, unit=unit), None, text).score == 0
    if length:
        assert scored(LengthWithin(max=length - 1, unit=unit), None, text).score == 0


@pytest.mark.parametrize("metric", EVERY)
def test_null_expected_is_no_expected(metric):
    assert cause(metric, None) == "no_expected"


@pytest.mark.parametrize("metric", EVERY)
@pytest.mark.parametrize("expected", [True, {"a": "b"}])
def test_expected_output_of_another_type_is_a_bad_sample(metric, expected):
    assert cause(metric, expected) == "bad_sample"


@pytest.mark.parametrize(("number", "text"), [(42, "42"), (52.5, "52.5"), (-1, "-1")])
def test_number_is_compared_as_text(number, text):
    assert scored(ExactMatch(), number, text).score == 1
    assert scored(Contains(), number, f"It costs {text} dollars.").score == 1
    assert scored(ContainsAll(), [number, "dollars"], f"It costs {text} dollars.").score == 1


def test_boolean_in_place_of_text_gets_hint_to_quote():
    assert 'Quote it: "true"' in marked(ExactMatch(), True, "true").message


@pytest.mark.parametrize("metric", [*EVERY, LengthWithin(max=3)])
def test_lone_surrogate_in_the_output_is_a_bad_output(metric):
    assert cause(metric, "a", "a\ud800") == "bad_output"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ExactMatch(normalize=["casefolds"]), "`casefold`"),
        (lambda: ExactMatch(normalize=3), "`normalize`"),
        (lambda: ExactMatch(any_of="yes"), "`any_of`"),
        (lambda: ContainsAll(credit="fractions"), "`fraction`"),
        (lambda: ContainsAny(credit=1), "`credit`"),
        (lambda: Levenshtein(max_cells=0), "`max_cells`"),
        (lambda: Levenshtein(max_cells=float("nan")), "`max_cells`"),
        (lambda: Levenshtein(max_cells=True), "`max_cells`"),
        (LengthWithin, "`min`"),
        (lambda: LengthWithin(min=3, max=2), "`min`"),
        (lambda: LengthWithin(min=-1), "`min`"),
        (lambda: LengthWithin(max=2.5), "`max`"),
        (lambda: LengthWithin(max=2, unit="word"), "`words`"),
        (lambda: Contains(threshold=2), "`threshold`"),
    ],
)
def test_option_out_of_range_is_a_configuration_error_that_names_it(make, words):
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert words in str(caught.value)


@given(texts)
def test_text_matches_itself(text):
    assert scored(ExactMatch(), text, text).score == 1
    assert scored(Levenshtein(), text, text).score == 1
    assert scored(ExactMatch(normalize=True), text, text).score == 1
    if text:
        assert scored(Contains(), text, text).score == scored(StartsWith(), text, text).score == 1


@given(texts, texts)
def test_exact_match_and_levenshtein_are_symmetric(first, second):
    for metric in (ExactMatch(), Levenshtein()):
        assert scored(metric, first, second).score == scored(metric, second, first).score
    distance = scored(Levenshtein(), first, second).details["distance"]
    assert abs(len(first) - len(second)) <= distance <= max(len(first), len(second))


@given(texts, texts)
def test_first_difference_position_is_correct(first, second):
    position = scored(ExactMatch(), first, second).details["first_difference"]
    if position is None:
        assert first == second
    else:
        assert first[:position] == second[:position]
        assert first[position : position + 1] != second[position : position + 1]


def test_expected_text_may_stand_in_the_metadata():
    sample = Sample("s", {}, "Paris", {"mentions": ["river", "Seine"]})
    metric = ContainsAll(expected="mentions")
    assert metric.score(sample, Output("The Seine is a river.")).success
    assert not metric.score(sample, Output("Paris")).success
    assert metric.needs == ("mentions",)


def test_sample_without_the_key_is_a_warning_that_names_it():
    (issue,) = Contains(expected="mentions").check(Sample("s", {}, "Paris"))
    assert issue.warning
    assert "no `metadata.mentions`" in issue.message


@pytest.mark.parametrize(
    "metric", [ExactMatch, Contains, ContainsAny, ContainsAll, StartsWith, Regex], ids=lambda metric: metric.alias
)
def test_text_that_must_not_occur_passes_where_it_does_not(metric):
    forbidding = metric(negate=True)
    sample = Sample("s", {}, "AI")
    assert [forbidding.score(sample, Output(text)).score for text in ("AI", "a person")] == [0, 1]
    assert str(forbidding) == f"{metric.alias}(negate=true)"


@pytest.mark.parametrize("key", ["", " ", 7])
def test_key_of_the_expected_text_is_text(key):
    with pytest.raises(ConfigurationError, match="`expected` of contains is a key of the metadata"):
        Contains(expected=key)
