"""Corrected differences of two systems: laws and edges. Coverage is simulated by `bench/calibration.py`."""

from __future__ import annotations

import numpy as np
import pytest

from deemster.stats import LabelledSide, corrected_difference


def side(predicted, places, truth):
    predicted = np.asarray(predicted, dtype=float)
    return LabelledSide(predicted, places, truth, predicted[list(places)])


def test_sides_swapped_turn_the_sign():
    rng = np.random.default_rng(4)
    truth = rng.random((2, 100)) < 0.6
    judge = rng.random((2, 100)) < np.where(truth, 0.9, 0.2)
    first, second = (side(judge[at], range(40), truth[at][:40]) for at in range(2))
    found, turned = corrected_difference(first, second), corrected_difference(second, first)
    assert turned.value == pytest.approx(-found.value)
    assert turned.interval.lower == pytest.approx(-found.interval.upper)
    assert turned.error_difference == pytest.approx(-found.error_difference)


def test_judge_that_is_kind_to_one_system_is_noticed_and_its_sign_turned():
    people = np.tile([1, 1, 1, 0], 50)
    worse = np.tile([1, 1, 0, 0], 50)
    before = side(people, range(0, 200, 2), people[::2])
    now = side(np.ones(200), range(0, 200, 2), worse[::2])
    found = corrected_difference(before, now)
    assert found.naive > 0 > found.value
    assert found.interval.upper < 0
    assert found.is_error_different


def test_judge_that_agrees_with_every_label_still_leaves_an_interval():
    people = np.tile([1, 0], 100)
    found = corrected_difference(side(people, range(20), people[:20]), side(people, range(20), people[:20]))
    assert found.value == pytest.approx(0)
    assert found.interval.width > 0.05
    assert not found.is_error_different


def test_side_with_one_label_has_no_corrected_difference():
    found = corrected_difference(side([1, 0, 1], [0], [1]), side([1, 0, 0], [0, 1], [1, 0]))
    assert (found.value, found.interval, found.labels) == (None, None, (1, 2))
    assert found.naive == pytest.approx(-1 / 3)


def test_weights_count_on_their_own_side():
    plain = side([1, 0, 1, 0], [0, 1, 2], [1, 0, 0])
    heavy = plain._replace(weights=[1, 1, 100])
    found = corrected_difference(plain, heavy)
    assert found.error_difference < corrected_difference(plain, plain).error_difference


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (LabelledSide([1, 0], [0], [1, 0], [1, 0]), "place"),
        (LabelledSide([1, 2], [0], [1], [1]), "lies in"),
        (LabelledSide([1], [0], [1], [1]), "same items"),
    ],
)
def test_sides_that_do_not_fit_are_refused(first, said):
    with pytest.raises(ValueError, match=said):
        corrected_difference(first, side([1, 0], [0, 1], [1, 0]))


def test_documents_whose_samples_are_alike_are_the_units():
    rng, held, plain = np.random.default_rng(5), 0, 0
    for _ in range(60):
        documents = np.repeat(np.arange(30), 8)
        people = [np.repeat(rng.random(30) < rate, 8) for rate in (0.7, 0.5)]
        judge = [np.where(np.repeat(rng.random(30) < 0.2, 8), ~one, one) for one in people]
        places = np.sort(rng.choice(240, 120, replace=False))
        sides = [side(one, places, truth[places]) for one, truth in zip(judge, people, strict=True)]
        for units in (None, documents):
            found = corrected_difference(*sides, units=units).interval
            covers = found.lower <= -0.2 <= found.upper
            held, plain = held + (covers and units is not None), plain + (covers and units is None)
    assert plain < 45
    assert held >= 54
