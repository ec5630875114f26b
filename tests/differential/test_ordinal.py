"""Ordinal credit against scikit-learn's weighted kappa."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from deemster.metrics.ordinal_distance import OrdinalDistance
from deemster.records import Output, Sample

SCALE = ["low", "medium", "high", "urgent"]
labels = st.lists(st.tuples(st.sampled_from(SCALE), st.sampled_from(SCALE)), min_size=2, max_size=40)


@given(labels)
def test_linear_credit_gives_the_linearly_weighted_kappa(pairs):
    people, answers = zip(*pairs, strict=True)
    assume(len({*people, *answers}) > 1)
    metric = OrdinalDistance(scale=SCALE, credit="linear")

    def lost(expected, actual):
        return 1 - metric.score(Sample("s", {}, expected), Output(actual)).score

    observed = sum(lost(*pair) for pair in pairs) / len(pairs)
    chance = sum(lost(one, other) for one in people for other in answers) / len(pairs) ** 2
    reference = cohen_kappa_score(people, answers, labels=SCALE, weights="linear")
    assert 1 - observed / chance == pytest.approx(reference, abs=1e-9)
