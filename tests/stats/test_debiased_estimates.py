"""Prediction-powered means: laws and edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import ppi_mean
from tests.builders.published_numbers import PUBLISHED, ends, near


def test_uninformative_predictions_give_plain_mean():
    result = ppi_mean([1, 0, 1, 1], [1, 1, 1, 1], [1] * 50)
    assert result.lam == 0.0
    assert (result.value, result.standard_error) == (result.classical, result.classical_error)


def test_perfect_predictions_are_worth_nearly_as_much_as_labels():
    labels = [1, 0, 1, 1, 0, 1, 0, 0, 1, 1] * 3
    result = ppi_mean(labels, labels, [1, 0] * 5_000)
    assert result.lam == pytest.approx(1, abs=0.05)
    assert result.value == pytest.approx(0.5, abs=0.01)
    assert result.standard_error < 0.1 * result.classical_error


def test_prediction_powered_mean_is_undefined_part_by_part():
    assert ppi_mean([], [], [1, 0]).value is None
    single = ppi_mean([1], [0], [1, 0])
    assert (single.value, single.lam, single.interval) == (1.0, 0.0, None)
    assert ppi_mean([1, 1], [1, 1], [1]).interval is None
    assert ppi_mean([1, 0], [1, 0], []).value == 0.5
    with pytest.raises(ValueError, match="one prediction"):
        ppi_mean([1, 0], [1], [1])


@given(st.data())
def test_bounded_prediction_powered_mean_stays_in_bounds_and_has_a_width(data):
    n = data.draw(st.integers(1, 12))
    scores = st.floats(0, 1) | st.sampled_from([0.0, 1.0])
    y, known = (data.draw(st.lists(scores, min_size=n, max_size=n)) for _ in range(2))
    result = ppi_mean(y, known, data.draw(st.lists(scores, max_size=30)), bounds=(0, 1))
    assert 0 <= result.value <= 1
    if n >= 2:
        assert 0 <= result.interval.lower <= result.value <= result.interval.upper <= 1
        assert result.interval.width > 1e-6


def test_bounded_prediction_powered_mean_covers_with_twenty_labels_of_a_rare_answer():
    rng = np.random.default_rng(10)
    hits = {"bounded": 0, "published": 0}
    for _ in range(400):
        truth = rng.random(420) < 0.1
        said = np.where(rng.random(420) < 0.85, truth, ~truth).astype(float)
        y, known, others = truth[:20].astype(float), said[:20], said[20:]
        for name, bounds in (("bounded", (0, 1)), ("published", None)):
            interval = ppi_mean(y, known, others, bounds=bounds).interval
            hits[name] += interval is not None and interval.lower <= 0.1 <= interval.upper
    assert hits["bounded"] / 400 >= 0.93
    assert hits["published"] / 400 <= 0.9


@pytest.mark.parametrize("weights", [[1], [1, 0], [1, float("nan")]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="weight"):
        ppi_mean([1, 0], [1, 0], [1], weights=weights)


def test_predictions_sharpen_a_mean_as_in_the_reference():
    given, expected = PUBLISHED["ppi_mean"]["input"], PUBLISHED["ppi_mean"]["expected"]
    unlabelled = ([1] * 8 + [0] * 2) * 20
    tuned = ppi_mean(given["Y"], given["Yhat"], unlabelled)
    assert [tuned.value, ends(tuned)] == [near("ppi_mean", part) for part in expected["ppi_plus_plus"]]
    assert tuned.lam == near("ppi_mean", expected["lam"])
    plain = ppi_mean(given["Y"], given["Yhat"], unlabelled, lam=1)
    assert [plain.value, ends(plain)] == [near("ppi_mean", part) for part in expected["ppi"]]
    labels = ppi_mean(given["Y"], given["Yhat"], unlabelled, lam=0)
    assert [labels.value, ends(labels)] == [near("ppi_mean", part) for part in expected["classical"]]
    assert labels.value == tuned.classical
