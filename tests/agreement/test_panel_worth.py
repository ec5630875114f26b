import numpy as np
import pytest

from deemster.agreement import compute_metrics
from deemster.datasets import Votes
from tests.agreement.make_votes import DEPTH, FACTS, graded, votes_value
from tests.builders.panels import correlated_errors, panel_votes


def panel_of(value, **more):
    return compute_metrics(Votes.parse(value), None, **more).panel


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.7])
def test_panel_of_known_correlation_is_worth_what_kish_says(correlation):
    errors = correlated_errors(np.random.default_rng(3), 4000, judges=3, rate=0.2, correlation=correlation)
    panel = panel_of(panel_votes(errors))
    worth = 3 / (1 + 2 * correlation)
    assert panel.effective_votes == pytest.approx(worth, abs=0.15)
    assert panel.ci.lower <= worth <= panel.ci.upper
    assert [pair.correlation for pair in panel.pairs] == pytest.approx([correlation] * 3, abs=0.06)


def test_interval_holds_its_level_with_few_labels():
    inside = 0
    for seed in range(60):
        errors = correlated_errors(np.random.default_rng(seed), 50, judges=3, rate=0.2, correlation=0.3)
        ci = panel_of(panel_votes(errors)).ci
        inside += ci.lower <= 3 / 1.6 <= ci.upper
    assert inside >= 53


def test_without_labels_of_every_judge_there_is_no_panel():
    alone = panel_votes(np.zeros((5, 1)))
    assert panel_of(alone) is None
    apart = [graded("1", ["MET"], a=["MET"], b=[None]), graded("2", ["MET"], a=[None], b=["MET"])]
    assert panel_of(votes_value(apart, [FACTS], "ab")) is None


def test_judge_that_never_errs_leaves_the_votes_unknown():
    errors = correlated_errors(np.random.default_rng(0), 60, judges=3, rate=0.3, correlation=0.2)
    errors[:, 1] = 0
    panel = panel_of(panel_votes(errors))
    assert (panel.effective_votes, panel.ci) == (None, None)
    assert panel.best_judge == "b"


def test_judge_that_copies_another_can_go():
    rng = np.random.default_rng(1)
    errors = correlated_errors(rng, 2000, judges=3, rate=0.2, correlation=0.0)
    five = np.column_stack([errors, errors[:, 2], errors[:, 2]])
    panel = panel_of(panel_votes(five, costs=[1, 1, 1, 1, 4]))
    copies = panel.pairs[:3]
    assert [pair.correlation for pair in copies] == pytest.approx([1, 1, 1])
    assert {name for pair in copies for name in (pair.judge_a, pair.judge_b)} == {"c", "d", "e"}
    last = panel.members[-1]
    assert last.cost_share == 0.5
    assert last.loss_ci.upper < 0.01


def test_panel_of_independent_judges_beats_its_best_member():
    errors = correlated_errors(np.random.default_rng(2), 1500, judges=5, rate=0.25, correlation=0.0)
    panel = panel_of(panel_votes(errors))
    assert panel.gain_ci.lower > 0.05
    assert panel.error == pytest.approx(0.104, abs=0.03)


def test_best_member_is_not_chosen_on_the_items_that_judge_it():
    # Judges that are alike: the one that looks best on all items is chance, and cross-validation is not taken in.
    gains = []
    for seed in range(40):
        errors = correlated_errors(np.random.default_rng(seed), 100, judges=9, rate=0.3, correlation=0.999)
        errors = np.where(np.random.default_rng(seed + 99).random(errors.shape) < 0.1, 1 - errors, errors)
        panel = panel_of(panel_votes(errors))
        apparent = min(member.error for member in panel.members) - panel.error
        gains.append(panel.gain - apparent)
    assert np.mean(gains) > 0.01


def test_cost_is_known_only_where_every_judge_has_one():
    errors = correlated_errors(np.random.default_rng(0), 60, judges=3, rate=0.3, correlation=0.2)
    value = panel_votes(errors, costs=[1, 2, 1])
    assert [member.cost_share for member in panel_of(value).members] == [0.25, 0.5, 0.25]
    del value["judges"][0]["cost_usd"]
    assert [member.cost_share for member in panel_of(value).members] == [None] * 3


def test_votes_file_keeps_what_a_judge_cost():
    value = panel_votes(np.zeros((2, 2)), costs=[0.5, 2])
    again = Votes.parse(Votes.parse(value).to_dict())
    assert [judge.cost_usd for judge in again.judges] == [0.5, 2]


def test_ordinal_error_is_the_distance_on_the_scale():
    items = [graded(str(n), ["good"], a=["fair"], b=["poor" if n % 2 else "good"]) for n in range(8)]
    panel = panel_of(votes_value(items, [DEPTH], "ab"))
    assert [member.error for member in panel.members] == [0.5, 0.5]


def test_criterion_on_which_all_err_more_is_no_shared_error():
    rng = np.random.default_rng(5)
    easy = rng.random((2000, 3)) < 0.05
    hard = rng.random((2000, 3)) < 0.4
    items = [
        graded(str(n), ["MET", "MET"], **{
            judge: ["UNMET" if a[at] else "MET", "UNMET" if b[at] else "MET"] for at, judge in enumerate("abc")
        })
        for n, (a, b) in enumerate(zip(easy, hard, strict=True))
    ]  # fmt: skip
    panel = panel_of(votes_value(items, [FACTS, {**FACTS, "name": "form"}], "abc"))
    assert panel.effective_votes == pytest.approx(3, abs=0.2)


def test_report_names_what_can_be_dropped_and_who_errs_together():
    errors = correlated_errors(np.random.default_rng(1), 2000, judges=3, rate=0.2, correlation=0.5)
    text = " ".join(compute_metrics(Votes.parse(panel_votes(errors, costs=[1, 1, 2])), None).summary().split())
    assert "3 judges voted on 2,000 labelled cells: they are worth 1.5 (1.4 to 1.5) independent votes." in text
    assert "and saves 50.0 % of the cost." in text
    assert "The errors of a and b go together: correlation 0.5293 (0.4780 to 0.5776)." in text
