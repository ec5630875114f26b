from __future__ import annotations

import math

import msgspec
import pytest

from deemster.errors import ConfigurationError
from deemster.metrics.answer_containment import AnswerContainmentAtK
from deemster.metrics.batch_ranking import score_rankings
from deemster.metrics.retrieval_metrics import (
    RetrievalF1AtK,
    RetrievalHitAtK,
    RetrievalMap,
    RetrievalMrr,
    RetrievalNdcgAtK,
    RetrievalPrecisionAtK,
    RetrievalRecallAtK,
    RetrievalRPrecision,
)
from deemster.records import Output, Sample, freeze

WITH_K = (
    RetrievalHitAtK,
    RetrievalRecallAtK,
    RetrievalPrecisionAtK,
    RetrievalF1AtK,
    RetrievalMrr,
    RetrievalMap,
    RetrievalNdcgAtK,
    AnswerContainmentAtK,
)
BY_ID = (*WITH_K[:-1], RetrievalRPrecision)
GRADED = {"a": 3, "b": 1, "c": 2, "z": 0}


def marked(metric, retrieved, relevant, **metadata):
    return metric.score(Sample("s", {}, relevant, metadata), Output("", retrieved))


def issue(metric, relevant, **metadata):
    (found,) = metric.check(Sample("s", {}, relevant, metadata))
    return found


def rounded(metric, retrieved, relevant):
    return round(marked(metric, retrieved, relevant).score, 4)


@pytest.mark.parametrize(
    ("retrieved", "relevant", "k", "scores"),
    [
        ([7, 3, 1, 9, 2], [3, 9], 5, (1, 1, 0.4, 0.5714, 0.5, 0.5, 0.6509)),
        ([7, 3, 1, 9, 2], [3, 9], 3, (1, 0.5, 0.3333, 0.4, 0.5, 0.25, 0.3869)),
        ([7, 3], [3, 9], 5, (1, 0.5, 0.2, 0.2857, 0.5, 0.25, 0.3869)),
        (["b", "a", "c"], GRADED, 3, (1, 1, 1, 1, 1, 1, 0.8175)),
    ],
)
def test_published_rankings_give_published_scores(retrieved, relevant, k, scores):
    metrics = [kind(k=k) for kind in WITH_K[:-1]]
    assert tuple(rounded(metric, retrieved, relevant) for metric in metrics) == scores


@pytest.mark.parametrize(
    ("retrieved", "relevant", "score"),
    [([7, 3, 1, 9, 2], [3, 9], 0.5), ([7, 3], [3, 9], 0.5), (["b", "a", "c"], GRADED, 1)],
)
def test_r_precision_depth_is_number_of_relevant_ids(retrieved, relevant, score):
    assert marked(RetrievalRPrecision(), retrieved, relevant).score == score


def test_published_variants_give_published_scores():
    assert marked(RetrievalPrecisionAtK(k=5, denominator="retrieved"), [7, 3], [3, 9]).score == 0.5
    assert rounded(RetrievalNdcgAtK(k=3, gain="exponential"), ["b", "a", "c"], GRADED) == 0.7364
    assert marked(RetrievalMrr(k=1), [7, 3], [3]).score == 0


def test_details_have_counts():
    counts = {"k": 3, "retrieved": 3, "relevant": 2, "found": 1}
    ranking = [7, 3, 1, 9, 2]
    for kind in (RetrievalHitAtK, RetrievalPrecisionAtK, RetrievalF1AtK):
        assert marked(kind(k=3), ranking, [3, 9]).details == counts
    assert marked(RetrievalRecallAtK(k=3), ranking, [3, 9]).details == {**counts, "missing": ("9",)}
    assert marked(RetrievalMrr(), ranking, [3, 9]).details == {"first_relevant_rank": 2}
    assert marked(RetrievalMrr(), ranking, ["x"]).details == {"first_relevant_rank": None}
    assert marked(RetrievalMap(), ranking, [3, 9, 4]).details == {"relevant": 3, "found": 2}
    assert marked(RetrievalRPrecision(), ranking, [3, 9]).details == {"relevant": 2, "found": 1}
    details = marked(RetrievalNdcgAtK(), ranking, [3, 9]).details
    assert (details["k"], details["gain"]) == (5, "linear")
    assert details["dcg"] == pytest.approx(1 / math.log2(3) + 1 / math.log2(5), abs=1e-15)
    assert details["idcg"] == pytest.approx(1 + 1 / math.log2(3), abs=1e-15)


def test_missing_ids_are_cut_at_twenty():
    details = marked(RetrievalRecallAtK(k=1), ["x"], [f"d{number}" for number in range(21)]).details
    assert len(details["missing"]) == 20
    assert details["truncated"] is True


@pytest.mark.parametrize("metric", [kind() for kind in BY_ID])
def test_empty_ranking_scores_zero(metric):
    assert marked(metric, [], ["a"]).score == 0


def test_empty_ranking_scores_zero_with_any_denominator():
    assert marked(RetrievalPrecisionAtK(denominator="retrieved"), [], ["a"]).score == 0


def test_k_comes_from_metric_then_sample_then_five():
    ranking = list("uvwxya")
    assert marked(RetrievalHitAtK(), ranking, ["a"]).score == 0
    assert marked(RetrievalHitAtK(), ranking, ["a"], k=6).score == 1
    assert marked(RetrievalHitAtK(k=5), ranking, ["a"], k=6).score == 0
    assert marked(RetrievalMrr(), ranking, ["a"], k=2).score == 1 / 6
    assert marked(RetrievalMap(), ranking, ["a"], k=2).score == 1 / 6


@pytest.mark.parametrize("metric", [RetrievalMrr(), RetrievalMap(), RetrievalRPrecision()])
@pytest.mark.parametrize("k", [1, 0, "x"])
def test_whole_list_metrics_ignore_k_of_sample(metric, k):
    assert marked(metric, ["x", "a", "b"], ["a", "b"], k=k) == marked(metric, ["x", "a", "b"], ["a", "b"])
    assert not metric.check(Sample("s", {}, ["a"], {"k": k}))


@pytest.mark.parametrize("k", [0, -1, 2.0, "3", True, None, [3]])
@pytest.mark.parametrize("kind", [RetrievalHitAtK, RetrievalNdcgAtK, AnswerContainmentAtK])
def test_wrong_k_is_an_error_and_never_ignored(kind, k):
    found = issue(kind(), "[1]", k=k)
    assert not found.warning
    assert "metadata.k" in found.message
    if k is not None:
        with pytest.raises(ConfigurationError):
            kind(k=k)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (RetrievalNdcgAtK, {"gain": "exponentiel"}),
        (RetrievalPrecisionAtK, {"denominator": "found"}),
        (AnswerContainmentAtK, {"case_sensitive": 1}),
    ],
)
def test_wrong_options_are_configuration_errors(kind, options):
    with pytest.raises(ConfigurationError):
        kind(**options)


def test_repeated_id_keeps_best_rank():
    doubled = ["x", "x", "a", "x", "b"]
    assert marked(RetrievalMrr(), doubled, ["a"]).score == 0.5
    assert marked(RetrievalMrr(k=2), doubled, ["a"]).score == 0.5
    assert marked(RetrievalMrr(k=2), doubled, ["b"]).score == 0
    assert marked(RetrievalHitAtK(k=2), doubled, ["a"]).score == 1
    assert marked(RetrievalHitAtK(k=2), doubled, ["b"]).score == 0
    assert marked(RetrievalRecallAtK(k=3), doubled, ["a", "b"]).details["retrieved"] == 3
    assert marked(RetrievalMap(), doubled, ["b"]).score == 1 / 3


@pytest.mark.parametrize(
    "output",
    [
        Output("", ["x", "3"]),
        Output("", ("x", 3)),
        Output("", [{"id": "x"}, {"id": 3, "text": 5, "score": 0.3}]),
        Output('["x", 3]'),
        Output('{"retrieved": ["x", {"id": "3"}], "answer": "y"}'),
    ],
)
@pytest.mark.parametrize("relevant", [["3"], [3, "3"], {"3": 2.5}, {3: 1}, "[3]", '{"3": 1, "x": 0}'])
def test_rankings_and_relevance_are_read_in_every_shape(output, relevant):
    for sample in (Sample("s", {}, relevant), Sample("s", {}, "Rome", {"relevant": relevant})):
        assert RetrievalMrr().score(sample, output).score == 0.5
        assert RetrievalMrr().score_many([sample], [output])[0].score == 0.5


@pytest.mark.parametrize(
    "output",
    [
        Output(""),
        Output("prose"),
        Output("3"),
        Output('{"found": []}'),
        Output("[" * 100_000),
        Output("\ud800"),
        Output("", "abc"),
        Output("", {"retrieved": ["a"]}),
        Output("", ["a", ""]),
        Output("", ["a", None]),
        Output("", ["a", 1.5]),
        Output("", ["a", True]),
        Output("", ["a", ["b"]]),
        Output("", ["a", {"text": "b"}]),
        Output("", ["a", {"id": ""}]),
        Output("", ["a", 10**5000]),
    ],
)
def test_output_of_wrong_shape_is_bad_output(output):
    sample = Sample("s", {}, "text", {"relevant": ["a"]})
    assert {kind().score(sample, output).cause for kind in (*BY_ID, AnswerContainmentAtK)} == {"bad_output"}


def test_bad_entry_is_found_at_any_rank():
    assert marked(RetrievalHitAtK(k=1), ["a", "b", ""], ["a"]).cause == "bad_output"


@pytest.mark.parametrize("relevant", [[], {}, {"a": 0}, "[]", "prose", 3, ["a", ""], [None], [["a"]], True])
def test_sample_without_relevant_ids_is_bad_sample_with_warning(relevant):
    for metric in (kind() for kind in BY_ID):
        assert marked(metric, ["a"], relevant).cause == "bad_sample"
        assert issue(metric, relevant).warning


@pytest.mark.parametrize("gain", [-1, -0.5, math.nan, math.inf, "1", True, None, pytest.param(10**400, id="huge")])
def test_negative_or_non_finite_gain_is_malformed(gain):
    for metric in (kind() for kind in BY_ID):
        assert not issue(metric, {"a": 1, "b": gain}).warning
        assert not issue(metric, {"b": gain, "a": 1}).warning


def test_huge_integers_are_issues_not_crashes():
    endless = -(10**5000)
    assert not issue(RetrievalHitAtK(), ["a"], k=endless).warning
    assert not issue(RetrievalHitAtK(), {"a": endless}).warning
    assert not issue(RetrievalHitAtK(), {endless: -1}).warning
    assert issue(RetrievalHitAtK(), [endless]).warning


def test_id_given_twice_with_gains_is_malformed():
    assert not issue(RetrievalHitAtK(), {"3": 1, 3: 2}).warning


def test_overflowing_gains_are_malformed_for_ndcg_only():
    huge = {"a": 1.7e308, "b": 1.7e308}
    assert not issue(RetrievalNdcgAtK(), huge).warning
    assert not issue(RetrievalNdcgAtK(gain="exponential"), {"a": 2000}).warning
    assert marked(RetrievalHitAtK(), ["a"], huge).score == 1


@pytest.mark.parametrize("gain", ["linear", "exponential"])
@pytest.mark.parametrize("tiny", [5e-324, 1e-300, 1e-17])
def test_tiniest_gain_still_counts(gain, tiny):
    assert marked(RetrievalNdcgAtK(gain=gain), ["a"], {"a": tiny}).score == 1


@pytest.mark.parametrize("metric", [kind() for kind in (*BY_ID, AnswerContainmentAtK)])
def test_null_expected_is_no_expected(metric):
    assert marked(metric, ["a"], None).cause == "no_expected"


def passages(*texts):
    return [{"id": str(number), "text": text} for number, text in enumerate(texts)]


def test_containment_ignores_case_and_spacing():
    retrieved = passages("nothing", "It closes\n after THIRTY  days.")
    mark = marked(AnswerContainmentAtK(), retrieved, " after thirty days ")
    assert mark.score == 1
    assert mark.details == {"k": 5, "passages": 2, "matched_rank": 2}
    assert marked(AnswerContainmentAtK(case_sensitive=True), retrieved, "after thirty days").score == 0
    assert marked(AnswerContainmentAtK(k=1), retrieved, "after thirty days").details == {
        "k": 1,
        "passages": 1,
        "matched_rank": None,
    }


def test_containment_counts_repeated_ids_as_passages():
    retrieved = [{"id": "a", "text": "x"}, {"id": "a", "text": "answer"}, "b", {"id": "c", "text": None}]
    assert marked(AnswerContainmentAtK(k=2), retrieved, "answer").details["matched_rank"] == 2
    assert marked(AnswerContainmentAtK(k=4), retrieved, "b").details == {"k": 4, "passages": 4, "matched_rank": None}


def test_containment_of_unreadable_passages_or_text_is_unscored():
    assert marked(AnswerContainmentAtK(), [{"id": "a", "text": 5}], "x").cause == "bad_output"
    assert marked(AnswerContainmentAtK(), [{"id": "a", "text": "\ud800"}], "x").cause == "bad_output"
    assert marked(AnswerContainmentAtK(), passages("x"), " \n").cause == "bad_sample"
    assert marked(AnswerContainmentAtK(), passages("x"), ["x"]).cause == "bad_sample"
    assert marked(AnswerContainmentAtK(), [], "x").score == 0
    for odd in ({"id": "b", "text": 5}, {"text": "x"}, 1.5):
        assert marked(AnswerContainmentAtK(k=1), [*passages("x"), odd], "x").cause == "bad_output"


def test_batch_gives_same_marks_as_single_rankings():
    samples = [
        Sample("1", {}, ["a", "b"]),
        Sample("2", {}, {"a": 2, "b": 1}, {"k": 1}),
        Sample("3", {}, None),
        Sample("4", {}, {"a": -1}),
        Sample("5", {}, ["a"], {"k": 0}),
        Sample("6", {}, {"a": 1e308, "b": 1.7e308}),
    ]
    outputs = [Output("", ["b", "b", "a"]), Output('["a"]'), Output("prose"), Output("", ["a", 3])]
    pairs = [(sample, output) for sample in samples for output in outputs] * 2
    metrics = [kind() for kind in BY_ID]
    together = score_rankings(metrics, *zip(*pairs, strict=True))
    for metric, marks in zip(metrics, together, strict=True):
        single = [metric.score(*pair) for pair in pairs]
        assert marks == single
        assert metric.score_many(*zip(*pairs, strict=True)) == single


def test_batch_of_unequal_length_is_error():
    with pytest.raises(ValueError):
        RetrievalHitAtK().score_many([Sample("1", {}, ["a"])], [])


def test_details_round_trip_json():
    for kind in BY_ID:
        details = marked(kind(), ["b", "a"], {"a": 2, "c": 1}).details
        assert freeze(msgspec.json.decode(msgspec.json.encode(details))) == details
