"""Position bias of pairs that were shown in both orders."""

from __future__ import annotations

import random

import pytest
from scipy import stats

from deemster.agreement import BootstrapSettings, MetricsResult, compute_metrics
from deemster.datasets import Votes
from deemster.errors import InputError
from tests.agreement.make_votes import votes_value

BETTER = {
    "name": "better",
    "requirement": "Which answer is better?",
    "scale_type": "nominal",
    "options": [{"label": "first", "value": 1}, {"label": "second", "value": 0}, {"label": "tie", "value": 0.5}],
}
MARGIN = {
    "name": "margin",
    "requirement": "How much better is the first?",
    "options": [{"label": word, "value": at / 4} for at, word in enumerate(("--", "-", "=", "+", "++"))],
}
OTHER = {"first": "second", "second": "first", "tie": "tie"}


def pair(name, one, two, *, truth="first", judges=("a",)):
    """The two items of a pair: what each judge says in either order."""
    cast = [one if isinstance(one, tuple) else (one,) * len(judges), two if isinstance(two, tuple) else (two,)]
    return [
        {
            "id": f"{name}-{order}",
            "metadata": {"pair": name},
            "ground_truth": [truth if order == 0 else OTHER[truth]],
            "votes": {judge: [verdict] for judge, verdict in zip(judges, cast[order], strict=True)},
        }
        for order in (0, 1)
    ]


def votes(pairs, *, criteria=(BETTER,), judges=("a",)):
    items = [item for both in pairs for item in both]
    return Votes.parse(votes_value(items, criteria=criteria, judges=judges))


def test_pairs_are_counted_as_consistent_or_by_the_place_they_favour():
    given = [("first", "second"), ("second", "first"), ("tie", "tie"), ("first", "first"), ("second", "second")]
    given += [("first", "tie"), ("first", "first"), ("CANNOT_ASSESS", "first")]
    data = votes([pair(f"p{at}", one, two) for at, (one, two) in enumerate(given)])
    (found,) = compute_metrics(data, pair="pair").position_bias
    assert (found.criterion, found.judge_id, found.n_pairs) == ("better", None, 7)
    assert found.consistency == pytest.approx(3 / 7)
    assert (found.favours_first, found.favours_second) == (3, 1)
    assert found.p_value == pytest.approx(stats.binomtest(3, 4).pvalue)
    interval = stats.binomtest(3, 7).proportion_ci(0.95, "exact")
    assert (found.consistency_ci.lower, found.consistency_ci.upper) == pytest.approx(tuple(interval))


def test_every_judge_of_a_panel_has_numbers_of_its_own():
    data = votes([pair("p", ("first", "first"), ("second", "first"), judges="ab")], judges="ab")
    found = {part.judge_id: part for part in compute_metrics(data, pair="pair").position_bias}
    assert list(found) == [None, "a", "b"]
    assert (found["a"].consistency, found["b"].consistency) == (1.0, 0.0)
    assert found["b"].favours_first == 1


def test_places_on_a_scale_are_mirrored():
    items = [
        {"id": f"{at}{order}", "metadata": {"p": at}, "ground_truth": ["="], "votes": {"a": [verdict]}}
        for at, both in enumerate([("--", "++"), ("-", "+"), ("--", "+"), ("=", "=")])
        for order, verdict in enumerate(both)
    ]
    (found,) = compute_metrics(Votes.parse(votes_value(items, criteria=(MARGIN,), judges="a")), pair="p").position_bias
    assert (found.n_pairs, found.consistency, found.favours_first) == (4, 0.75, 1)


def test_whole_pairs_are_resampled_unless_clusters_are_named():
    chance = random.Random(3)
    data = votes([pair(f"p{at}", chance.choice(("first", "second")), "first") for at in range(30)])
    result = compute_metrics(data, pair="pair", bootstrap=BootstrapSettings(replicates=50))
    assert result.bootstrap.unit == "cluster"
    assert (
        result.intervals == compute_metrics(data, cluster="pair", bootstrap=BootstrapSettings(replicates=50)).intervals
    )


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("pairs", "No item's metadata has `pairs` to find pairs by. Did you mean `pair`?"),
        ("pair", "`p2` has 1: `p2-0`."),
    ],
)
def test_pairs_that_are_none_are_an_error(key, message):
    data = votes([pair("p1", "first", "first"), pair("p2", "first", "first")[:1]])
    with pytest.raises(InputError, match=message.replace("`", ".").split(" Did")[0]):
        compute_metrics(data, pair=key)


def test_result_with_position_bias_is_read_back(tmp_path):
    result = compute_metrics(
        votes([pair("p", "first", "first")]), pair="pair", bootstrap=BootstrapSettings(replicates=20)
    )
    result.save(tmp_path / "r.json")
    assert MetricsResult.from_file(tmp_path / "r.json") == result
    assert (
        compute_metrics(votes([pair("p", "first", "first")]), bootstrap=BootstrapSettings(replicates=20)).position_bias
        is None
    )
