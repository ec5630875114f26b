"""How many more labels settle a rule of the gate."""

from __future__ import annotations

import pytest

import deemster as dm
from deemster.store import LabelFacts, open_store
from tests.view.conftest import evaluate
from tests.view.viewer_client import running_viewer


@pytest.fixture(scope="module")
def gated(tmp_path_factory):
    place = tmp_path_factory.mktemp("needs") / "runs.db"
    evaluate(place, label="only", gate={"metrics": {"exact-match": {"min_pass_rate": 0.8}}})
    with open_store(place) as store, running_viewer(store) as client:
        yield store, client


@pytest.fixture
def needed(gated):
    """What is needed after labels of one person on one metric, which leave again."""
    store, client = gated
    run = store.run("only").id
    put = []

    def after(verdicts, metric="exact-match", repetition=0):
        for position, verdict in enumerate(verdicts):
            label = LabelFacts(
                position=position, repetition=repetition, metric=metric, criterion="", author="ada",
                at="2026-11-17T00:00:00.000000Z", verdict=verdict, order="random", seed=0,
            )  # fmt: skip
            store.put_label(run, label)
            put.append(label)
        return client.get("labels?run=only")["needed"]

    yield after
    for label in put:
        store.delete_label(run, label)


def test_rule_that_the_interval_cannot_tell_takes_more_labels(needed):
    (need,) = needed(["pass"] * 5)
    # Wilson's interval of 5 of 5 is [0.566, 1]; with 16 of 16 it lies above 0.8, and the plan says 17.
    assert dm.stats.wilson(16, 16).interval.lower > 0.8 > dm.stats.wilson(15, 15).interval.lower
    assert (need["have"], need["more"]) == (5, 12)
    assert "[0.566, 1.000]" in need["because"]
    assert "`metrics.exact-match.min_pass_rate`" in need["what"]


def test_rule_is_settled_once_the_interval_leaves_its_bound(needed):
    (need,) = needed(["fail"] * 6)
    assert dm.stats.wilson(0, 6).interval.upper < 0.8
    assert need["more"] == 0
    assert "below the bound" in need["because"]


def test_labels_with_the_judges_help_are_counted_so(needed):
    # The metric fails every fourth sample from the second on; people also fail the third.
    (need,) = needed(["fail" if at % 4 == 1 or at == 2 else "pass" for at in range(12)])
    assert "correlation" in need["because"]
    assert 0 < need["more"] <= 48 - 12


def test_rate_on_the_bound_takes_all_labels(needed):
    (need,) = needed(["fail", "pass", "pass", "pass", "pass"])
    assert (need["have"], need["more"]) == (5, 48 - 5)


def test_metric_without_a_rule_is_counted_for_a_narrow_interval(needed):
    (need,) = needed(["pass", "fail"], metric="rouge-l")
    assert "± 0.05" in need["because"]
