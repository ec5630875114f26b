"""Cascades: the numbers of each threshold, the chosen threshold, and whether the intervals hold on fresh items."""

from __future__ import annotations

import random

import numpy as np
import pytest

from deemster.agreement import cascade_calibration as cascade
from deemster.agreement.cascade_calibration import calibrate_cascade
from deemster.datasets import Votes
from deemster.errors import InputError
from tests.agreement.make_votes import DEPTH, FACTS, PADDING, votes_value

COSTS = {"cheap": 1.0, "strong": 10.0}
FAILURE = {"failure": "parse"}


def sure(p, verdict="MET"):
    return {"verdict": verdict, "p": p}


def items(*rows):
    """Items of one criterion: truth, the cheap judge's cell, the strong judge's cell."""
    return [
        {"id": f"q{place}", "ground_truth": [truth], "votes": {"cheap": [cheap], "strong": [strong]}}
        for place, (truth, cheap, strong) in enumerate(rows)
    ]


def calibrated(rows, *, criteria=(FACTS,), judges=("cheap", "strong"), **more):
    votes = Votes.parse(votes_value(rows, criteria=criteria, judges=judges))
    return calibrate_cascade(votes, **{"cheap": "cheap", "strong": ["strong"], "costs": COSTS, "seed": 7, **more})


FOUR = items(
    ("MET", sure(0.9), "MET"),
    ("MET", sure(0.2, "UNMET"), "MET"),
    ("UNMET", sure(0.6), "UNMET"),
    ("MET", sure(0.7), "UNMET"),
)


def test_thresholds_have_hand_computed_numbers():
    points = calibrated(FOUR).points
    # Sure of MET by 0.9, of UNMET by 0.8, of MET by 0.6 and 0.7.
    assert [point.threshold for point in points] == [0.6, 0.7, 0.8, 0.9, None]
    assert [point.accuracy for point in points] == [0.5, 0.75, 0.5, 0.75, 0.75]
    assert [point.cost_per_item for point in points] == [1, 3.5, 6, 8.5, 11]
    assert [point.escalation_share for point in points] == [0, 0.25, 0.5, 0.75, 1]
    assert [point.n_escalated for point in points] == [0, 1, 2, 3, 4]


def test_cheapest_threshold_within_the_tolerance_is_chosen():
    assert calibrated(FOUR, tolerance=0).choice.threshold == 0.7
    assert calibrated(FOUR, tolerance=0.2).choice.threshold == 0.7
    assert calibrated(FOUR, tolerance=0.25).choice.threshold == 0.6


def test_result_has_cheap_and_strong_alone():
    result = calibrated(FOUR)
    assert (result.cheap_only, result.cheap_cost) == (0.5, 1)
    assert (result.strong_only, result.strong_cost) == (0.75, 10)
    assert result.pays


@pytest.mark.parametrize("cell", ["CANNOT_ASSESS", FAILURE, "MET", [FAILURE, FAILURE]])
def test_abstention_failure_or_missing_confidence_always_escalates(cell):
    result = calibrated([*FOUR, *({**row, "id": "more"} for row in items(("UNMET", cell, "UNMET")))])
    assert result.n_forced == 1
    assert [point.n_escalated for point in result.points] == [1, 2, 3, 4, 5]


def test_repeats_give_confidence_and_each_costs():
    rows = items(
        ("MET", ["MET", "MET", "MET", "MET"], "MET"),
        ("MET", ["MET", "UNMET", "UNMET", "UNMET"], "MET"),
        ("MET", ["MET", "MET", "CANNOT_ASSESS", FAILURE], "MET"),
    )
    points = calibrated(rows).points
    assert [point.threshold for point in points] == [0.5, 0.75, 1.0, None]
    assert [point.cost_per_item for point in points] == pytest.approx([4, 4 + 10 / 3, 4 + 20 / 3, 14])


def test_confidences_that_differ_by_rounding_are_one_threshold():
    result = calibrated(items(("MET", sure(0.59), "MET"), ("MET", sure(0.41, "UNMET"), "MET")))
    assert [point.threshold for point in result.points] == [0.59, None]


def test_many_confidences_are_thinned_and_the_ends_stay():
    result = calibrated(items(*(("MET", sure(0.5 + place / 1000), "MET") for place in range(400))))
    levels = [point.threshold for point in result.points]
    assert (len(levels), levels[0], levels[-2], levels[-1]) == (101, 0.5, 0.899, None)


def test_on_a_scale_the_probability_of_what_was_voted_for_counts():
    rows = items(
        ("good", {"verdict": "good", "p": [0.8, 0.1, 0.1]}, "good"),
        ("fair", {"verdict": "poor", "p": [0.3, 0.3, 0.4]}, "fair"),
    )
    points = calibrated(rows, criteria=[DEPTH]).points
    assert [point.threshold for point in points] == [0.4, 0.8, None]
    assert [point.accuracy for point in points] == [0.5, 1, 1]


def test_strong_panel_is_joined_by_the_rules_of_the_votes():
    rows = [
        {"id": f"q{place}", "ground_truth": ["MET"], "votes": {"cheap": [sure(0.6)], "a": ["MET"], "b": [second]}}
        for place, second in enumerate(["MET", "UNMET", FAILURE])
    ]
    result = calibrated(rows, judges=("cheap", "a", "b"), strong=["a", "b"], costs={"cheap": 1, "a": 5, "b": 7})
    # A tie goes to the worst case; a failed call abstains.
    assert result.strong_only == pytest.approx(2 / 3)
    assert result.strong_cost == 12


def test_undecided_cell_counts_as_wrong():
    result = calibrated([*FOUR, *({**row, "id": "more"} for row in items(("UNMET", FAILURE, "CANNOT_ASSESS")))])
    assert [point.n_unanswered for point in result.points] == [1] * 5
    assert result.strong_only == 0.6


def test_cell_without_truth_is_ignored_and_cell_without_votes_is_counted():
    more = [
        {"id": "x1", "ground_truth": [None], "votes": {"cheap": [sure(0.9)], "strong": ["MET"]}},
        {"id": "x2", "ground_truth": ["CANNOT_ASSESS"], "votes": {"cheap": [sure(0.9)], "strong": ["MET"]}},
        {"id": "x3", "ground_truth": ["MET"], "votes": {"cheap": [sure(0.9)]}},
    ]
    result = calibrated([*FOUR, *more])
    assert (result.n_items, result.n_cells, result.n_left_out) == (4, 4, 1)


def test_order_of_the_file_changes_nothing():
    rows = drawn(np.random.default_rng(1), 40)
    mixed = list(rows)
    random.Random(3).shuffle(mixed)
    assert calibrated(rows, criteria=[FACTS, PADDING]) == calibrated(mixed, criteria=[FACTS, PADDING])


def test_intervals_contain_estimates_and_have_width():
    for point in calibrated(items(*[("MET", sure(0.9), "MET")] * 5, ("MET", sure(0.8), "MET"))).points:
        assert point.accuracy == 1
        assert point.accuracy_ci.lower < 1 == point.accuracy_ci.upper
        assert point.cost_ci.lower <= point.cost_per_item <= point.cost_ci.upper
        if point.threshold is not None:
            assert point.escalation_ci.width > 0
            assert point.cost_ci.width > 0


def test_interval_for_small_new_run_is_wider():
    rows = drawn(np.random.default_rng(2), 60)
    widths = [
        calibrated(rows, criteria=[FACTS, PADDING], fresh_items=size).choice.accuracy_ci.width
        for size in (None, 10_000, 60, 20)
    ]
    assert widths == sorted(widths)
    assert widths[0] < widths[2]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"cheap": "chep"}, "Did you mean `cheap`?"),
        ({"strong": []}, "`strong` is a list of at least one judge."),
        ({"strong": "strong"}, "`strong` is a list of at least one judge."),
        ({"strong": ["cheap"]}, "different judges"),
        ({"costs": {"cheap": 1}}, "The cost of `strong` is missing."),
        ({"costs": {"cheap": -1, "strong": 1}}, "The cost of `cheap` is a number from 0 on, not -1."),
        ({"costs": {"cheap": float("nan"), "strong": 1}}, "The cost of `cheap`"),
        ({"tolerance": 1}, "`tolerance`"),
        ({"tolerance": "small"}, "`tolerance`"),
        ({"confidence": 2}, "`confidence`"),
        ({"fresh_items": 0}, "`fresh_items`"),
        ({"fresh_items": 2.5}, "`fresh_items`"),
        ({"seed": -1}, "`seed`"),
    ],
)
def test_wrong_argument_is_refused(more, message):
    with pytest.raises(InputError) as error:
        calibrated(FOUR, **more)
    assert message in str(error.value)


def test_non_votes_are_error():
    with pytest.raises(InputError, match=r"Votes\.load"):
        calibrate_cascade("votes.json", cheap="cheap", strong=["strong"], costs=COSTS)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (items(("MET", "MET", "MET"), ("MET", "UNMET", "MET")), "`cheap` never says how sure it is"),
        (items(("MET", sure(0.5), "MET")), "at least 2 items"),
        (items(("MET", sure(0.5), None), ("MET", None, "MET")), "(2 have not)"),
    ],
)
def test_votes_unusable_for_calibration_are_error(rows, message):
    with pytest.raises(InputError) as error:
        calibrated(rows)
    assert message in str(error.value)


# A population to draw from: items differ in difficulty, and the cheap judge is less sure when it errs.
STEPS = np.arange(50, 101, 5) / 100


def world(rng, n, *, flat=False):
    """Truth, cheap verdict, confidence, abstention and strong verdict on two criteria of each item."""
    hard = (rng.random((n, 1)) + rng.random((n, 2))) / 2
    cheap_skill = np.full((n, 2), 0.85) if flat else 0.99 - 0.5 * hard
    strong_skill = np.full((n, 2), 0.85) if flat else 0.97 - 0.15 * hard
    truth = rng.random((n, 2)) < 0.6
    cheap, strong = truth == (rng.random((n, 2)) < cheap_skill), truth == (rng.random((n, 2)) < strong_skill)
    felt = np.clip(cheap_skill + rng.normal(0, 0.08, (n, 2)), 0.5, 1)
    return truth, cheap, STEPS[np.rint((felt - 0.5) / 0.05).astype(int)], rng.random((n, 2)) < 0.05, strong


def drawn(rng, n, **how):
    """The same as items of a votes file."""
    words = {True: "MET", False: "UNMET"}
    rows = []
    for place, (truth, cheap, felt, silent, strong) in enumerate(zip(*world(rng, n, **how), strict=True)):
        cells = [
            "CANNOT_ASSESS" if mute else sure(float(p if said else 1 - p), words[bool(said)])
            for said, p, mute in zip(cheap, felt, silent, strict=True)
        ]
        votes = {"cheap": cells, "strong": [words[bool(said)] for said in strong]}
        rows.append({"id": f"q{place:04d}", "ground_truth": [words[bool(one)] for one in truth], "votes": votes})
    return rows


def played(rng, n, threshold, **how):
    """What a cascade does at a threshold on fresh items: accuracy, cost per item, share escalated."""
    truth, cheap, felt, silent, strong = world(rng, n, **how)
    stands = ~silent & (felt >= (threshold if threshold is not None else 2) - 1e-9)
    verdict = np.where(stands, cheap, strong)
    escalated = float((~stands).mean())
    return float((verdict == truth).mean()), 2 * (1 + 10 * escalated), escalated


@pytest.mark.parametrize("flat", [False, True], ids=["skilled", "no threshold better than another"])
@pytest.mark.parametrize("fresh", [None, 80], ids=["long run", "fresh run"])
def test_interval_covers_accuracy_on_fresh_items(monkeypatch, flat, fresh):
    monkeypatch.setattr(cascade, "REPLICATES", 400)
    rng = np.random.default_rng(11)
    draws, kept, biases, corrected = 100, 0, [], []
    for seed in range(draws):
        result = calibrated(drawn(rng, 80, flat=flat), criteria=[FACTS, PADDING], seed=seed, fresh_items=fresh)
        choice = result.choice
        seen = played(rng, fresh or 20_000, choice.threshold, flat=flat)
        promised = (choice.accuracy_ci, choice.cost_ci, choice.escalation_ci)
        slack = 1e-9
        kept += all(ci.lower - slack <= value <= ci.upper + slack for ci, value in zip(promised, seen, strict=True))
        biases.append(choice.accuracy - seen[0])
        corrected.append(result.expected_accuracy - seen[0])
    assert kept >= 0.93 * draws
    # Choosing a threshold makes its accuracy look too good; the expected accuracy corrects most of that.
    assert np.mean(biases) > abs(np.mean(corrected)) or fresh is not None
