import pytest
from statsmodels.stats.proportion import proportion_confint

from deemster.agreement import judge_agreement
from deemster.datasets import Votes
from deemster.errors import InputError
from tests.agreement.make_votes import FACTS, PADDING, votes_value


def agreed(rows, *, judges=("a", "b"), criteria=(FACTS,), **more):
    return judge_agreement(Votes.parse(votes_value(rows, criteria=list(criteria), judges=list(judges))), **more)


def item(place, **votes):
    truth = ["MET"] * len(next(iter(votes.values())))
    return {"id": f"q{place:03d}", "ground_truth": truth, "votes": votes}


def test_share_of_equal_verdicts_has_wilsons_interval_where_items_have_one_cell():
    rows = [item(place, a=["MET"], b=["MET" if place < 15 else "UNMET"]) for place in range(20)]
    (pair,) = agreed(rows)
    assert (pair.judge_a, pair.judge_b, pair.n_samples, pair.agreement) == ("a", "b", 20, 0.75)
    assert (pair.ci.lower, pair.ci.upper) == pytest.approx(proportion_confint(15, 20, method="wilson"), abs=1e-9)


def test_missing_votes_and_abstentions_are_left_out():
    rows = [item(0, a=["MET"], b=["MET"]), item(1, a=["MET"], b=[None]), item(2, a=["CANNOT_ASSESS"], b=["MET"])]
    (pair,) = agreed(rows)
    assert (pair.n_samples, pair.agreement) == (1, 1.0)


def test_cells_of_one_item_count_as_less_than_independent_ones():
    apart = [item(place, a=["MET"], b=["MET" if place % 2 else "UNMET"]) for place in range(40)]
    rows = [item(place, a=["MET", "MET"], b=["MET" if place % 2 else "UNMET"] * 2) for place in range(20)]
    (alone,), (together,) = agreed(apart), agreed(rows, criteria=(FACTS, PADDING))
    assert together.n_samples == alone.n_samples == 40
    assert together.ci.upper - together.ci.lower > alone.ci.upper - alone.ci.lower


def test_every_pair_of_judges_is_there_once_and_one_judge_has_none():
    rows = [item(place, a=["MET"], b=["MET"], c=["UNMET"]) for place in range(3)]
    pairs = agreed(rows, judges=("a", "b", "c"))
    assert [(pair.judge_a, pair.judge_b, pair.agreement) for pair in pairs] == [
        ("a", "b", 1.0),
        ("a", "c", 0.0),
        ("b", "c", 0.0),
    ]
    votes = Votes.parse(votes_value(rows, criteria=[FACTS], judges=["a", "b", "c"]))
    assert judge_agreement(votes, judges=["a"]) == ()
    with pytest.raises(InputError, match="There is no judge 'd'"):
        judge_agreement(votes, judges=["d"])
