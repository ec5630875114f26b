"""bleu and chrf against sacrebleu's own sentence functions."""

from __future__ import annotations

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from deemster.metrics.bleu_and_chrf import Bleu, Chrf
from deemster.records import Output, Sample

words = st.lists(st.sampled_from(["the", "cat", "sat,", "on", "mat.", "9.5", "Über"]), min_size=1, max_size=12)
sentences = words.map(" ".join)


@given(st.lists(sentences, min_size=1, max_size=3), sentences, st.sampled_from(["exp", "floor", "add-k", "none"]))
def test_sentence_bleu_equals_sacrebleu(references, hypothesis, smooth):
    mark = Bleu(smooth=smooth).score(Sample("s", {}, references), Output(hypothesis))
    peer = sacrebleu.sentence_bleu(hypothesis, references, smooth_method=smooth, use_effective_order=True)
    assert mark.score == pytest.approx(min(peer.score / 100, 1), abs=1e-12)
    assert mark.details["bp"] == peer.bp
    assert mark.details["precisions"] == pytest.approx([value / 100 for value in peer.precisions])


@given(st.lists(sentences, min_size=1, max_size=3), sentences, st.integers(0, 2), st.sampled_from([1, 2, 3]))
def test_sentence_chrf_equals_sacrebleu(references, hypothesis, word_order, beta):
    mark = Chrf(word_order=word_order, beta=beta).score(Sample("s", {}, references), Output(hypothesis))
    peer = sacrebleu.sentence_chrf(hypothesis, references, word_order=word_order, beta=beta)
    assert mark.score == pytest.approx(min(peer.score / 100, 1), abs=1e-12)
