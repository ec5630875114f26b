from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError, MissingExtraError
from deemster.metrics.bleu_and_chrf import Bleu, Chrf
from tests.builders.marks import marked

BOTH = (Bleu(), Chrf())
SAT, LAY = "the cat sat on the mat", "the cat lay on the mat"


@pytest.mark.parametrize(("metric", "score"), [(Bleu(), 0.3799), (Chrf(), 0.6109), (Chrf(word_order=2), 0.6373)])
def test_worked_example_gives_published_score(metric, score):
    assert marked(metric, SAT, LAY).score == pytest.approx(score, abs=5e-5)


def test_bleu_details_have_precisions_and_brevity():
    details = marked(Bleu(), SAT, "the cat sat").details
    assert details["bp"] == pytest.approx(0.36787944117144233)
    assert details["precisions"] == (1.0, 1.0, 1.0, 0.0)
    assert details["signature"].startswith("nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:")


@pytest.mark.parametrize("metric", BOTH)
def test_best_of_several_references_counts(metric):
    mark = marked(metric, ["something else", LAY], LAY)
    assert mark.score == pytest.approx(1, abs=1e-9)
    assert mark.details["signature"].startswith("nrefs:2|")
    assert marked(metric, LAY, LAY).details["signature"].startswith("nrefs:1|")


@pytest.mark.parametrize("metric", [*BOTH, Bleu(tokenize="none"), Bleu(tokenize="char"), Chrf(word_order=2)])
def test_blank_texts_score_one_and_one_blank_text_scores_zero(metric):
    assert marked(metric, "", " ").score == 1
    assert marked(metric, "a", "").score == 0
    assert marked(metric, "", "a").score == 0
    assert marked(metric, ["a", ""], "").score == 1


@pytest.mark.parametrize("metric", BOTH)
def test_unreadable_sides_are_unscored(metric):
    assert marked(metric, None, "a").cause == "no_expected"
    assert marked(metric, {"a": 3}, "a").cause == "bad_sample"
    assert marked(metric, [], "a").cause == "bad_sample"
    assert marked(metric, "a", "\ud800").cause == "bad_output"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bleu(tokenize="flores200"),
        lambda: Bleu(tokenize="spm"),
        lambda: Bleu(smooth="expo"),
        lambda: Bleu(max_order=0),
        lambda: Bleu(max_order=10**9),
        lambda: Chrf(char_order=0),
        lambda: Chrf(word_order=-1),
        lambda: Chrf(beta=0),
        lambda: Chrf(beta=1e200),
    ],
)
def test_options_out_of_range_and_tokenizers_that_download_are_refused(make):
    with pytest.raises(ConfigurationError):
        make()


@pytest.mark.parametrize("make", [Bleu, Chrf])
def test_missing_sacrebleu_is_error_naming_the_extra(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingExtraError, match="bleu"):
        make()


@given(st.text(st.sampled_from("ab c.,<>skiped\n"), max_size=30), st.text(st.sampled_from("ab c.,"), max_size=30))
def test_scores_are_bounded_and_equal_texts_score_one(first, second):
    for metric in (*BOTH, Bleu(tokenize="intl", smooth="add-k"), Bleu(max_order=1, smooth="floor")):
        assert 0 <= marked(metric, first, second).score <= 1
        assert marked(metric, first, first).score == pytest.approx(1, abs=1e-9)
