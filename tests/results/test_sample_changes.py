"""What became of every sample between two runs."""

from __future__ import annotations

import pytest

from tests.results.make_compared_runs import compare, run


def statuses(before, after):
    return {(change.candidate or change.baseline).id: change.status for change in compare(before, after).changes}


def test_every_status_is_given():
    before = run(
        {"m": [1.0, 0.0, 0.9, 0.6, 0.2, "model_failed", 1.0, 1.0]},
        keys=list("abcdefgh"),
        ids=["fails", "passes", "regresses", "improves", "breaks", "mends", "goes", "stays"],
    )
    after = run(
        {"m": [0.0, 1.0, 0.6, 0.9, "model_failed", 0.2, 1.0, 1.0]},
        keys=list("abcdefxh"),
        ids=["fails", "passes", "regresses", "improves", "breaks", "mends", "comes", "stays"],
        name="b",
    )
    assert statuses(before, after) == {
        "fails": "newly_failing",
        "passes": "newly_passing",
        "regresses": "regressed",
        "improves": "improved",
        "breaks": "unscored_now",
        "mends": "scored_now",
        "comes": "added",
        "goes": "removed",
    }
    assert compare(before, after).statuses["stable"] == 1


def test_lists_of_newly_failing_and_passing_samples_agree_with_the_table_of_passes():
    before = run({"m": [1.0, 1.0, 0.0, "model_failed", 0.0], "n": [1.0] * 5})
    after = run({"m": ["model_failed", 0.0, "model_failed", 1.0, 1.0], "n": [1.0] * 5}, name="b")
    found = compare(before, after)
    assert (found.table.newly_failing, found.table.newly_passing) == (2, 2)
    assert statuses(before, after) == {
        "s0": "newly_failing",
        "s1": "newly_failing",
        "s2": "unscored_now",
        "s3": "newly_passing",
        "s4": "newly_passing",
    }


def test_worst_drop_comes_first():
    before, after = run({"m": [0.9, 0.9, 0.9]}), run({"m": [0.8, 0.5, 0.7]}, name="b")
    assert [change.candidate.id for change in compare(before, after).changes] == ["s1", "s2", "s0"]


def test_repetitions_tell_a_change_from_chance():
    before = run({"m": [[1.0] * 6, [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]]})
    after = run({"m": [[0.0] * 6, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]]}, name="b")
    found = {change.candidate.id: change for change in compare(before, after).changes}
    assert found["s0"].confident is True
    assert found["s1"].confident is False
    assert found["s0"].p_value == pytest.approx(2 / 924)


def test_without_repetitions_nothing_is_said_of_chance():
    (change,) = compare(run({"m": [1.0]}), run({"m": [0.0]}, name="b")).changes
    assert (change.p_value, change.confident) == (None, None)


def test_scores_and_failed_metrics_of_both_sides_are_shown():
    before = run({"m": [1.0], "n": [0.4]})
    after = run({"m": [0.25], "n": ["model_failed"]}, name="b", ids=["renamed"])
    (change,) = compare(before, after).changes
    assert (change.baseline.id, change.candidate.id) == ("s0", "renamed")
    assert change.baseline.scores == {"m": 1.0, "n": 0.4}
    assert change.candidate.scores == {"m": 0.25, "n": None}
    assert (change.baseline.failed, change.candidate.failed) == (("n",), ("m", "n"))


def test_scores_that_a_report_rounded_are_equal():
    before, after = run({"m": [1 / 3, 2 / 3]}), run({"m": [0.333333333, 0.666666667]}, name="b")
    assert list(compare(before, after).changes) == []
    assert compare(before, after).metrics["m"].mean.difference == 0.0
