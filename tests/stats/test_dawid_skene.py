from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deemster.stats import (
    dawid_skene,
)
from tests.builders.published_numbers import PUBLISHED, near

ballots = st.lists(
    st.lists(st.one_of(st.none(), st.sampled_from("abc")), min_size=3, max_size=3), min_size=1, max_size=12
)


def plain_dawid_skene(rows, rounds):
    """The model with nested loops, for a fixed number of rounds."""
    rows = [row for row in rows if any(vote is not None for vote in row)]
    kinds = sorted({vote for row in rows for vote in row if vote is not None})
    truth = [
        [sum(vote == kind for vote in row) / sum(vote is not None for vote in row) for kind in kinds] for row in rows
    ]
    for _ in range(rounds):
        priors = [sum(t[k] for t in truth) / len(truth) for k in range(len(kinds))]
        errors = {}
        for judge in range(3):
            for k in range(len(kinds)):
                given_k = [
                    sum(t[k] for t, row in zip(truth, rows, strict=True) if row[judge] == kind) for kind in kinds
                ]
                errors[judge, k] = [part / sum(given_k) if sum(given_k) else 0.0 for part in given_k]
        truth = []
        for row in rows:
            joint = list(priors)
            for judge, vote in enumerate(row):
                if vote is not None:
                    joint = [part * errors[judge, k][kinds.index(vote)] for k, part in enumerate(joint)]
            truth.append([part / sum(joint) for part in joint])
    return truth


@given(ballots, st.integers(1, 6))
def test_vectorised_model_equals_nested_loops(rows, rounds):
    result = dawid_skene(rows, rounds=rounds, tolerance=-math.inf)
    expected = plain_dawid_skene(rows, rounds)
    assert np.allclose(np.array(result.posterior).reshape(-1), np.array(expected).reshape(-1), atol=1e-9)
    assert result.rounds == (rounds if result.n else 0)


@settings(deadline=None)
@given(ballots)
def test_every_round_gains_likelihood(rows):
    found = [dawid_skene(rows, rounds=rounds, tolerance=-math.inf).log_likelihood for rounds in range(1, 6)]
    if found[0] is not None:
        assert all(after >= before - 1e-9 for before, after in itertools.pairwise(found))


def test_good_judge_outvotes_four_near_random_judges():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 1000)
    votes = [np.where(rng.random(1000) < skill, truth, 1 - truth) for skill in (0.95, 0.75, 0.6, 0.55, 0.5)]
    result = dawid_skene(np.column_stack(votes))
    assert max(result.accuracy, key=result.accuracy.get) == 0
    assert result.accuracy[0] == pytest.approx(0.95, abs=0.04)
    majority = sum(votes) >= 3
    assert np.mean(np.array(result.labels) == truth) > np.mean(majority == truth)


def test_all_forms_of_votes_give_same_result():
    rows = [["a", "b"], ["b", "b"], ["a", None]]
    named = {place: {judge: vote for judge, vote in enumerate(row) if vote} for place, row in enumerate(rows)}
    nested = [[[vote] for vote in row] for row in rows]
    assert dawid_skene(rows) == dawid_skene(named) == dawid_skene(nested)
    numbers = np.array([[[0.0, np.nan], [1.0, 1.0]], [[1.0, 1.0], [1.0, 0.0]]])
    assert dawid_skene(numbers) == dawid_skene([[[0.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 0.0]]])


def test_items_without_a_vote_are_left_out():
    result = dawid_skene({"x": {"j": "a"}, "y": {"j": None}, "z": {}})
    assert (result.items, result.labels, result.n) == (("x",), ("a",), 1)
    empty = dawid_skene([])
    assert (empty.n, empty.log_likelihood, empty.labels) == (0, None, ())


def test_class_unseen_by_judge_has_no_error_rates():
    result = dawid_skene([["a", None], ["b", "b"]])
    assert result.confusion[1] == (None, (0.0, 1.0))
    assert result.accuracy[1] == 1.0


def test_votes_outside_classes_are_error():
    with pytest.raises(ValueError, match="'c' is none of the classes 'a', 'b'"):
        dawid_skene([["a", "c"]], classes=["a", "b"])
    with pytest.raises(ValueError, match="item 1 has 1 and not 2"):
        dawid_skene([["a", "b"], ["a"]])


def test_anaesthetists_have_dawid_and_skenes_error_rates():
    entry = PUBLISHED["dawid_skene_1979"]
    expected = entry["expected"]
    result = dawid_skene(entry["input"], classes=[1, 2, 3, 4])
    assert list(result.priors) == near("dawid_skene_1979", expected["class_marginals"])
    assert result.log_likelihood == near("dawid_skene_1979", expected["loglik"])
    rows = result.confusion["1"]
    assert [rows[place][place] for place in range(4)] == near("dawid_skene_1979", expected["observer1_diag"])
    labels = dict(zip(result.items, result.labels, strict=True))
    for item, majority, label in expected["labels_differing_from_majority"]:
        votes = [vote for given in entry["input"][str(item)].values() for vote in given]
        assert max(set(votes), key=votes.count) == majority
        assert labels[str(item)] == label
    assert result.converged
