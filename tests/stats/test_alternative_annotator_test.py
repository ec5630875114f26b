"""Latent truth, calibration and the alternative annotator test: laws and edges."""

from __future__ import annotations

import pytest

from deemster.stats import (
    alternative_annotator_test,
)
from tests.builders.published_numbers import PUBLISHED, near


def people(n=60):
    return [[(i + (7 * i + 11 * a) % 10 // 8) % 3 for i in range(n)] for a in range(3)]


def test_fewer_than_thirty_items_are_not_tested():
    result = alternative_annotator_test([i % 3 for i in range(29)], people(29))
    assert (result.value, result.passes, result.advantage, result.n) == (None, None, None, 0)
    assert result.trials[0].n == 29
    assert result.trials[0].p_value is None


def test_annotator_is_compared_on_its_own_items_only():
    rows = people()
    rows[0] = [None if place % 2 else label for place, label in enumerate(rows[0])]
    result = alternative_annotator_test([i % 3 for i in range(60)], dict(zip("xyz", rows, strict=True)))
    assert {name: trial.n for name, trial in result.trials.items()} == {"x": 30, "y": 60, "z": 60}


def test_ordinal_disagreement_counts_distance():
    truth = [i % 5 for i in range(60)]
    annotators = [[min(4, t + (i * (3 + a)) % 7 // 6) for i, t in enumerate(truth)] for a in range(3)]
    judge = [t + 0.5 for t in truth]
    named = alternative_annotator_test(judge, annotators)
    scaled = alternative_annotator_test(judge, annotators, ordinal=True)
    assert named.advantage < scaled.advantage


def test_without_spread_the_test_is_decided_by_the_mean():
    same = [[0] * 40] * 3
    assert alternative_annotator_test([0] * 40, same).value == 1.0
    assert alternative_annotator_test([1] * 40, same).value == 0.0
    assert alternative_annotator_test([0] * 40, same, epsilon=0).value == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: alternative_annotator_test([0], [[0], [0]]), "three annotators"),
        (lambda: alternative_annotator_test([0, 1], [[0], [0], [0]]), "one label for each item"),
        (lambda: alternative_annotator_test([0], [[0]] * 3, epsilon=1), "epsilon"),
        (lambda: alternative_annotator_test(["a"], [["a"]] * 3, ordinal=True), "numbers"),
    ],
)
def test_misuse_of_the_annotator_test_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_synthetic_annotators_are_beaten_as_in_the_authors_notebook():
    gold = [place % 3 for place in range(60)]
    people = [[(g + 1) % 3 if (7 * i + 11 * a) % 10 < 2 else g for i, g in enumerate(gold)] for a in range(3)]
    for key, rows in PUBLISHED["alt_test_synthetic"]["expected"].items():
        errs = int(key.removeprefix("k="))
        judge = [(g + 2) % 3 if (3 * i + 5) % 10 < errs else g for i, g in enumerate(gold)]
        for name, expected in rows.items():
            result = alternative_annotator_test(judge, people, epsilon=float(name.removeprefix("eps")))
            assert [result.value, result.advantage] == near("alt_test_synthetic", expected), (key, name)
