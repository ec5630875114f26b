from __future__ import annotations

import pytest

from deemster.agreement.judge_as_annotator import annotator_tests
from deemster.datasets import Votes
from deemster.errors import InputError
from tests.agreement.make_votes import DEPTH, FACTS, votes_value


def item(place, people, votes):
    return {"id": f"q{place:02d}", "annotations": people, "votes": votes}


def panel_of(rows, criteria=(FACTS,), judges=("j", "k")):
    return Votes.parse(votes_value(rows, criteria=criteria, judges=judges))


def test_judge_that_agrees_with_everyone_passes_and_one_that_never_does_fails():
    rows = []
    for place in range(40):
        label, other = ("MET", "UNMET") if place % 2 else ("UNMET", "MET")
        rows.append(item(place, {name: [label] for name in ("ann", "bob", "cy")}, {"j": [label], "k": [other]}))
    votes = panel_of(rows)
    good, bad = (annotator_tests(votes, judge=name)["facts"] for name in ("j", "k"))
    assert (good.value, good.passes, good.advantage, good.n) == (1.0, True, 1.0, 3)
    assert (bad.value, bad.passes, bad.advantage) == (0.0, False, 0.0)
    assert [trial.n for trial in good.trials.values()] == [40, 40, 40]


def test_without_judge_the_panel_is_tested():
    rows = [item(place, {name: ["MET"] for name in "xyz"}, {"j": ["MET"], "k": ["MET"]}) for place in range(30)]
    assert annotator_tests(panel_of(rows))["facts"].value == 1.0


def test_labels_on_a_scale_are_compared_by_their_values():
    # The others say good; cy says poor, the judge fair: nearer, though as unequal.
    rows = [
        item(place, {"ann": ["good"], "bob": ["good"], "cy": ["poor"]}, {"j": ["fair"], "k": ["poor"]})
        for place in range(30)
    ]
    found = annotator_tests(panel_of(rows, criteria=[DEPTH]), judge="j")["depth"]
    assert found.trials["cy"].judge_wins == 1.0
    assert found.trials["cy"].annotator_wins == 0.0
    # Measured by good and poor (0.5² twice) the judge is nearer than ann (0 and 1).
    assert (found.trials["ann"].judge_wins, found.trials["ann"].annotator_wins) == (1.0, 0.0)


def test_abstentions_and_failures_are_missing():
    rows = [item(place, {name: ["MET"] for name in "xyz"}, {"j": ["MET"]}) for place in range(30)]
    rows += [item(30, {name: ["MET"] for name in "xyz"}, {"j": ["CANNOT_ASSESS"]})]
    rows += [item(31, {name: ["MET"] for name in "xyz"}, {"j": [{"failure": "parse"}], "k": ["MET"]})]
    rows += [item(32, {"x": ["CANNOT_ASSESS"], "y": ["MET"], "z": ["MET"]}, {"j": ["MET"]})]
    found = annotator_tests(panel_of(rows), judge="j")["facts"]
    assert {name: trial.n for name, trial in found.trials.items()} == {"x": 30, "y": 31, "z": 31}


def test_two_annotators_are_error():
    rows = [item(0, {"ann": ["MET"], "bob": ["MET"]}, {"j": ["MET"]})]
    with pytest.raises(InputError, match="needs three annotators; 2 annotators"):
        annotator_tests(panel_of(rows))


def test_unknown_judge_is_error_with_suggestion():
    rows = [item(0, {"ann": ["MET"], "bob": ["MET"], "cy": ["MET"]}, {"j": ["MET"]})]
    with pytest.raises(InputError, match="no judge 'jj'"):
        annotator_tests(panel_of(rows), judge="jj")
