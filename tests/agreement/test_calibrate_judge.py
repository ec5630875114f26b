"""Calibration of a judge: agreement, errors, pass mark, length, order and repetitions, against references."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from sklearn import metrics as sklearn_metrics

from deemster.agreement.calibrate_judge import (
    JudgedMetric,
    JudgedOutput,
    calibrate_judge,
)
from deemster.agreement.option_order_bias import ShownOption, option_order_bias


def outputs(people, judge, *, scores=None, lengths=None, probabilities=None, tags=None, annotators=None):
    return [
        JudgedOutput(
            f"s{place}",
            people[place] if isinstance(people[place], str) else float(people[place]),
            {"": people[place]} if annotators is None else annotators[place],
            judge[place] if isinstance(judge[place], str) else float(judge[place]),
            0.0 if isinstance(judge[place], str) else float((scores or judge)[place]),
            10 if lengths is None else int(lengths[place]),
            () if tags is None else tags[place],
            None if probabilities is None else probabilities[place],
        )
        for place in range(len(people))
    ]


def calibrate(people, judge, *, kind="verdict", run=None, threshold=0.5, **settings):
    own = {key: settings.pop(key) for key in list(settings) if key in ("orders", "repeats", "disputed")}
    passed = None if run is None else np.asarray(run, dtype=np.int64)
    scores = None if run is None else np.asarray(run, dtype=float)
    judged = JudgedMetric("judge", kind, outputs(people, judge, **settings), {}, threshold=threshold)
    return calibrate_judge(judged._replace(passed=passed, scores=scores, **own))


@pytest.fixture
def drawn():
    rng = np.random.default_rng(2)
    people = rng.random(120) < 0.7
    return people.tolist(), (rng.random(120) < np.where(people, 0.9, 0.3)).tolist()


def test_agreement_and_kappa_equal_scikit_learns(drawn):
    people, judge = drawn
    found = calibrate(people, judge)
    assert found.agreement.value == pytest.approx(sklearn_metrics.accuracy_score(people, judge))
    assert found.kappa.value == pytest.approx(sklearn_metrics.cohen_kappa_score(people, judge))
    tn, fp, fn, tp = sklearn_metrics.confusion_matrix(people, judge).ravel()
    counts = found.confusion
    assert (counts.both_fail, counts.only_judge_passes, counts.only_people_pass, counts.both_pass) == (tn, fp, fn, tp)
    assert found.sensitivity.value == pytest.approx(sklearn_metrics.recall_score(people, judge))


def test_weighted_agreement_and_kappa_equal_scikit_learns(drawn):
    people, judge = drawn
    chances = np.where(judge, 0.2, 0.8)
    found = calibrate(people, judge, probabilities=chances.tolist())
    weights = {"sample_weight": 1 / chances}
    assert found.is_weighted
    assert found.agreement.value == pytest.approx(sklearn_metrics.accuracy_score(people, judge, **weights))
    assert found.kappa.value == pytest.approx(sklearn_metrics.cohen_kappa_score(people, judge, **weights))
    assert found.agreement.low < found.agreement.value < found.agreement.high


def test_perfect_agreement_has_an_interval_with_a_width():
    found = calibrate([1] * 20 + [0] * 10, [1] * 20 + [0] * 10)
    assert (found.agreement.value, found.kappa.value) == (1.0, 1.0)
    assert found.agreement.low < 0.95
    assert found.kappa.low < 0.95


def test_options_are_compared_as_classes():
    people, judge = ["a", "b", "c", "a", "b", "c"] * 4, ["a", "b", "b", "a", "b", "c"] * 4
    found = calibrate(people, judge, kind="option")
    assert found.kappa.value == pytest.approx(sklearn_metrics.cohen_kappa_score(people, judge))
    assert (found.confusion, found.pass_rate, found.labels) == (None, None, None)


def test_pass_mark_that_people_follow_is_found_and_no_noise():
    rng = np.random.default_rng(1)
    scores = rng.random(200).round(3)
    people = (scores >= 0.7).tolist()
    found = calibrate(people, (scores >= 0.5).tolist(), scores=scores.tolist()).threshold
    assert found.best == pytest.approx(scores[scores >= 0.7].min())
    assert found.best_agreement == 1
    assert found.gain.low > 0
    assert not found.is_noise


def test_gain_of_a_pass_mark_by_chance_is_called_noise():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = rng.random(60).round(3)
        people = rng.random(60) < np.where(scores >= 0.5, 0.85, 0.15)
        found = calibrate(people.tolist(), (scores >= 0.5).tolist(), scores=scores.tolist()).threshold
        assert found.best_agreement >= found.agreement
        assert found.is_noise


def test_length_bias_is_the_partial_correlation_of_ranks():
    rng = np.random.default_rng(3)
    people = (rng.random(150) < 0.6).astype(float)
    lengths = rng.integers(10, 400, 150)
    scores = np.clip(0.5 * people + lengths / 900 + rng.normal(0, 0.05, 150), 0, 1)
    found = calibrate(people.tolist(), (scores >= 0.5).tolist(), scores=scores.tolist(), lengths=lengths)
    ranks = [scipy_stats.rankdata(each) for each in (lengths, scores, people)]
    design = np.column_stack([ranks[2], np.ones(150)])
    rest = [side - design @ np.linalg.lstsq(design, side, rcond=None)[0] for side in ranks[:2]]
    assert found.length_bias.partial.value == pytest.approx(np.corrcoef(*rest)[0, 1], abs=1e-9)
    assert found.length_bias.spearman.value == pytest.approx(scipy_stats.spearmanr(lengths, scores).statistic)
    assert found.length_bias.is_biased
    assert any("longer outputs" in warning for warning in found.warnings)


def test_length_of_a_fair_judge_is_no_bias():
    rng = np.random.default_rng(4)
    people = (rng.random(150) < 0.6).astype(float)
    scores = np.clip(0.5 * people + rng.normal(0.2, 0.1, 150), 0, 1)
    found = calibrate(
        people.tolist(), (scores >= 0.5).tolist(), scores=scores.tolist(), lengths=rng.integers(10, 400, 150)
    )
    assert not found.length_bias.is_biased


def test_order_and_repetitions_are_counted():
    orders = [None] * 10 + ["first"] * 9 + ["second"]
    found = calibrate([1, 0] * 10, [1, 0] * 10, orders=orders, repeats=[[True, True], [True, False], [False, False]])
    bias = found.position_bias
    assert (bias.n_pairs, bias.consistency, bias.favours_first, bias.favours_second) == (20, 0.5, 9, 1)
    assert bias.p_value == pytest.approx(scipy_stats.binomtest(1, 10).pvalue)
    assert any("shown first" in warning for warning in found.warnings)
    assert found.consistency.stable_share == pytest.approx(2 / 3)
    assert (found.consistency.n_cells, found.consistency.n_repeats) == (3, 6)


def test_few_labels_and_rare_classes_are_warned_of():
    found = calibrate([1] * 12 + [0], [1] * 12 + [0])
    assert any("Only 13 labels" in warning for warning in found.warnings)
    assert any("People fail only 1" in warning for warning in found.warnings)


def test_no_labelled_output_leaves_everything_undefined():
    found = calibrate([], [], run=[1, 0])
    assert (found.n, found.agreement.value, found.kappa.value) == (0, None, None)
    assert found.pass_rate.value is None


def draw_options(rng, *, n, prefers_first, texts=None):
    """Votes of a judge among four shuffled options; equal texts have equal lists."""
    lists = [rng.permutation(4) for _ in range(n if texts is None else texts)]
    shown = []
    for number in range(n):
        text = number if texts is None else number % texts
        place = 0 if rng.random() < prefers_first else int(np.flatnonzero(lists[text] == 3)[0])
        shown.append(ShownOption(place + 1, 4, str(text)))
    return shown


def test_judge_that_often_takes_the_first_option_is_told_from_one_that_reads_them():
    rng = np.random.default_rng(1)
    biased = option_order_bias(draw_options(rng, n=80, prefers_first=0.5))
    assert biased.p_value < 0.001
    assert biased.mean_place.high < 0.5
    assert biased.first > 2 * biased.expected > 2 * biased.last
    assert (biased.n, biased.expected) == (80, 20)
    fair = option_order_bias(draw_options(rng, n=80, prefers_first=0.0))
    assert fair.p_value > 0.05
    assert fair.mean_place.low < 0.5 < fair.mean_place.high


@pytest.mark.parametrize("texts", [None, 25])
def test_judge_that_reads_all_options_is_seldom_accused_even_where_outputs_are_equal(texts):
    rng = np.random.default_rng(2)
    found = [option_order_bias(draw_options(rng, n=60, prefers_first=0.0, texts=texts)) for _ in range(200)]
    alarms = sum(one.p_value < 0.05 for one in found)
    assert alarms <= 20
    assert sum(one.mean_place.low <= 0.5 <= one.mean_place.high for one in found) >= 178


def test_judge_without_a_choice_has_no_order_bias():
    assert option_order_bias([]) is None
    assert option_order_bias([ShownOption(1, 1, "a")]) is None


def drawn_labels(seed, *, n=251, run=3000, people_pass=0.8, sensitivity=0.9, specificity=0.75):
    """A run of which some outputs are labelled, drawn at random; and the true pass-rate."""
    rng = np.random.default_rng(seed)
    people = rng.random(run) < people_pass
    judge = np.where(people, rng.random(run) < sensitivity, rng.random(run) >= specificity)
    labelled = rng.choice(run, n, replace=False)
    known = outputs(people[labelled].tolist(), judge[labelled].tolist())
    known = [output._replace(id=f"s{sample}") for output, sample in zip(known, labelled, strict=True)]
    judged = JudgedMetric("judge", "verdict", known, {}, threshold=0.5)
    return judged._replace(passed=judge.astype(np.int64), samples=[f"s{sample}" for sample in range(run)])


# What `plan labels --half-width 0.04` asks for with the correlation of each judge.
@pytest.mark.parametrize(
    ("people_pass", "sensitivity", "specificity", "n"),
    [(0.8, 0.9, 0.75, 251), (0.5, 0.85, 0.85, 340), (0.9, 0.95, 0.7, 140)],
)
def test_corrected_pass_rate_is_as_precise_as_plan_labels_promises(people_pass, sensitivity, specificity, n):
    judge = {"people_pass": people_pass, "sensitivity": sensitivity, "specificity": specificity}
    found = [calibrate_judge(drawn_labels(seed, n=n, **judge)).pass_rate for seed in range(10)]
    widths = [(rate.high - rate.low) / 2 for rate in found]
    assert np.mean(widths) == pytest.approx(0.04, abs=0.005)
    alone = [(rate.people.high - rate.people.low) / 2 for rate in found]
    assert np.mean(widths) < 0.95 * np.mean(alone)
    assert sum(rate.low <= people_pass <= rate.high for rate in found) >= 8


def test_useless_judge_leaves_the_labels_alone():
    rate = calibrate_judge(drawn_labels(3, sensitivity=0.5, specificity=0.5)).pass_rate
    assert rate.value == pytest.approx(rate.people.value, abs=0.02)
    assert rate.high - rate.low < 1.1 * (rate.people.high - rate.people.low)


def test_repetitions_of_a_sample_are_one_unit():
    rng = np.random.default_rng(5)
    people = rng.random(12) < 0.6
    judge = np.where(rng.random(12) < 0.8, people, ~people)
    once = calibrate(people.tolist(), judge.tolist())
    known = outputs(np.repeat(people, 10).tolist(), np.repeat(judge, 10).tolist())
    known = [output._replace(id=f"s{place // 10}") for place, output in enumerate(known)]
    many = calibrate_judge(JudgedMetric("judge", "verdict", known, {}, threshold=0.5))
    assert (many.n, many.samples) == (120, 12)
    for name in ("agreement", "kappa", "sensitivity", "specificity", "youden"):
        one, ten = getattr(once, name), getattr(many, name)
        assert (one.value, one.low, one.high) == pytest.approx((ten.value, ten.low, ten.high))
    assert any("12 samples, 120 outputs" in warning for warning in many.warnings)


def test_outputs_that_were_picked_have_no_interval_and_correct_nothing():
    picked = calibrate_judge(drawn_labels(1, n=60)._replace(is_drawn=False))
    assert (picked.sampling, picked.pass_rate, picked.labels) == ("chosen", None, None)
    assert picked.agreement.value is not None
    assert {picked.agreement.low, picked.kappa.low, picked.sensitivity.low, picked.youden.high} == {None}
    assert "picked because they looked hard" in picked.warnings[0]
