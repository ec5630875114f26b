import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.metrics import _vector_matching as matching
from deemster.metrics._text_normalization import word_tokens
from deemster.metrics.semantic_similarity import BertscoreLike, CosineEmbedding
from deemster.records import Answer, Embed, MetricScore, NoAnswer, Output, Sample, Unscored, Vectors

TABLE = {
    "e": (1, 0),
    "a": (0.6, 0.8),
    "b": (-0.6, 0.8),
    "cat": (1, 0),
    "dog": (0.8, 0.6),
    "car": (0, 1),
    "anticat": (-1, 0),
    "nowhere": (0, 0),
    "broken": (math.nan, 1),
    "endless": (math.inf, 1),
    "large": (3e300, 4e300),
    "small": (3e-300, 4e-300),
}
TOKENS = ["cat", "dog", "car", "anticat", "e", "a", "b"]
sentences = st.lists(st.sampled_from(TOKENS), max_size=6).map(" ".join)
metrics = st.sampled_from(
    [
        CosineEmbedding(),
        CosineEmbedding(mode="rescale"),
        BertscoreLike(),
        BertscoreLike(tokens="all"),
        BertscoreLike(attribute=True, attribute_limit=2),
    ]
)


def vector(text):
    """From the table, or made up from its characters."""
    if text in TABLE:
        return TABLE[text]
    return (1.0 + len(text), *(float(ord(text[-1]) % 7 - 3) for _ in range(1)))


def answered(requests, vectors=vector):
    return [Vectors(values=[vectors(text) for text in request.texts]) for request in requests]


def played(script, reply=answered):
    """The result of a script, and the rounds it asked."""
    rounds = []
    try:
        requests = next(script)
        while True:
            rounds.append(requests)
            requests = script.send(reply(requests))
    except StopIteration as stop:
        return stop.value, rounds


def marked(metric, expected, actual, reply=answered):
    return played(metric.script(Sample("s", {}, expected), Output(actual)), reply)[0]


def asked(metric, expected, actual):
    return [
        request.texts
        for requests in played(metric.script(Sample("s", {}, expected), Output(actual)))[1]
        for request in requests
    ]


def test_score_is_cosine_or_rescaled_cosine():
    assert marked(CosineEmbedding(), "e", "a").score == pytest.approx(0.6)
    assert marked(CosineEmbedding(mode="rescale"), "e", "a").score == pytest.approx(0.8)


def test_negative_cosine_scores_0_unless_rescaled():
    clamped = marked(CosineEmbedding(), "e", "b")
    assert clamped.score == 0
    assert clamped.details["cosine"] == pytest.approx(-0.6)
    assert marked(CosineEmbedding(mode="rescale"), "e", "b").score == pytest.approx(0.2)


def test_details_of_a_cosine_are_numbers_and_the_mode():
    mark = marked(CosineEmbedding(), "e", "a")
    assert dict(mark.details) == {"cosine": pytest.approx(0.6), "dimensions": 2, "mode": "clamp"}


def test_extreme_vector_lengths_do_not_change_score():
    assert marked(CosineEmbedding(), "large", "small").score == pytest.approx(1)
    assert marked(CosineEmbedding(), "e", "large").score == pytest.approx(0.6)
    assert marked(CosineEmbedding(), "e", "small").score == pytest.approx(0.6)


def test_each_distinct_text_is_embedded_once():
    assert asked(CosineEmbedding(), "a b", "b c") == [("a b", "b c")]
    assert asked(CosineEmbedding(), "a b", "a b") == [("a b",)]


def test_each_distinct_token_is_embedded_once():
    assert asked(BertscoreLike(), "cat CAR", "dog car, car") == [("cat", "car", "dog")]


def test_every_token_is_matched_with_its_best_on_the_other_side():
    mark = marked(BertscoreLike(), "cat car", "dog car car")
    assert mark.score == pytest.approx(0.9)
    assert dict(mark.details) == {
        "expected_tokens": 2,
        "actual_tokens": 2,
        "embedded_tokens": 3,
        "precision": pytest.approx(0.9),
        "recall": pytest.approx(0.9),
    }


def test_repeated_tokens_count_in_means_on_request():
    mark = marked(BertscoreLike(tokens="all"), "cat car", "dog car car")
    assert mark.details["precision"] == pytest.approx((0.8 + 1 + 1) / 3)
    assert mark.details["recall"] == pytest.approx(0.9)
    assert mark.score == pytest.approx(0.9164, abs=5e-5)
    assert (mark.details["expected_tokens"], mark.details["actual_tokens"]) == (2, 3)


def test_cosine_below_0_counts_as_0_in_a_match():
    assert marked(BertscoreLike(), "cat", "anticat").score == 0
    mark = marked(BertscoreLike(), "cat car", "anticat car")
    assert (mark.details["recall"], mark.details["precision"]) == (0.5, 0.5)


def test_attribution_lists_the_worst_matches_first():
    mark = marked(BertscoreLike(attribute=True), "car cat", "dog car")
    assert [list(match) for match in mark.details["matches"]] == [
        ["cat", "dog", pytest.approx(0.8)],
        ["car", "car", 1.0],
    ]
    assert "truncated" not in mark.details


def test_attribution_is_cut_at_limit_and_marked():
    mark = marked(BertscoreLike(attribute=True, attribute_limit=1), "car cat", "dog car")
    assert [match[0] for match in mark.details["matches"]] == ["cat"]
    assert mark.details["truncated"] is True


def test_unmatched_token_has_no_attribution():
    mark = marked(BertscoreLike(attribute=True), "cat", "...")
    assert [list(match) for match in mark.details["matches"]] == [["cat", None, 0.0]]


def test_attribution_is_the_only_detail_that_quotes():
    assert BertscoreLike.quotes == {"matches"}
    assert CosineEmbedding.quotes == frozenset()


@pytest.mark.parametrize("metric", [CosineEmbedding(), BertscoreLike(), BertscoreLike(tokens="all")], ids=str)
@pytest.mark.parametrize(("expected", "actual", "score"), [("", " \n", 1), ("cat", "", 0), ("\t", "cat", 0)])
def test_blank_texts_are_marked_without_asking_a_model(metric, expected, actual, score):
    mark, rounds = played(metric.script(Sample("s", {}, expected), Output(actual)))
    assert (mark.score, rounds) == (score, [])


def test_texts_without_tokens_count_as_empty():
    mark, rounds = played(BertscoreLike().script(Sample("s", {}, "?!"), Output("...")))
    assert (mark.score, rounds) == (1, [])
    assert mark.details["precision"] is None
    assert mark.details["recall"] is None
    one = marked(BertscoreLike(), "cat", "...")
    assert (one.score, one.details["recall"], one.details["precision"]) == (0, 0, None)


def test_more_distinct_tokens_than_allowed_on_a_side_are_too_large():
    metric = BertscoreLike(max_tokens=2)
    assert isinstance(marked(metric, "cat dog cat", "dog"), MetricScore)
    mark = marked(metric, "cat", "cat dog car")
    assert (mark.cause, "`max_tokens`, 2" in mark.message) == ("too_large", True)


@pytest.mark.parametrize("metric", [CosineEmbedding(), BertscoreLike()], ids=str)
def test_unreadable_sample_or_output_is_unscored_without_request(metric):
    def cause(expected, actual):
        mark, rounds = played(metric.script(Sample("s", {}, expected), Output(actual)))
        assert rounds == []
        return mark.cause

    assert cause(None, "cat") == "no_expected"
    assert cause({"text": "cat"}, "cat") == "bad_sample"
    assert cause("cat", "\ud800") == "bad_output"


@pytest.mark.parametrize("metric", [CosineEmbedding(), BertscoreLike()], ids=str)
@pytest.mark.parametrize(
    "values",
    [
        [[1.0, 0.0]],
        [[1.0, 0.0]] * 3,
        [[1.0, 0.0], [1.0]],
        [[], []],
        [1.0, 2.0],
        [["1", "0"], ["0", "1"]],
        [[True, False], [True, True]],
        [[1j, 1], [0, 1]],
        [None, None],
        [],
        None,
        7,
        "no vectors",
        np.zeros((2, 2, 2)),
    ],
    ids=repr,
)
def test_vectors_of_the_wrong_number_shape_or_kind_are_unreadable(metric, values):
    mark = marked(metric, "cat", "dog", lambda _: [Vectors(values=values)])
    assert isinstance(mark, Unscored)
    assert mark.cause == "unreadable"


@pytest.mark.parametrize("metric", [CosineEmbedding(), BertscoreLike()], ids=str)
@pytest.mark.parametrize("text", ["nowhere", "broken", "endless"])
def test_vector_without_a_direction_is_unreadable_on_either_side(metric, text):
    for mark in (marked(metric, text, "cat"), marked(metric, "cat", text), marked(metric, text, text)):
        assert mark.cause == "unreadable"


def test_chat_answer_in_place_of_vectors_is_unreadable():
    assert marked(CosineEmbedding(), "cat", "dog", lambda _: [Answer(text="no")]).cause == "unreadable"


@pytest.mark.parametrize("cause", ["model_failed", "rate_limited", "unreadable", "not_run"])
def test_missing_answer_gives_cause_of_mark(cause):
    mark = marked(CosineEmbedding(), "cat", "dog", lambda _: [NoAnswer(cause=cause, message="Why.")])
    assert (mark.cause, mark.message) == (cause, "Why.")


def together(metric, pairs, reply=answered):
    samples = [Sample(str(number), {}, expected) for number, (expected, _) in enumerate(pairs)]
    return played(metric.script_many(samples, [Output(actual) for _, actual in pairs]), reply)


def test_batch_embeds_distinct_texts_in_one_request():
    marks, rounds = together(BertscoreLike(), [("cat", "dog"), ("", ""), ("dog car", "cat")])
    assert [[request.texts for request in requests] for requests in rounds] == [[("cat", "dog", "car")]]
    assert [round(mark.score, 4) for mark in marks] == [
        0.8,
        1,
        round(marked(BertscoreLike(), "dog car", "cat").score, 4),
    ]


def test_zero_vector_fails_only_its_mark():
    marks, _ = together(CosineEmbedding(), [("cat", "dog"), ("cat", "nowhere"), ("car", "dog")])
    assert [getattr(mark, "cause", None) for mark in marks] == [None, "unreadable", None]


def test_refused_text_fails_only_its_mark():
    def reply(requests):
        return [
            NoAnswer(cause="model_failed", message="Refused.") if "car" in request.texts else answered([request])[0]
            for request in requests
        ]

    marks, rounds = together(CosineEmbedding(), [("cat", "dog"), ("cat", "car"), ("e", "a")], reply)
    assert [getattr(mark, "cause", None) for mark in marks] == [None, "model_failed", None]
    assert [len(requests) for requests in rounds] == [1, 3]


@pytest.mark.parametrize("cause", ["rate_limited", "not_run"])
def test_general_failure_is_not_retried_per_text(cause):
    marks, rounds = together(
        CosineEmbedding(), [("cat", "dog"), ("cat", "car")], lambda _: [NoAnswer(cause=cause, message="Why.")]
    )
    assert [mark.cause for mark in marks] == [cause, cause]
    assert len(rounds) == 1


def test_long_batches_are_embedded_in_blocks(monkeypatch):
    monkeypatch.setattr(matching, "PAIRS", 2)
    pairs = [("cat", "dog"), ("car", "dog"), ("e", "a")]
    marks, rounds = together(CosineEmbedding(), pairs)
    assert [requests[0].texts for requests in rounds] == [("cat", "dog", "car"), ("e", "a")]
    assert [mark.score for mark in marks] == [marked(CosineEmbedding(), *pair).score for pair in pairs]


def test_many_tokens_are_embedded_in_blocks(monkeypatch):
    monkeypatch.setattr(matching, "TEXTS", 3)
    _, rounds = together(BertscoreLike(), [("cat", "dog"), ("car", "dog"), ("e", "a")])
    assert [requests[0].texts for requests in rounds] == [("cat", "dog", "car"), ("e", "a")]


@pytest.mark.parametrize("depth", [2, 256, 3072])
@pytest.mark.parametrize("cosine", [0.1, 0.35, 0.6, 0.7, 0.8, 0.95, 0.999])
def test_threshold_equal_to_mathematical_value_is_met(depth, cosine):
    # Two directions at a known angle, turned at random in the space, in the single precision of models.
    basis = np.linalg.qr(np.random.default_rng(depth).standard_normal((depth, 2)))[0].T
    plane = {"cat": [1, 0], "dog": [cosine, math.sqrt(1 - cosine**2)]}

    def reply(requests):
        return [
            Vectors(values=np.array([plane[text] for text in request.texts] @ basis, dtype=np.float32))
            for request in requests
        ]

    for metric in (CosineEmbedding(threshold=cosine), BertscoreLike(threshold=cosine)):
        mark = marked(metric, "cat", "dog", reply)
        assert (mark.score, mark.success) == (cosine, True)
    mean = (cosine + 1) / 2
    assert marked(CosineEmbedding(mode="rescale", threshold=mean), "cat", "dog", reply).success
    assert marked(BertscoreLike(), "cat dog", "dog", reply).details["recall"] == mean


@pytest.mark.parametrize("depth", [3, 256, 3000])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (7, 90), (90, 7), (70, 70)])
def test_tiled_products_equal_full_product(depth, m, n):
    draw = np.random.default_rng(depth + m)
    left, right = (draw.standard_normal((size, depth)).astype(np.float32) for size in (m, n))
    reference = left.astype(np.float64) @ right.astype(np.float64).T
    assert np.abs(matching._products(left, right) - reference).max() < 1e-3


def plain_bertscore(expected, actual, *, repeats):
    """By definition, one cosine at a time."""
    sides = [word_tokens(text) if repeats else list(dict.fromkeys(word_tokens(text))) for text in (expected, actual)]

    def cosine(one, other):
        left, right = vector(one), vector(other)
        dot = sum(a * b for a, b in zip(left, right, strict=True))
        return min(1, max(0, dot / (math.hypot(*left) * math.hypot(*right))))

    recall, precision = (
        sum(max(cosine(token, other) for other in there) for token in here) / len(here)
        for here, there in (sides, sides[::-1])
    )
    return 2 * precision * recall / (precision + recall) if precision + recall else 0


@given(sentences.filter(bool), sentences.filter(bool), st.booleans())
def test_blockwise_matching_equals_definition(expected, actual, repeats):
    metric = BertscoreLike(tokens="all" if repeats else "unique")
    assert marked(metric, expected, actual).score == pytest.approx(
        plain_bertscore(expected, actual, repeats=repeats), abs=1e-6
    )


texts = st.text(max_size=12) | sentences


@given(metrics, texts, texts)
def test_mark_is_valid_and_round_trips_json(metric, expected, actual):
    mark = marked(metric, expected, actual)
    if isinstance(mark, MetricScore):
        assert 0 <= mark.score <= 1
        json.dumps({key: list(value) if isinstance(value, tuple) else value for key, value in mark.details.items()})
    else:
        assert mark.cause in {"unreadable", "bad_output"}


@given(metrics, sentences)
def test_expected_text_itself_scores_1(metric, text):
    # To the bit, so that it passes a threshold of 1.
    assert marked(metric, text, text).score == 1.0


@given(metrics, sentences, sentences)
def test_score_is_symmetric(metric, one, other):
    there, back = marked(metric, one, other), marked(metric, other, one)
    assert there.score == back.score


@given(metrics, st.lists(st.tuples(sentences | st.sampled_from(["nowhere", "", "\ud800"]), sentences), max_size=8))
def test_batch_gives_same_marks_as_single_pairs(metric, pairs):
    pairs = [(expected if expected != "\ud800" else None, actual) for expected, actual in pairs]
    marks, _ = together(metric, pairs)
    assert marks == [marked(metric, *pair) for pair in pairs]


@pytest.mark.parametrize(("m", "n"), [(61, 60), (33, 90), (200, 5)])
def test_large_pairs_score_same_alone_swapped_and_batched(m, n):
    draw = np.random.default_rng(m)
    vectors = {f"w{number}": draw.standard_normal(256) for number in range(m + n - 3)}
    one, other = " ".join(list(vectors)[:m]), " ".join(list(vectors)[m - 3 :])
    metric = BertscoreLike()

    def reply(requests):
        return answered(requests, vectors.__getitem__)

    alone = marked(metric, one, other, reply)
    batch, _ = together(metric, [(other, one), (one, other), (one, one)], reply)
    assert batch[1] == alone
    assert batch[0].score == alone.score
    assert batch[2].score == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CosineEmbedding(mode="clmap"), "clamp"),
        (lambda: BertscoreLike(tokens="uniqe"), "unique"),
        (lambda: BertscoreLike(attribute="yes"), "true or false"),
        (lambda: BertscoreLike(attribute_limit=0), "at least 1"),
        (lambda: BertscoreLike(max_tokens=0), "at least 1"),
    ],
)
def test_invalid_options_are_error(make, message):
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_default_role_is_embedding():
    (requests,) = played(CosineEmbedding().script(Sample("s", {}, "cat"), Output("dog")))[1]
    assert requests == (Embed(texts=("cat", "dog"), role="embedding"),)
    assert CosineEmbedding.roles == ("embedding",)
