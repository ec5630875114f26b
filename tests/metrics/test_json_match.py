"""JSON compared leaf by leaf."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.metrics.json_match import JsonMatch
from deemster.records import Output, Sample

ROME = {"city": "Rome", "pop": 2.8, "tags": ["eu", "it"]}
GIVEN = {"city": "Rome", "pop": 3, "tags": ["eu"], "x": 1}

scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text("ab", max_size=2)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=1), inner, max_size=3),
    max_leaves=12,
)


def marked(expected, actual, **options):
    text = actual if isinstance(actual, str) else json.dumps(actual)
    return JsonMatch(**options).score(Sample("s", {}, expected), Output(text))


def test_half_of_leaves_scores_half_and_extra_leaves_count_in_exact():
    mark = marked(ROME, GIVEN)
    assert mark.score == 0.5
    assert mark.details == {
        "valid": True,
        "expected": 4,
        "matched": 2,
        "wrong": 1,
        "missing": 1,
        "extra": 1,
        "paths": ("/pop", "/tags/1"),
    }
    exact = marked(ROME, GIVEN, mode="exact")
    assert (exact.score, exact.details["paths"]) == (0.4, ("/pop", "/tags/1", "/x"))


def test_expected_json_text_is_parsed():
    assert marked(json.dumps(ROME), GIVEN).score == 0.5
    assert marked('"Rome"', '"Rome"').score == 1.0
    assert marked("Rome", '"Rome"').cause == "bad_sample"
    assert marked("null", "null").score == 1.0
    assert marked(None, "null").cause == "no_expected"


@pytest.mark.parametrize(
    ("expected", "actual", "score"),
    [
        ([1], [1.0], 1.0),
        ([1], [True], 0.0),
        ([False], [0], 0.0),
        ([None], [False], 0.0),
        (["1"], [1], 0.0),
        ([10**30], [1e30], 0.0),
        ({"a": {}}, {"a": {}}, 1.0),
        ({"a": {}}, {"a": []}, 0.0),
        ({"a": {}}, {"a": {"b": 1}}, 0.0),
        ({"a": {"b": 1}}, {"a": 1}, 0.0),
        ([], [], 1.0),
        ([[1, 2], [3]], [[1, 2], [3], [4]], 1.0),
    ],
)
def test_leaf_matches_by_value_and_kind(expected, actual, score):
    assert marked(expected, actual).score == score


def test_leaf_in_place_of_a_container_counts_both_ways():
    details = marked({"a": {"b": 1, "c": 2}}, {"a": 5}).details
    assert (details["missing"], details["wrong"], details["extra"]) == (2, 0, 1)
    details = marked({"a": 5}, {"a": {"b": 1, "c": 2}}).details
    assert (details["missing"], details["wrong"], details["extra"]) == (0, 1, 2)


def test_scalars_of_a_list_may_be_compared_as_a_multiset():
    assert marked(["a", "b", "b"], ["b", "a", "c"]).score == 0.0
    mark = marked(["a", "b", "b"], ["b", "a", "c"], lists="set")
    assert (mark.score, mark.details["missing"], mark.details["extra"]) == (2 / 3, 1, 1)
    assert marked([1, True, None, "x"], ["x", None, True, 1.0], lists="set", mode="exact").score == 1.0
    assert marked([1, {"a": 1}, {"b": 2}], [{"a": 1}, {"b": 2}, 1], lists="set").score == 1.0


def test_numbers_match_within_relative_tolerance():
    assert marked(ROME, GIVEN, rel_tol=0.1).score == 0.75
    assert marked([100, 200], [201, 101], rel_tol=0.01, lists="set").score == 1.0
    assert marked([1e308], "[1e309]", rel_tol=0.5).score == 0.0
    assert marked("[1e999]", "[10e998]").score == 1.0


def test_text_is_normalized_on_request():
    assert marked({"city": "Rome"}, {"city": " rome"}).score == 0.0
    assert marked({"city": "Rome"}, {"city": " rome"}, normalize=True).score == 1.0
    assert marked(["Rome", "b"], ["B", "rome"], normalize=["casefold"], lists="set").score == 1.0


def test_ignored_paths_are_left_out_on_both_sides():
    expected = {"id": 1, "items": [{"id": 2, "n": "a"}, {"id": 3, "n": "b"}], "a/b": 1}
    actual = {"id": 9, "items": [{"id": 8, "n": "a"}, {"n": "b"}], "a/b": 2, "extra": 1}
    assert marked(expected, actual, ignore=["id", "/a~1b", "/extra"], mode="exact").score == 1.0
    assert marked(expected, actual, ignore=["/items/*/id", "/id"]).score == 2 / 3
    assert marked([1, 2, 3], [9, 2, 3], ignore=["/0"]).score == 1.0
    assert marked([1, 2, 3], [9, 2, 4], ignore=["/0"]).details["paths"] == ("/2",)
    assert marked([1], [1], ignore=["/0"]).cause == "bad_sample"


def test_container_emptied_by_ignore_is_no_leaf():
    assert marked({"id": 1}, {"id": 2}, ignore=["id"]).cause == "bad_sample"
    assert marked([{"id": 1}], [{"id": 2}], ignore=["id"]).cause == "bad_sample"
    nested = {"a": {"id": 1}, "b": 1}
    assert marked(nested, {"b": 1}, ignore=["id"], mode="exact").score == 1.0
    assert marked(nested, {"a": {"id": 2, "x": 3}, "b": 1}, ignore=["id"], mode="exact").score == 0.5
    assert marked({"a": {"x": 3}, "b": 1}, {"a": {"id": 2}, "b": 1}, ignore=["id"]).details["missing"] == 1
    assert marked({"a": {}, "b": 1}, {"a": {}, "b": 1}, ignore=["id"]).details["expected"] == 2
    assert marked([[7], 2], [[8], 2], ignore=["/0/0"], mode="exact").score == 1.0
    assert marked([{"id": 1}, 2], [{"id": 2, "x": 3}, 2], ignore=["id"], mode="exact").score == 0.5
    assert marked([{"id": 1, "x": 3}, 2], [{"id": 2}, 2], ignore=["id"], mode="exact").score == 0.5


@pytest.mark.parametrize("digits", [400, 4000, 4301, 6000])
def test_integers_of_any_length_are_compared(digits):
    number = 10 ** (digits - 1) + 7
    text = "[1" + "0" * (digits - 2) + "7]"
    assert marked([number], text).score == 1.0
    assert marked([number + 1], text).score == 0.0
    assert marked([number], text, rel_tol=0.5, lists="set").score == 1.0
    assert marked([number], "[1]", rel_tol=0.5).score == 0.0
    assert not JsonMatch().check(Sample("s", {}, {"a": number}))


def test_non_finite_expected_decimal_is_bad_sample():
    for odd in ("NaN", "sNaN", "Infinity"):
        assert marked([Decimal(odd)], "[1]").cause == "bad_sample"
    assert marked([Decimal("1e400")], "[1e400]").score == 1.0


def test_output_that_is_not_json_scores_zero():
    mark = marked(ROME, "Rome")
    assert (mark.score, mark.details) == (0.0, {"valid": False, "line": 1, "column": 1})
    assert marked(ROME, f"```json\n{json.dumps(ROME)}\n```", fenced=True).score == 1.0


def test_paths_are_cut_at_twenty():
    details = marked(list(range(30)), []).details
    assert (details["missing"], len(details["paths"]), details["truncated"]) == (30, 20, True)


def test_non_json_values_are_error():
    deep = []
    for _ in range(300):
        deep = [deep]
    (issue,) = JsonMatch().check(Sample("s", {}, deep))
    assert not issue.warning
    for odd in ([float("nan")], {1: 2}, [object()]):
        assert marked(odd, "[]").cause == "bad_sample"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"mode": "exakt"}, "Did you mean `exact`"),
        ({"lists": "sets"}, "Did you mean `set`"),
        ({"rel_tol": 1}, "below 1"),
        ({"rel_tol": -0.1}, "at least 0"),
        ({"rel_tol": "x"}, "at least 0"),
        ({"ignore": [1]}, "JSON pointers or keys"),
        ({"ignore": [""]}, "JSON pointers or keys"),
        ({"ignore": 5}, "JSON pointers or keys"),
        ({"normalize": "lower"}, "knows no step"),
    ],
)
def test_option_out_of_range_is_refused(option, message):
    with pytest.raises(ConfigurationError, match=message):
        JsonMatch(**option)


@given(values, values, st.sampled_from(["ordered", "set"]), st.sampled_from([0, 0.1, 0.5]))
def test_exact_is_symmetric(one, other, lists, rel_tol):
    there = marked([one], [other], mode="exact", lists=lists, rel_tol=rel_tol)
    back = marked([other], [one], mode="exact", lists=lists, rel_tol=rel_tol)
    assert there.score == back.score


@given(values, st.randoms(use_true_random=False))
def test_order_of_scalars_never_matters_in_a_set(value, random):
    entries = [value, 1, "a", None, 2.5, "a"]
    shuffled = [entry for entry in entries if not isinstance(entry, (list, dict))]
    random.shuffle(shuffled)
    containers = [entry for entry in entries if isinstance(entry, (list, dict))]
    assert marked(entries, [*shuffled, *containers], lists="set", mode="exact").score == 1.0


@given(values, values)
def test_counts_add_up(one, other):
    details = marked([one], [other], mode="exact").details
    assert details["matched"] + details["wrong"] + details["missing"] == details["expected"]
    reverse = marked([other], [one], mode="exact").details
    assert details["matched"] == reverse["matched"]
    assert details["expected"] + details["extra"] == reverse["expected"] + reverse["extra"]
