"""rouge-l against Google's rouge-score."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from deemster.metrics.rouge_and_token_f1 import RougeL
from deemster.records import Output, Sample

PEER = RougeScorer(["rougeL"], use_stemmer=False)
ascii_prose = st.lists(st.sampled_from(["the", "Cat", "sat,", "on-a", "mat.", "x_2", "9", "!", "\n"]), max_size=25).map(
    " ".join
)


@given(st.one_of(ascii_prose, st.text(st.characters(codec="ascii"), max_size=30)), ascii_prose)
def test_rouge_scores_equal_rouge_score(expected, actual):
    mark = RougeL().score(Sample("s", {}, expected), Output(actual))
    peer = PEER.score(expected, actual)["rougeL"]
    if mark.details["expected_tokens"] and mark.details["actual_tokens"]:
        assert mark.score == pytest.approx(peer.fmeasure, abs=1e-12)
        assert mark.details["precision"] == pytest.approx(peer.precision, abs=1e-12)
        assert mark.details["recall"] == pytest.approx(peer.recall, abs=1e-12)
    else:
        assert peer.fmeasure == 0
        assert mark.score == float(mark.details["expected_tokens"] == mark.details["actual_tokens"])


@pytest.mark.parametrize("size", [500, 800, 1_200])
def test_long_texts_equal_rouge_score_too(size):
    rng = random.Random(3)
    words = [f"w{number}" for number in range(400)]
    own = [f"v{number}" for number in range(400)]
    for shared in (0.0, 0.5, 1.0):
        first = " ".join(rng.choices(words, k=size))
        second = " ".join(rng.choice(words if rng.random() < shared else own) for _ in range(size - 100))
        expected = PEER.score(first, second)["rougeL"].fmeasure
        assert RougeL().score(Sample("s", {}, first), Output(second)).score == pytest.approx(expected, abs=1e-12)
