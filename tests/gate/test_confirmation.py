"""Confirm or clear: broken samples are confirmed, flaky ones are not, and selection does not fool the test."""

from __future__ import annotations

import numpy as np
import pytest

from deemster.gate.confirmation import confirm_changes, count_passes, newly_failing
from deemster.records import Execution, MetricCard, MetricScore, Output, Unscored
from deemster.records.marks import NOT_APPLICABLE
from deemster.results.mark_table import MarkTable
from deemster.results.run_columns import RunColumns
from deemster.results.sample_changes import SampleChange, SampleSide

PASS, FAIL, NONE = MetricScore(1.0), MetricScore(0.0), Unscored("model_failed", "down")


def side(name, passed=0, repetitions=1):
    return SampleSide(id=name, position=0, repetitions=repetitions, passed=passed, scores={}, failed=())


def change(name, *, before=(1, 1), status="newly_failing"):
    return SampleChange(status=status, row_hash="0" * 64, baseline=side(name, *before), candidate=side(name))


def reruns(**outcomes):
    return {name: (int(sum(passes)), len(passes)) for name, passes in outcomes.items()}


def states(found):
    return {sample.id: sample.state for sample in found.samples}


def test_sample_that_fails_every_rerun_is_confirmed_and_one_that_passes_is_flaky():
    changes = [change("s", before=(3, 3)), change("t", before=(3, 3))]
    found = confirm_changes(changes, reruns(s=[0] * 20, t=[1] * 20))
    assert states(found) == {"s": "confirmed", "t": "flaky"}
    assert (found.count("confirmed"), found.needed) == (1, 13)


def test_so_few_reruns_leave_a_sample_open_unless_it_passes():
    changes = [change(name, before=(3, 3)) for name in "stu"]
    found = confirm_changes(changes, reruns(s=[0, 0], t=[1, 0]))
    assert states(found) == {"s": "open", "t": "flaky", "u": "open"}


def test_one_pass_in_the_baseline_confirms_nothing_and_earlier_runs_do():
    failing = reruns(s=[0] * 8, t=[1] * 8)
    alone = confirm_changes([change("s"), change("t")], failing)
    assert (states(alone), alone.needed) == ({"s": "open", "t": "flaky"}, None)
    known = confirm_changes([change("s"), change("t")], failing, earlier={"0" * 64: (3, 3)})
    assert (states(known), known.needed) == ({"s": "confirmed", "t": "flaky"}, 5)


def test_sample_that_wobbled_before_needs_more_to_be_confirmed():
    failing = {"s": [0] * 6}
    steady = confirm_changes([change("s", before=(8, 8))], reruns(**failing))
    wobbling = confirm_changes([change("s", before=(5, 8))], reruns(**failing))
    assert states(steady) == {"s": "confirmed"}
    assert wobbling.samples[0].p_value > steady.samples[0].p_value


def test_only_newly_failing_samples_are_tested_and_none_without_reruns():
    changes = [change("s"), change("t", status="newly_passing"), change("u")]
    assert [each.candidate.id for each in newly_failing(changes)] == ["s"]
    assert confirm_changes(changes, {}) is None


def test_rerun_counts_where_a_metric_failed_or_all_passed():
    assert counted(["a", "b"], [[PASS, PASS], [PASS, NONE], [FAIL, NONE]], names=["a", "b"]) == (1, 2)
    assert counted(["a", "b"], [[PASS, PASS], [PASS, NONE], [FAIL, NONE]], names=["a"]) == (2, 3)
    assert counted(["a", "b"], [[PASS, NOT_APPLICABLE]], names=["a", "b"]) == (1, 1)


def counted(metrics, marks, *, names):
    """How a sample that was run again is counted."""
    cards = [MetricCard(name, name, f"{name} v1", "lexical", None, 0.5) for name in metrics]
    table = MarkTable(cards, samples=1, repetitions=len(marks))
    table.add([Execution(0, "s", number, Output("x"), tuple(each)) for number, each in enumerate(marks)])
    columns = RunColumns(
        run=None, marks=table, digests=None, identities={}, clusters=None, ids=lambda places: ["s" for _ in places]
    )
    return count_passes(columns, names)["s"]


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.8])
def test_flaky_samples_that_did_not_change_are_seldom_confirmed(chance):
    draw, wrong, repeats = np.random.default_rng(3), 0, 300
    for _ in range(repeats):
        # Thirty samples wobble alike in both runs; those that passed before and fail now are run again.
        before, now = draw.random((2, 30)) < chance
        flipped = [f"s{at}" for at in np.flatnonzero(before & ~now)]
        if not flipped:
            continue
        again = {name: draw.random(8) < chance for name in flipped}
        history = {"0" * 64: (int(draw.binomial(6, chance)), 6)}
        found = confirm_changes([change(name) for name in flipped], reruns(**again), earlier=history)
        wrong += found.count("confirmed") > 0
    assert wrong / repeats <= 0.065
