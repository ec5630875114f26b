"""Published and verified numbers for intervals, tests and corrections."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import (
    PairedNoise,
    certain_margin,
    certifiable_margin,
    clopper_pearson,
    detectable_difference,
    detectable_drop,
    gate_power,
    label_size,
    newcombe,
    paired_difference,
    pass_at_k,
    ppi_mean,
    repetition_splits,
    sample_size,
    samples_to_certify,
    samples_to_detect,
    wilson,
)
from deemster.stats.paired_difference import flip_p_values
from tests.builders.published_numbers import PUBLISHED, ends, near


@pytest.mark.parametrize("name", ["prop_81_263", "prop_0_20", "prop_20_20"])
def test_shares_have_newcombes_published_intervals(name):
    x, n = PUBLISHED[name]["input"]["x"], PUBLISHED[name]["input"]["n"]
    assert ends(wilson(x, n)) == near(name, PUBLISHED[name]["expected"]["wilson"])
    assert ends(clopper_pearson(x, n)) == near(name, PUBLISHED[name]["expected"]["clopper_pearson"])


@pytest.mark.parametrize("name", ["newcombe_diff_56_70_48_80", "newcombe_diff_5_56_0_29"])
def test_differences_of_shares_have_newcombes_published_intervals(name):
    assert ends(newcombe(*PUBLISHED[name]["input"])) == near(name)


def test_millers_example_needs_969_samples():
    given, expected = PUBLISHED["miller_power"]["input"], PUBLISHED["miller_power"]["expected"]
    result = sample_size(given["omega2"], given["delta"])
    assert result.exact == near("miller_power", expected["n"])
    assert result.value == 969
    assert detectable_difference(given["omega2"], 198).value == near("miller_power", expected["mde_n198"])


@given(st.floats(0.001, 1), st.floats(0.01, 0.5), st.floats(0.5, 0.99))
def test_samples_a_difference_needs_detect_it(variance, difference, power):
    size = sample_size(variance, difference, power=power)
    shown = detectable_difference(variance, size.value, power=power).value
    assert shown <= difference * (1 + 1e-9)
    if size.value > 1:
        assert detectable_difference(variance, size.value - 1, power=power).value > difference * (1 - 1e-9)


def test_repetitions_shrink_only_the_variance_within_samples():
    assert sample_size(0.1, 0.1, within=(0.2, 0.2), repetitions=(4, 4)).exact == pytest.approx(
        sample_size(0.2, 0.1).exact
    )
    assert sample_size(0.1, 0.1, design_effect=2).exact == pytest.approx(2 * sample_size(0.1, 0.1).exact)
    assert sample_size(0.0, 0.1).value == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sample_size(0.1, 0), "above 0"),
        (lambda: sample_size(-0.1, 0.1), "variance"),
        (lambda: sample_size(0.1, 0.1, power=1), "power"),
        (lambda: sample_size(0.1, 0.1, level=0), "level"),
        (lambda: sample_size(0.1, 0.1, repetitions=(0, 1)), "repetition"),
        (lambda: sample_size(0.1, 0.1, design_effect=0), "design effect"),
        (lambda: detectable_difference(0.1, 0), "one sample"),
        (lambda: pass_at_k(3, attempts=2, k=1), "correct"),
        (lambda: pass_at_k(1, attempts=2, k=3), "needs 3 attempts"),
        (lambda: pass_at_k(1, attempts=2, k=0), "k = 0"),
        (lambda: pass_at_k(0.5, attempts=2, k=1), "whole numbers"),
        (lambda: clopper_pearson(0.5, 2), "whole counts"),
        (lambda: newcombe(3, 2, 1, 2), "successes"),
        (lambda: wilson(1, 2, confidence=1), "confidence"),
    ],
)
def test_invalid_arguments_are_error_with_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()


DRAWS = 300
NOTHING_FLIPS = PairedNoise(flip_rate=0.0)
SOME_FLIP = PairedNoise(flip_rate=0.1)


def simulated_power(n, noise, *, outcome, margin=0.0, confidence=0.95, drop=0.0):
    """How often the gate decides so, of two runs whose true drop is known."""
    rng = np.random.default_rng(17)
    if noise.flip_rate is not None:
        # Samples go on flipping as they did, and the drop comes on top.
        flips = noise.flip_rate
        drawn = rng.multinomial(n, [flips / 2 + drop, flips / 2, 1 - flips - drop], DRAWS)
        side = "above" if outcome == "pass" else "below"
        p_values = flip_p_values(drawn[:, 0], drawn[:, 1], n=n, mean=-margin, side=side)
    else:
        results = [
            paired_difference(np.clip(rng.normal(-drop, noise.sd, n), -1, 1), margin=margin) for _ in range(DRAWS)
        ]
        p_values = np.array([result.p_within if outcome == "pass" else result.p_beyond for result in results])
    return (p_values <= 1 - confidence).mean()


def monte_carlo_error(power):
    return 3.5 * math.sqrt(max(power * (1 - power), 0.01) / DRAWS)


@pytest.mark.parametrize(
    "question",
    [
        {"n": 60, "outcome": "pass", "margin": 0.12, "noise": PairedNoise(flip_rate=0.05)},
        {"n": 200, "outcome": "pass", "margin": 0.05, "noise": PairedNoise(flip_rate=0.04)},
        {"n": 400, "outcome": "pass", "margin": 0.05, "noise": PairedNoise(flip_rate=0.2)},
        {"n": 3000, "outcome": "pass", "margin": 0.02, "noise": PairedNoise(flip_rate=0.2)},
        {"n": 80, "outcome": "fail", "drop": 0.15, "margin": 0.02, "noise": PairedNoise(flip_rate=0.1)},
        {"n": 300, "outcome": "fail", "drop": 0.08, "noise": PairedNoise(flip_rate=0.2)},
        {"n": 100, "outcome": "pass", "margin": 0.06, "noise": PairedNoise(sd=0.2)},
        {"n": 100, "outcome": "pass", "margin": 0.05, "noise": PairedNoise(sd=0.05)},
        {"n": 100, "outcome": "fail", "drop": 0.1, "margin": 0.05, "noise": PairedNoise(sd=0.2)},
        {"n": 15, "outcome": "fail", "drop": 0.45, "noise": PairedNoise(sd=0.2)},
        {"n": 15, "outcome": "pass", "margin": 0.3, "noise": PairedNoise(sd=0.2)},
    ],
)
def test_power_of_the_gate_equals_simulation(question):
    expected = gate_power(**question)
    # Where few scores are normal, the bound itself varies, which the calculation leaves out.
    slack = 0.06 if question["n"] < 32 else 0.0
    assert simulated_power(**question) == pytest.approx(expected, abs=monte_carlo_error(expected) + slack)


@pytest.mark.parametrize(
    "noise",
    [NOTHING_FLIPS, *(PairedNoise(flip_rate=rate) for rate in (0.1, 0.4)), *(PairedNoise(sd=sd) for sd in (0.1, 0.3))],
)
def test_promised_samples_reach_the_promised_power(noise):
    detect, certify = samples_to_detect(0.1, noise), samples_to_certify(0.1, noise)

    reached = simulated_power(detect, noise, outcome="fail", drop=0.1, confidence=0.975)
    assert reached >= 0.8 - monte_carlo_error(0.8)
    assert simulated_power(certify, noise, outcome="pass", margin=0.1) >= 0.8 - monte_carlo_error(0.8)


@pytest.mark.parametrize("noise", [PairedNoise(flip_rate=0.1), PairedNoise(sd=0.15)])
@pytest.mark.parametrize("n", [50, 200])
def test_what_a_set_can_show_is_shown_with_the_promised_power(n, noise):
    drop, margin = detectable_drop(n, noise), certain_margin(n, noise)

    assert simulated_power(n, noise, outcome="fail", drop=drop, confidence=0.975) >= 0.8 - monte_carlo_error(0.8)
    assert simulated_power(n, noise, outcome="pass", margin=margin) >= 0.8 - monte_carlo_error(0.8)
    assert margin >= certifiable_margin(n)


def test_so_many_samples_as_the_specification_names_certify_a_margin():
    assert samples_to_certify(0.02, NOTHING_FLIPS) == 180
    assert samples_to_certify(0.05, NOTHING_FLIPS) == 71


def test_too_few_samples_can_show_nothing():
    assert detectable_drop(4, SOME_FLIP) is None
    assert samples_to_detect(1e-6, PairedNoise(flip_rate=0.5)) is None


def test_cheapest_split_is_what_the_square_root_rule_says():
    """The best number of repetitions is about sqrt(c·2σ²/ω²)."""
    best = repetition_splits(0.01, between=0.04, within=0.1, sample_cost=8, most=30)[0]

    assert best.repetitions == pytest.approx(math.sqrt(8 * 0.2 / 0.04), abs=1)
    assert repetition_splits(0.05, between=0.01, within=0.1)[0].repetitions == 1


@pytest.mark.parametrize(("correlation", "samples"), [(0.0, None), (0.7, None), (0.9, 5000), (0.7, 1500)])
def test_promised_labels_give_the_promised_half_width(correlation, samples):
    rng = np.random.default_rng(8)
    size = label_size(0.05, correlation=correlation, samples=samples)
    everything = samples or 40_000
    widths = []
    for _ in range(30):
        truth = rng.random(everything) < 0.5
        judge = np.where(rng.random(everything) < (1 + correlation) / 2, truth, ~truth)
        result = ppi_mean(truth[: size.value], judge[: size.value], judge[size.value :], bounds=(0, 1))
        widths.append(result.interval.width / 2)
    assert np.mean(widths) == pytest.approx(0.05, rel=0.06)
    assert size.value <= size.alone == 385


def test_all_samples_are_labelled_where_even_those_are_too_few():
    assert label_size(0.01, correlation=0.5, samples=200).value == 200


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (PairedNoise, "Either a flip rate"),
        (lambda: PairedNoise(flip_rate=0.1, sd=0.1), "Either a flip rate"),
        (lambda: PairedNoise(flip_rate=1.1), "Either a flip rate"),
        (lambda: gate_power(0, SOME_FLIP, outcome="pass"), "at least one sample"),
        (lambda: detectable_drop(10, SOME_FLIP, power=1.0), "power"),
        (lambda: samples_to_detect(0.0, SOME_FLIP), "strictly between"),
        (lambda: samples_to_certify(1.0, SOME_FLIP), "strictly between"),
        (lambda: repetition_splits(0.1, between=0.1, within=0.1, sample_cost=-1), "costs"),
        (lambda: label_size(0.0, correlation=0.5), "half-width"),
        (lambda: label_size(0.1, correlation=1.5), "correlation"),
        (lambda: label_size(0.1, correlation=0.5, samples=0), "sample"),
    ],
)
def test_impossible_questions_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
