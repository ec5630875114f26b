"""The margins of a gate, looked at after every sample: the order of finishing does not matter, nor does peeking."""

from __future__ import annotations

import numpy as np
import pytest

from deemster.records import Execution, MetricCard, MetricScore, Output, Unscored
from deemster.records.marks import NOT_APPLICABLE
from deemster.results import MarkTable
from deemster.results.gate_rules import BaselineRules, Gate
from deemster.results.margin_watch import MarginWatch
from deemster.results.run_columns import ComparedRun, RunColumns

CARD = MetricCard("a", "a", "a/1", "lexical", None)


def executions(passes, *, repetition=0):
    """An execution for each sample; None for a mark without a score."""
    marks = {True: MetricScore(1.0), False: MetricScore(0.0), None: Unscored("model_failed", "down")}
    return [
        Execution(position, f"s{position}", repetition, Output("x"), (marks.get(passed, passed),))
        for position, passed in enumerate(passes)
    ]


def columns(passes, *, repetitions=1, tags=(), clusters=None, name="a"):
    count = len(passes)
    card = CARD._replace(name=name)
    table = MarkTable([card], samples=count, repetitions=repetitions)
    for position in range(count):
        table.tag(position, (tags[position % len(tags)],) if tags else ())
    if passes and passes[0] is not None:
        for repetition in range(repetitions):
            table.add(executions(passes, repetition=repetition))
    run = ComparedRun(
        id="r",
        dataset="d",
        fingerprint=None,
        started_at="",
        status="complete",
        samples=count,
        repetitions=repetitions,
        macro_f1=0.0,
        pass_rate=0.0,
    )
    digests = np.zeros((count, 32), dtype=np.uint8)
    digests[:, :8] = np.arange(1, count + 1, dtype=np.uint64)[:, None].view(np.uint8)
    return RunColumns(
        run=run,
        marks=table,
        digests=digests,
        identities={name: {"definition": "a/1"}},
        clusters=clusters,
        ids=lambda positions: [f"s{position}" for position in positions],
    )


def watch(count, *, margin=0.1, cohorts=(), tags=(), min_samples=None, clusters=None, repetitions=1, now="a"):
    rules = BaselineRules(margin=margin, cohorts=cohorts)
    gate = Gate(baseline=rules, min_samples=min_samples or {})
    candidate = columns([None] * count, tags=tags, clusters=clusters, repetitions=repetitions, name=now)
    return MarginWatch(gate, rules, columns([True] * count), candidate)


def test_unchanged_samples_settle_a_margin_and_nothing_counts_after_that():
    found = watch(400)
    found.add(executions([True] * 400))
    assert (found.decision, found.counted) == ("pass", 51)
    check = found.checks()["metrics.a"]
    assert (check.n, check.at, check.settled) == (51, 51, "pass")
    assert check.interval.low > -0.15


def test_order_in_which_samples_finish_changes_nothing():
    passes = [number % 5 != 0 for number in range(200)]
    straight, mixed = watch(200, margin=0.02), watch(200, margin=0.02)
    straight.add(executions(passes))
    ready = executions(passes)
    for place in np.random.default_rng(1).permutation(200).tolist():
        mixed.add([ready[place]])
    assert (straight.decision, straight.counted) == (mixed.decision, mixed.counted)
    assert straight.checks() == mixed.checks()


def test_sample_counts_once_all_its_repetitions_are_there():
    found = watch(100, repetitions=2)
    found.add(executions([True] * 100))
    assert found.counted == 0
    found.add(executions([True] * 100, repetition=1))
    assert found.decision == "pass"


def test_mark_without_a_score_does_not_pass_and_one_that_does_not_apply_is_left_out():
    found = watch(60)
    found.add(executions([None] * 60))
    assert found.decision == "fail"
    apart = watch(60)
    apart.add(executions([NOT_APPLICABLE] * 60))
    assert (apart.decision, apart.checks()["metrics.a"].n) == (None, 0)


def test_every_gated_cohort_must_be_settled():
    found = watch(200, cohorts=("*",), tags=("x", "y"))
    found.add(executions([True] * 90))
    assert found.decision is None
    found = watch(200, cohorts=("*",), tags=("x", "y"))
    found.add(executions([True] * 200))
    assert (found.decision, found.counted) == ("pass", 102)
    assert set(found.checks()) == {"metrics.a", "cohorts.x.metrics.a", "cohorts.y.metrics.a"}
    small = watch(200, cohorts=("*",), tags=("x", "y"), min_samples={"*": (150, "")})
    assert set(small.checks()) == {"metrics.a"}


def test_clusters_are_units_and_have_no_interval():
    found = watch(400, margin=0.3, clusters=[number // 4 for number in range(400)])
    found.add(executions([True] * 400))
    assert found.decision == "pass"
    assert found.counted % 4 == 0
    assert found.checks()["metrics.a"].interval is None


def test_without_a_metric_to_compare_nothing_is_settled():
    found = watch(50, now="b")
    found.add(executions([True] * 50))
    assert (found.decision, found.checks()) == (None, {})


@pytest.mark.parametrize("chance", [0.1, 0.3])
def test_looking_after_every_sample_rarely_passes_a_drop_of_the_margin(chance):
    # A test at the level of 5 % after each of so many samples would be wrong in more than a quarter of the repeats.
    draw, wrong, repeats, count = np.random.default_rng(16), 0, 150, 120
    for _ in range(repeats):
        found = watch(count, margin=chance)
        found.add(executions((draw.random(count) >= chance).tolist()))
        wrong += found.decision == "pass"
    assert wrong / repeats <= 0.065
