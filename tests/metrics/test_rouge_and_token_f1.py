from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.metrics.rouge_and_token_f1 import RougeL, TokenF1
from tests.builders.marks import marked

BOTH = (RougeL(), TokenF1())
prose = st.text(st.sampled_from("ab cdé_.-\u0301the "), max_size=40)


@pytest.mark.parametrize(
    ("expected", "text", "lcs", "m", "n", "score"),
    [
        ("the cat sat on the mat", "the cat lay on the mat", 5, 6, 6, 10 / 12),
        ("Returns close after thirty days", "You can send it back within thirty days", 2, 5, 8, 4 / 13),
        ("a b c d", "d c b a", 1, 4, 4, 0.25),
        ("Snake_case, x2!", "snake CASE x2", 3, 3, 3, 1),
        ("É tude", "e\u0301 TUDE", 2, 2, 2, 1),
        ("naïve plan", "a plan", 1, 2, 2, 0.5),
    ],
)
def test_rouge_l_follows_the_longest_common_subsequence(expected, text, lcs, m, n, score):
    mark = marked(RougeL(), expected, text)
    assert mark.score == score
    assert mark.details == {
        "lcs": lcs,
        "expected_tokens": m,
        "actual_tokens": n,
        "precision": lcs / n,
        "recall": lcs / m,
    }


def test_rouge_l_above_max_cells_is_too_large():
    assert marked(RougeL(max_cells=4), "a b", "a b").score == 1
    assert marked(RougeL(max_cells=3), "a b", "a b").cause == "too_large"


def test_rouge_l_of_long_texts_compares_plain_letters_with_others():
    long = " ".join(f"Straße{number} word{number}, weißgewaschene_Straßenkreuzungen" for number in range(300))
    mark = marked(RougeL(), long, long.replace("ß", "ss"))
    assert mark.details["lcs"] == 300
    assert mark.details["expected_tokens"] == mark.details["actual_tokens"] == 1_200
    assert marked(RougeL(max_cells=1_200**2 - 1), long, long).cause == "too_large"
    assert marked(RougeL(max_cells=1_200**2), long, long.upper().lower()).score == mark.score
    assert marked(RougeL(), long, long).score == 1


def test_rouge_l_of_long_text_and_empty_text_is_zero():
    assert marked(RougeL(), "word " * 2_000, "...").details["expected_tokens"] == 2_000
    assert marked(RougeL(), "word " * 2_000, "...").score == 0
    assert marked(RougeL(), "." * 10_000, "...").score == 1


def test_token_f1_of_worked_example_is_two_thirds():
    mark = marked(TokenF1(), "the Eiffel Tower", "Eiffel Tower in Paris")
    assert mark.score == 4 / 6
    assert mark.details == {
        "common": 2,
        "expected_tokens": 2,
        "actual_tokens": 4,
        "precision": 0.5,
        "recall": 1.0,
    }


@pytest.mark.parametrize(
    ("metric", "expected", "text", "score"),
    [
        (TokenF1(), "U.S.A.", "usa", 1),
        (TokenF1(), "well—known", "wellknown", 1),
        (TokenF1(), "a b b", "b b b", 0.8),
        (TokenF1(articles="keep"), "the b", "b", 2 / 3),
        (TokenF1(), "the b", "b", 1),
        (TokenF1(), ["x y", "b"], "the b", 1),
        (TokenF1(), "the", "a", 1),
    ],
)
def test_token_f1_ignores_case_punctuation_and_articles(metric, expected, text, score):
    assert marked(metric, expected, text).score == pytest.approx(score, abs=1e-15)


def test_token_f1_details_describe_best_reference():
    assert marked(TokenF1(), ["x", "b c", "b"], "b").details["expected_tokens"] == 1


@pytest.mark.parametrize("metric", BOTH)
def test_no_tokens_on_both_sides_score_one_and_on_one_side_zero(metric):
    mark = marked(metric, "...", "")
    assert (mark.score, mark.details["precision"], mark.details["recall"]) == (1, None, None)
    assert marked(metric, "word", "!").score == 0
    assert marked(metric, "", "word").score == 0


@pytest.mark.parametrize("metric", BOTH)
def test_unreadable_sides_are_unscored(metric):
    assert marked(metric, None, "a").cause == "no_expected"
    assert marked(metric, {"a": 3}, "a").cause == "bad_sample"
    assert marked(metric, "a", "\ud800").cause == "bad_output"
    assert marked(TokenF1(), [], "a").cause == "bad_sample"
    assert marked(TokenF1(), ["a", None], "a").cause == "bad_sample"
    assert marked(RougeL(), ["a"], "a").cause == "bad_sample"


@pytest.mark.parametrize("make", [lambda: RougeL(max_cells=-1), lambda: TokenF1(articles="dropped")])
def test_wrong_options_are_configuration_errors(make):
    with pytest.raises(ConfigurationError):
        make()


@given(prose, prose)
def test_overlap_is_symmetric_bounded_and_full_for_equal_texts(first, second):
    for metric in BOTH:
        there, back = marked(metric, first, second), marked(metric, second, first)
        assert there.score == back.score
        assert there.details["precision"] == back.details["recall"]
        assert 0 <= there.score <= 1
        assert marked(metric, first, first).score == 1
