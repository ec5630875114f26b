"""The additions as `compute_metrics` gives them, from files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.agreement import BootstrapSettings, MetricsResult, compute_metrics
from deemster.agreement._human_agreement import human_agreement
from deemster.datasets import Votes
from tests.agreement import make_votes as ballots
from tests.agreement.make_votes import FACTS, labelled_votes, votes_value

NAMES = ("human", "consistency", "calibration", "corrected", "items")


def test_votes_without_usable_votes_have_no_extras():
    rows = [{"id": "q1", "ground_truth": ["MET"], "final": ["MET"], "votes": {"j": [None]}}]
    found = compute_metrics(Votes.parse(votes_value(rows, criteria=[FACTS], judges=["j"])))
    assert [getattr(found, name) for name in NAMES] == [None] * 5


def test_published_examples_are_reproduced_from_votes_file(tmp_path):
    labelled = zip("1011010111", "1010011111", strict=True)
    words = {"1": "MET", "0": "UNMET"}
    rows = [
        {"id": f"l{place}", "ground_truth": [words[truth]], "votes": {"j": [words[said]]}}
        for place, (truth, said) in enumerate(labelled)
    ]
    rows += [{"id": f"u{place}", "votes": {"j": ["MET" if place < 65 else "UNMET"]}} for place in range(100)]
    path = tmp_path / "votes.json"
    path.write_text(json.dumps(votes_value(rows, criteria=[FACTS], judges=["j"])), "utf-8")
    score = compute_metrics(path).corrected.score
    assert score.value == pytest.approx(0.6781, abs=5e-5)
    # The normal form of the paper gives 0.4315 to 0.9247, which is too short for ten labels.
    assert 0 < score.ci.lower < 0.4315 < 0.9247 < score.ci.upper < 1
    wide = compute_metrics(path, bootstrap=BootstrapSettings(confidence=0.99)).corrected.score
    assert wide.ci.confidence == 0.99
    assert wide.ci.width > score.ci.width


def test_ceiling_uses_replicates_of_result():
    rows = [
        {
            "id": f"q{place}",
            "annotations": {"ann": ["MET" if place % 2 else "UNMET"], "bob": ["MET" if place % 3 else "UNMET"]},
            "ground_truth": ["MET" if place % 2 else "UNMET"],
            "votes": {"j": ["MET" if place % 5 else "UNMET"]},
        }
        for place in range(12)
    ]
    value = votes_value(rows, criteria=[FACTS], judges=["j"])
    bootstrap = BootstrapSettings(replicates=40, confidence=0.9, seed=3)
    found = compute_metrics(Votes.parse(value), bootstrap=bootstrap)
    assert found.human == human_agreement(labelled_votes(value), bootstrap)
    assert found.human.intervals["ceiling_accuracy"].ci.confidence == 0.9
    assert compute_metrics(Votes.parse(value), bootstrap=BootstrapSettings(replicates=0)).human.intervals is None


@given(ballots.panels(), st.sampled_from(ballots.MODES), st.randoms(use_true_random=False))
def test_order_of_items_and_people_changes_no_extra(value, modes, shuffler):
    options = {
        "cannot_assess": modes.cannot_assess,
        "na_mode": modes.na_mode,
        "bootstrap": BootstrapSettings(replicates=5, seed=2),
    }
    found = compute_metrics(Votes.parse(value), **options)
    other = dict(value, items=[dict(item) for item in value["items"]])
    shuffler.shuffle(other["items"])
    for item in other["items"]:
        if "annotations" in item:
            names = list(item["annotations"])
            shuffler.shuffle(names)
            item["annotations"] = {name: item["annotations"][name] for name in names}
    again = compute_metrics(Votes.parse(other), **options)
    for name in NAMES:
        assert getattr(again, name) == getattr(found, name)


@given(ballots.panels())
def test_result_with_every_extra_reads_back_equal(tmp_path_factory, value):
    found = compute_metrics(Votes.parse(value), bootstrap=BootstrapSettings(replicates=4, seed=1))
    path = tmp_path_factory.mktemp("results") / "result.json"
    found.save(path)
    assert MetricsResult.from_file(path) == found
