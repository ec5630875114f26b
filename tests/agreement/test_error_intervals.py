"""Intervals of errors of scores: laws, one interval for one number, and coverage on data that are not neat."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.agreement import BootstrapSettings, compute_metrics
from deemster.agreement._error_intervals import bias_with_interval, error_intervals, hull
from deemster.agreement.agreement_report import agreement_sections
from deemster.datasets import Votes
from deemster.stats.bounded_mean import bounded_mean
from deemster.stats.confidence_interval import ConfidenceInterval
from deemster.stats.systematic_bias import systematic_bias
from deemster.text.markdown_layout import render_markdown

BENCH = Path(__file__).parent.parent.parent / "bench" / "alignment_coverage.py"


@pytest.fixture(scope="module")
def bench():
    """The simulation, whose generators know nothing of deemster."""
    spec = importlib.util.spec_from_file_location("alignment_coverage", BENCH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=40), st.integers(1, 3))
def test_errors_lie_inside_their_intervals_which_have_a_width_and_grow_with_the_range(apart, size):
    d, units = np.array(apart) / 4, np.arange(len(apart)) // size
    if units.max() == 0:
        assert error_intervals(d, units, span=1.0, confidence=0.95) == {}
        return
    found = error_intervals(d, units, span=1.0, confidence=0.95)
    values = {"bias": d.mean(), "mae": np.abs(d).mean(), "rmse": np.sqrt(np.square(d).mean())}
    for name, value in values.items():
        assert found[name].lower - 1e-9 <= value <= found[name].upper + 1e-9
        assert found[name].width > 0
    # Scores from 0 to 10 are the same scores in another unit.
    for name, one in error_intervals(10 * d, units, span=10.0, confidence=0.95).items():
        assert (one.lower, one.upper) == pytest.approx((10 * found[name].lower, 10 * found[name].upper), abs=1e-7)


def test_rmse_is_root_of_the_mean_of_squares_and_bias_the_mean():
    d = np.array([0.5, -0.25, 0.25] + [0.0] * 47)
    found = error_intervals(d, np.arange(50), span=1.0, confidence=0.9)
    squares = bounded_mean(d * d, confidence=0.9).interval
    assert (found["rmse"].lower ** 2, found["rmse"].upper ** 2) == pytest.approx((squares.lower, squares.upper))
    mean = bounded_mean(d, low=-1.0, high=1.0, confidence=0.9).interval
    assert (found["bias"].lower, found["bias"].upper) == pytest.approx((mean.lower, mean.upper))


def test_rmse_keeps_the_likelihood_where_many_differ():
    d = np.random.default_rng(0).normal(0, 0.1, 200)
    found = error_intervals(d, np.arange(200), span=1.0, confidence=0.95)
    assert found["rmse"].method == "empirical likelihood"
    assert "student" in found["mae"].method


def test_hull_holds_both_and_keeps_the_method_of_one_that_holds_the_other():
    wide, high = ConfidenceInterval(0.0, 0.5, 0.95, "t"), ConfidenceInterval(0.4, 0.7, 0.95, "drawn")
    assert hull(wide, high) == ConfidenceInterval(0.0, 0.7, 0.95, "t and drawn")
    assert hull(wide, ConfidenceInterval(0.1, 0.2, 0.95, "drawn")) == wide
    assert hull(None, high) == high


def test_bias_is_not_significant_where_its_interval_holds_zero():
    x = np.concatenate([np.full(6, 0.2), np.zeros(14)])
    bias = systematic_bias(x, np.zeros(20))
    assert bias.is_significant
    far = bias_with_interval(bias, ConfidenceInterval(-0.1, 0.3, 0.95, "drawn"))
    assert not far.is_significant
    assert (far.ci.lower, far.ci.upper) == (-0.1, 0.3)
    assert bias_with_interval(bias, None) == bias


def ends(intervals, name):
    found = intervals[name]
    return found.estimate, found.ci.lower, found.ci.upper


def test_number_of_one_criterion_has_one_interval_under_all_its_names(bench):
    value = bench.votes_file(
        bench.binary(1), *(np.array(side)[:, None] for side in ([1] * 12 + [0] * 18,)), [
            np.array([1] * 10 + [0] * 18 + [1] * 2)[:, None], np.array([1] * 12 + [0] * 15 + [1] * 3)[:, None]
        ]
    )  # fmt: skip
    result = compute_metrics(
        Votes.parse(value), None, per_judge=True, bootstrap=BootstrapSettings(replicates=200, seed=1)
    )
    own = result.per_criterion[0].intervals
    assert ends(result.intervals, "score_concordance") == pytest.approx(ends(own, "kappa"))
    assert ends(result.intervals, "score_alpha") == pytest.approx(ends(own, "krippendorff_alpha"))
    for name in ("score_pearson", "score_spearman", "score_kendall"):
        assert ends(result.intervals, name) == pytest.approx(ends(own, "phi"))
        judge = result.per_judge["j2"].intervals
        assert ends(judge, name) == pytest.approx(ends(judge, "phi"))


@pytest.mark.parametrize(("values", "same"), [([0.0, 0.5, 1.0], True), ([0.0, 0.1, 1.0], False)])
def test_concordance_of_evenly_spaced_options_is_weighted_kappa(bench, values, same):
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, (40, 1))
    said = bench.flipped(rng, truth, 0.3, 3)
    value = bench.votes_file([bench.criterion("level", "123", "ordinal", values)], truth, [said])
    result = compute_metrics(Votes.parse(value), None, bootstrap=BootstrapSettings(replicates=200, seed=1))
    of_scores = ends(result.intervals, "score_concordance")
    assert (of_scores == ends(result.per_criterion[0].intervals, "weighted_kappa")) is same


def test_scores_of_one_numeric_criterion_have_its_intervals(bench):
    value = bench.normal(np.random.default_rng(4), 25)
    result = compute_metrics(Votes.parse(value), None, bootstrap=BootstrapSettings(replicates=1000, seed=1))
    own = result.per_criterion[0].intervals
    for name, twin in (
        ("score_concordance", "concordance"),
        ("score_alpha", "krippendorff_alpha"),
        ("score_spearman", "spearman"),
        ("score_icc.icc_2_1", "judge_icc.icc_2_1"),
    ):
        assert ends(result.intervals, name)[1:] == ends(own, twin)[1:]
    # The score is a tenth of the number.
    for name, twin in (("score_rmse", "rmse"), ("bias", "bias")):
        assert np.array(ends(result.intervals, name)) * 10 == pytest.approx(np.array(ends(own, twin)), abs=1e-6)
    assert np.array(ends(result.intervals, "score_mae")) * 10 == pytest.approx(np.array(ends(own, "mae")), rel=0.15)


def test_slices_have_intervals_where_nothing_went_wrong(bench):
    truth = np.arange(60)[:, None] % 2
    said = np.where(np.arange(60)[:, None] % 3 == 0, 1 - truth, truth)
    tags = [["rest" if place % 3 == 0 else "hard"] for place in range(60)]
    value = bench.votes_file(bench.binary(1), truth, [said], tags=tags)
    result = compute_metrics(
        Votes.parse(value), None, per_slice=True, bootstrap=BootstrapSettings(replicates=100, seed=1)
    )
    good = next(part for part in result.slices if part.tag == "hard")
    assert good.score_rmse == 0.0
    assert ends(good.intervals, "score_rmse")[1] == 0.0 < ends(good.intervals, "score_rmse")[2]
    value, lower, upper = ends(good.intervals, "rmse_difference")
    assert value == -1.0
    assert -1.1 < lower <= -1.0 < upper < -0.3


def markdown(value):
    return render_markdown(
        agreement_sections(
            compute_metrics(Votes.parse(value), None, bootstrap=BootstrapSettings(replicates=100, seed=1))
        )
    )


def test_limits_of_agreement_without_an_error_do_not_claim_zero(bench):
    truth = np.arange(60)[:, None] < 2
    text = markdown(bench.votes_file(bench.binary(2), np.tile(truth, 2), [np.tile(truth, 2)]))
    assert "0.0000 to 0.0000 of people's" not in text
    assert "all scores equal people's, so these items do not show how far a single score may be off" in text
    assert "It can still be that single scores mostly lie within -0." in text


def test_limits_of_agreement_of_a_constant_shift_say_so(bench):
    truth = np.linspace(1, 8, 30)[:, None]
    text = markdown(bench.votes_file([bench.number("grade")], truth, [truth + 1]))
    assert "all scores differ from people's by +0.1000, so" in text


@pytest.mark.parametrize(
    ("design", "items", "names"),
    [
        ("rare", 60, ("score_icc.icc_2_1", "score_alpha")),
        ("difficulty", 40, ("score_limits.upper", "bias.std_bias", "score_rmse")),
        ("rare", 150, ("score_concordance",)),
        ("balanced", 5, ("score_icc.icc_2_1", "score_alpha")),
        ("skewed_scale", 12, ("score_concordance", "score_icc.icc_2_1", "score_alpha")),
        ("ceiling", 30, ("mean_concordance",)),
        ("ceiling", 60, ("mean_concordance",)),
    ],
)
def test_intervals_hold_the_truth(bench, design, items, names):
    generate = getattr(bench, design)
    # What 60,000 items come to: see the simulation, which prints more designs.
    goals = {
        "rare": {"score_icc.icc_2_1": 0.522, "score_alpha": 0.522, "score_concordance": 0.757},
        "balanced": {"score_icc.icc_2_1": 0.491, "score_alpha": 0.491},
        "skewed_scale": {"score_concordance": 0.902, "score_icc.icc_2_1": 0.855, "score_alpha": 0.855},
        "ceiling": {"mean_concordance": 0.953},
        "difficulty": {"score_limits.upper": 0.287, "bias.std_bias": 0.154, "score_rmse": 0.154},
    }[design]
    hits: dict[str, list[bool]] = {name: [] for name in names}
    for run in range(40):
        votes = Votes.parse(generate(np.random.default_rng(run), items))
        intervals = compute_metrics(votes, None, bootstrap=BootstrapSettings(replicates=200, seed=run)).intervals
        for name in names:
            if (ci := intervals[name].ci) is not None:
                hits[name].append(ci.lower <= goals[name] <= ci.upper)
    for name, found in hits.items():
        assert len(found) > 25
        assert np.mean(found) >= 0.9, name
