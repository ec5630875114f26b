from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.agreement.judge_comparison import _pair_judges, compare_judges
from deemster.datasets import Votes, derive
from deemster.errors import InputError
from deemster.stats.bootstrap_resampling import bayesian_weight_blocks
from tests.agreement import make_votes as ballots
from tests.agreement.make_votes import CRITERIA, FACTS, MODES, PADDING, labelled_votes, votes_value
from tests.builders.arguments import agreement_arguments


def compared(value, a="a", b="b", **more):
    return compare_judges(
        Votes.parse(value), None, a, b, **agreement_arguments(**{"seed": 1, "replicates": 50, **more})
    )


def discordant(only_a, only_b, both=5, neither=3):
    """One criterion on which a alone is right so often, b alone so often."""
    said = [("MET", "UNMET")] * only_a + [("UNMET", "MET")] * only_b + [("MET", "MET")] * both
    said += [("UNMET", "UNMET")] * neither
    return [
        {"id": f"q{place:03d}", "ground_truth": ["MET"], "votes": {"a": [a], "b": [b]}}
        for place, (a, b) in enumerate(said)
    ]


def test_eight_against_two_discordant_cells_is_not_significant():
    found = compared(votes_value(discordant(8, 2), criteria=[FACTS], judges=["a", "b"]))
    (one,) = found.per_criterion
    assert (one.only_a_right, one.only_b_right, one.n_samples) == (8, 2, 18)
    assert one.p_value == pytest.approx(0.109375, abs=1e-12)
    assert one.adjusted_p_value == pytest.approx(0.109375, abs=1e-12)
    assert (one.accuracy_a, one.accuracy_b) == (13 / 18, 7 / 18)
    assert found.accuracy.difference.estimate == pytest.approx(6 / 18)
    # The truth is MET throughout, the judges are not: kappa is 0 for both.
    assert (found.mean_kappa.a, found.mean_kappa.b, found.mean_kappa.difference.estimate) == (0.0, 0.0, 0.0)


def test_without_a_discordant_cell_there_is_no_test():
    found = compared(votes_value(discordant(0, 0), criteria=[FACTS], judges=["a", "b"]))
    assert found.per_criterion[0].p_value is None
    assert found.per_criterion[0].adjusted_p_value is None


def test_holm_corrects_over_the_criteria_that_have_a_test():
    def item(place, a, b):
        return {"id": f"q{place:02d}", "ground_truth": ["MET", "MET"], "votes": {"a": a, "b": b}}

    rows = [item(place, ["MET", "MET"], ["UNMET", "UNMET"]) for place in range(5)]
    rows += [item(place, ["MET", "UNMET"], ["UNMET", "MET"]) for place in range(5, 7)]
    rows += [item(7, ["MET", None], ["UNMET", "MET"])]
    found = compared(votes_value(rows, criteria=[FACTS, PADDING], judges=["a", "b"]))
    facts, padding = found.per_criterion
    # 8 to 0: 2/256; 5 to 2: 2·(1 + 7 + 21)/128.
    assert (facts.p_value, padding.p_value) == pytest.approx((1 / 128, 58 / 128))
    assert (facts.adjusted_p_value, padding.adjusted_p_value) == pytest.approx((2 / 128, 58 / 128))
    assert (facts.n_samples, padding.n_samples, found.n_samples) == (8, 7, 15)


def test_unknown_judge_is_error_with_suggestion():
    value = votes_value(discordant(1, 1), criteria=[FACTS], judges=["a", "b"])
    with pytest.raises(InputError, match="no judge 'bb' among the votes"):
        compared(value, b="bb")
    with pytest.raises(InputError, match="with another one"):
        compared(value, b="a")


@pytest.mark.parametrize("wrong", [{"replicates": -1}, {"confidence": 1.0}, {"seed": -1}, {"method": "bca"}])
def test_settings_out_of_range_are_refused(wrong):
    value = votes_value(discordant(1, 1), criteria=[FACTS], judges=["a", "b"])
    with pytest.raises(
        ValueError, match=r"`(replicates|confidence|seed)` |compared by the smoothed bootstrap alone, not by 'bca'"
    ):
        compared(value, **wrong)


def test_comparison_draws_whole_clusters():
    rows = discordant(4, 3)
    for place, row in enumerate(rows):
        row["metadata"] = {"group": place % 2}
    found = compared(votes_value(rows, criteria=[FACTS], judges=["a", "b"]), cluster="group", replicates=200)
    assert found.unit == "cluster"
    # Even places: 2 to 2 of 8 items; odd ones: 2 to 1 of 7. Weights of single items would give another error.
    assert found.accuracy.difference.estimate == pytest.approx(1 / 15)
    even, odd = np.concatenate(list(bayesian_weight_blocks(2, 200, 1)), axis=1)
    error = np.std(odd / (8 * even + 7 * odd), ddof=1)
    assert found.accuracy.difference.standard_error == pytest.approx(error)
    assert -1 <= found.accuracy.difference.ci.lower < 0 < 1 / 7 < found.accuracy.difference.ci.upper <= 1
    assert any(note.startswith("few-clusters") for note in found.warnings)


def slow_values(value, modes, a, b, draw):
    """Accuracy, mean kappa and RMSE of both judges, by loops over the items of a replicate."""
    items = ballots.used(value)
    (facts,) = derive(Votes.parse(value))
    place_of = {item["id"]: place for place, item in enumerate(value["items"])}
    judges = {judge["id"]: place for place, judge in enumerate(value["judges"])}
    chosen = [items[place] for place in draw]
    hits, count, kappas, errors = [0, 0], 0, [], []
    for place, criterion in enumerate(CRITERIA):
        pairs = [[], []]
        for item in chosen:
            truth = ballots.seen(criterion, ballots.truth_of(item, place, criterion), modes)
            said = [
                ballots.seen(criterion, item["votes"][judge][place] if judge in item["votes"] else None, modes)
                for judge in (a, b)
            ]
            if None not in (truth, *said):
                count += 1
                for side in (0, 1):
                    hits[side] += truth == said[side]
                    pairs[side].append((truth, said[side]))
        both = [ballots.kappa(side, criterion) for side in pairs]
        if None not in both:
            kappas.append(both)
    for item in chosen:
        row = place_of[item["id"]]
        apart = [facts.judge_scores[row, judges[judge]] - facts.true_score[row] for judge in (a, b)]
        if not any(map(math.isnan, apart)):
            errors.append(apart)
    return (
        [side / count if count else None for side in hits],
        [ballots.mean(one[side] for one in kappas) for side in (0, 1)],
        [math.sqrt(sum(one[side] ** 2 for one in errors) / len(errors)) if errors else None for side in (0, 1)],
        len(errors),
    )


@given(ballots.panels(), st.sampled_from(MODES), st.integers(0, 2**31))
def test_comparison_equals_loop_over_same_draws(value, modes, seed):
    for item in value["items"]:
        for cells in item["votes"].values():
            cells[:] = [cell[0] if isinstance(cell, list) else cell for cell in cells]
    found = compared(value, seed=seed, replicates=40, cannot_assess=modes.cannot_assess, na_mode=modes.na_mode)
    n = len(ballots.used(value))
    expected = slow_values(value, modes, "a", "b", range(n))
    drawn = np.random.default_rng(seed).integers(0, n, (5, n))
    counts = np.stack([np.bincount(places, minlength=n) for places in drawn], axis=1).astype(np.float64)
    replicates = _pair_judges(labelled_votes(value, modes), (0, 1)).values(counts)
    draws = [slow_values(value, modes, "a", "b", places) for places in drawn.tolist()]
    assert found.score_rmse.n_samples == expected[3]
    for place, part in enumerate((found.accuracy, found.mean_kappa, found.score_rmse)):
        a, b = expected[place]
        assert [part.a, part.b] == [pytest.approx(one, abs=1e-9) if one is not None else None for one in (a, b)]
        known = [one[place] if None not in one[place] else (np.nan, np.nan) for one in draws]
        gaps = [one - other for one, other in known]
        assert np.allclose(replicates[3 * place + 2], gaps, rtol=0, atol=1e-9, equal_nan=True)
        interval = part.difference.ci
        if a is None or n == 1:
            assert interval is None
        else:
            most = np.inf if place == 2 else 2 - (place == 0)
            assert -most <= interval.lower < interval.upper <= most
            assert (interval.method, part.difference.n_bootstrap) == ("smoothed", 40)


def test_judges_who_agree_throughout_may_still_differ():
    found = compared(votes_value(discordant(0, 0, both=10, neither=2), criteria=[FACTS], judges=["a", "b"]))
    assert found.accuracy.difference.estimate == 0.0
    assert found.accuracy.difference.ci.lower < 0 < found.accuracy.difference.ci.upper
