"""How many more labels settle a rule of the gate."""

from __future__ import annotations

import pytest

import deemster as dm
from deemster.store import LabelFacts, open_store
from tests.view.conftest import evaluate
from tests.view.viewer_client import running_viewer

STRICT = {
    "min_macro_f1": 0.9,
    "min_pass_rate": 0.5,
    "metrics": {"exact-match": {"min_mean": 0.5}, "rouge-l": {"max_mean": 0.9}},
}


@pytest.fixture(scope="module")
def gated(tmp_path_factory):
    place = tmp_path_factory.mktemp("needs") / "runs.db"
    evaluate(place, name="only", gate={"metrics": {"exact-match": {"min_pass_rate": 0.8}}})
    evaluate(place, name="strict", gate=STRICT)
    with open_store(place) as store, running_viewer(store) as client:
        yield store, client


@pytest.fixture
def needed(gated):
    """What is needed after labels of one person on one metric, which leave again."""
    store, client = gated
    put = []

    def after(verdicts, metric="exact-match", repetition=0, run="only", since=0, **drawn):
        for position, verdict in enumerate(verdicts, since):
            label = LabelFacts(
                position=position, repetition=repetition, metric=metric, criterion="", author="ada",
                at="2026-11-17T00:00:00.000000Z", verdict=verdict, **{"order": "random", "seed": 0, **drawn},
            )  # fmt: skip
            store.put_label(store.run(run).id, label)
            put.append((store.run(run).id, label))
        return client.get(f"labels?run={run}")["needed"]

    yield after
    for run, label in put:
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
    assert 0 < need["more"] <= 24 - 12


def test_rate_on_the_bound_takes_all_labels(needed):
    (need,) = needed(["fail", "pass", "pass", "pass", "pass"])
    assert (need["have"], need["more"]) == (5, 24 - 5)


def test_metric_without_a_rule_is_counted_for_a_narrow_interval(needed):
    (need,) = needed(["pass", "fail"], metric="rouge-l")
    assert "± 0.05" in need["because"]


def test_labels_that_were_not_drawn_at_random_are_not_counted(needed):
    (before,) = needed(["pass"] * 5)
    (after,) = needed(["fail"] * 6, since=5, order="disputed")
    assert (after["have"], after["more"]) == (before["have"], before["more"])
    assert "6 outputs with labels do not count" in after["because"]


def test_labels_alone_of_disputed_samples_settle_nothing(needed):
    (need,) = needed(["fail"] * 12, order="uncertain")
    assert need["have"] == 0
    assert need["more"] > 0


def test_labels_drawn_with_unequal_probabilities_are_weighted(needed):
    needed(["pass"] * 6, probability=0.1)
    (need,) = needed(["fail"] * 6, since=6, probability=1.0)
    # Six outputs stand for sixty, six for themselves.
    assert float(need["because"].split()[2]) == pytest.approx(60 / 66, abs=1e-3)


def test_labels_of_the_efficient_queue_count_and_say_what_they_bought(needed):
    needed(["pass", "fail"] * 3, order="efficient", probability=0.1)
    (need,) = needed(["fail"] * 6, since=6, order="efficient", probability=1.0)
    assert need["have"] == 12
    assert "12 labels; a random sample would have needed about 7 for the same width." in need["because"]
    assert "do not count" not in need["because"]


def test_mean_of_scores_that_are_0_or_1_is_a_rate(needed):
    (need,) = needed(["fail" if at % 4 == 1 else "pass" for at in range(20)], run="strict")
    assert "`metrics.exact-match.min_mean`" in need["what"]
    assert (need["have"], need["more"]) == (20, 0)


def test_pass_or_fail_does_not_decide_a_mean_of_finer_scores(needed):
    (need,) = [each for each in needed(["pass"] * 3, metric="rouge-l", run="strict") if "rouge-l" in each["what"]]
    assert "± 0.05" in need["because"]
