import random
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.records import Execution, MetricScore, Output, Unscored
from deemster.results.mark_table import MarkTable
from deemster.results.run_summary import cohort_label, summarize_run
from deemster.stats import student
from tests.results.make_runs_of_marks import cards, entries_of, runs, tally_of


def plain(rows, *, metrics=1, repetitions=1, tags=None):
    tally = MarkTable(cards(metrics), samples=len(rows) // repetitions, repetitions=repetitions)
    for position in range(len(rows) // repetitions):
        tally.tag(position, (tags or {}).get(position, ()))
    tally.add(
        [
            Execution(place // repetitions, f"s{place // repetitions}", place % repetitions, Output("x"), tuple(row))
            for place, row in enumerate(rows)
        ]
    )
    return tally


def score(value):
    return MetricScore(value)


NONE = Unscored("bad_output", "because")


def test_worked_example_gives_specified_numbers():
    tally = plain([[score(1.0)], [score(0.8)], [score(0.4)], [NONE]])
    figures = summarize_run(tally).metrics["m0"]
    assert figures.mean == pytest.approx(0.7333, abs=5e-5)
    assert figures.stdev == pytest.approx(0.3055, abs=5e-5)
    assert figures.p5 == pytest.approx(0.44)
    assert figures.p50 == pytest.approx(0.8)
    assert figures.p95 == pytest.approx(0.98)
    assert figures.pass_rate == 0.5
    assert figures.pass_rate_interval == pytest.approx((0.15, 0.85), abs=5e-5)
    assert figures.pass_rate_scored == pytest.approx(0.6667, abs=5e-5)
    assert figures.pass_rate_best == 0.75


def test_metric_that_failed_everywhere_counts_as_zero():
    tally = plain([[score(1.0), NONE], [score(0.8), NONE], [score(0.4), NONE], [NONE, NONE]], metrics=2)
    summary = summarize_run(tally)
    assert summary.macro_f1 == 0.25
    assert summary.pass_rate == 0.0
    dead = summary.metrics["m1"]
    assert (dead.mean, dead.stdev, dead.min, dead.p5, dead.max, dead.mean_interval, dead.pass_rate_scored) == (
        None,
    ) * 7
    assert dead.pass_rate == 0.0
    assert dead.pass_rate_best == 1.0


def test_interval_with_repetitions_uses_effective_size():
    shares = [5, 5, 5, 4, 3, 5, 5, 0, 2, 5]
    rows = [[score(1.0 if place < share else 0.0)] for share in shares for place in range(5)]
    summary = summarize_run(plain(rows, repetitions=5))
    assert summary.pass_rate == pytest.approx(0.78)
    for interval in (summary.pass_rate_interval, summary.macro_f1_interval, summary.metrics["m0"].pass_rate_interval):
        assert interval == pytest.approx((0.4956, 0.9275), abs=5e-5)


def test_rounding_error_does_not_change_histogram_bin():
    bins = summarize_run(plain([[score(1 - 0.9)], [score(1.0)], [score(0.0)]])).histograms["m0"]
    assert [bar.count for bar in bins] == [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert (bins[0].low, bins[-1].high) == (0.0, 1.0)


def test_sample_counts_in_each_tag_and_untagged_cohort_is_last():
    tags = {0: ("b", "a"), 1: ("a",)}
    summary = summarize_run(plain([[score(1.0)], [score(0.0)], [score(1.0)]], tags=tags))
    assert [(cohort.name, cohort.label, cohort.samples) for cohort in summary.cohorts] == [
        ("a", "a", 2),
        ("b", "b", 1),
        (None, "(untagged)", 1),
    ]
    assert [cohort.macro_f1 for cohort in summary.cohorts] == [0.5, 1.0, 1.0]


def test_tag_called_untagged_is_told_apart_from_samples_without_tags():
    tags = {0: ("(untagged)",), 1: ('"(untagged)"',), 2: ("x",)}
    summary = summarize_run(plain([[score(1.0)], [score(0.0)], [score(1.0)], [score(0.5)]], tags=tags))
    assert [(cohort.name, cohort.label, cohort.untagged) for cohort in summary.cohorts] == [
        ('"(untagged)"', '""(untagged)""', False),
        ("(untagged)", '"(untagged)"', False),
        ("x", "x", False),
        (None, "(untagged)", True),
    ]


@given(st.sets(st.none() | st.text('"(untagged)', max_size=3) | st.from_regex(r'"*\(untagged\)"*', fullmatch=True)))
def test_no_two_tags_share_label(tags):
    assert len({cohort_label(tag) for tag in tags}) == len(tags)


@pytest.mark.parametrize(("count", "low"), [(3, 0.2776), (30, 0.8655)])
def test_interval_of_equal_scores_has_a_width(count, low):
    figures = summarize_run(plain([[score(1.0)]] * count)).metrics["m0"]
    assert figures.mean_interval == pytest.approx((low, 1.0), abs=5e-5)


def test_interval_of_many_different_scores_is_students():
    values = [place / 40 for place in range(41)]
    figures = summarize_run(plain([[score(value)] for value in values])).metrics["m0"]
    interval = student(values).interval
    assert figures.mean_interval == pytest.approx((interval.lower, interval.upper))


@pytest.mark.parametrize("rows", [[[score(0.5)]], [[score(0.5)], [NONE]]])
def test_mean_of_one_sample_has_no_interval(rows):
    assert summarize_run(plain(rows)).metrics["m0"].mean_interval is None


def test_interval_of_mean_of_few_scores_stays_inside_0_and_1():
    # Student's t would reach from below 0 to above 1.
    figures = summarize_run(plain([[score(1.0)], [score(0.8)], [score(0.4)]])).metrics["m0"]
    assert figures.mean_interval == pytest.approx((0.1919, 0.9622), abs=5e-5)


def test_metric_with_different_thresholds_has_no_threshold():
    tally = plain([[MetricScore(0.4, threshold=0.3)], [MetricScore(0.4, threshold=0.5)]])
    figures = summarize_run(tally).metrics["m0"]
    assert figures.threshold is None
    assert figures.n_passed == 1


@given(runs())
def test_counts_add_up_per_metric_cohort_and_run(run):
    summary = summarize_run(tally_of(run))
    totals = summary.totals
    assert totals.marks == totals.samples * totals.repetitions * totals.metrics
    assert totals.marks == totals.scored + totals.unscored + totals.not_run
    for group in (summary, *summary.cohorts):
        for figures in group.metrics.values():
            assert figures.n == figures.n_scored + figures.n_unscored + figures.n_not_run
            assert figures.n_unscored == sum(figures.unscored_by_cause.values())
            assert figures.pass_rate_worst == figures.pass_rate <= figures.pass_rate_best
            if figures.pass_rate_scored is not None:
                assert figures.pass_rate_worst <= figures.pass_rate_scored <= figures.pass_rate_best
    for name, bins in summary.histograms.items():
        assert sum(bar.count for bar in bins) == summary.metrics[name].n_scored


@given(runs())
def test_macro_f1_is_the_mean_of_the_pass_rates(run):
    summary = summarize_run(tally_of(run))
    for group in (summary, *summary.cohorts):
        assert group.macro_f1 == pytest.approx(statistics.fmean(f.pass_rate for f in group.metrics.values()))
        assert group.macro_f1_interval.low <= group.macro_f1 + 1e-12
        assert group.macro_f1 <= group.macro_f1_interval.high + 1e-12


@given(runs(), st.randoms(use_true_random=False))
def test_order_of_marks_changes_no_digit(run, rng: random.Random):
    shuffled = list(run[4])
    rng.shuffle(shuffled)
    assert summarize_run(tally_of(run)) == summarize_run(tally_of(run, shuffled))
    assert entries_of(tally_of(run)) == entries_of(tally_of(run, shuffled))


@given(runs(), st.data())
def test_losing_a_score_never_raises_the_pass_rate(run, data):
    executions = run[4]
    if not executions:
        return
    place = data.draw(st.integers(0, len(executions) - 1))
    column = data.draw(st.integers(0, run[2] - 1))
    lost = executions[place]
    marks = tuple(NONE if at == column else mark for at, mark in enumerate(lost.marks))
    poorer = [
        *executions[:place],
        Execution(lost.position, lost.id, lost.repetition, lost.answer, marks),
        *executions[place + 1 :],
    ]
    before, after = summarize_run(tally_of(run)), summarize_run(tally_of(run, poorer))
    assert after.pass_rate <= before.pass_rate
    assert after.macro_f1 <= before.macro_f1
    assert all(after.metrics[name].pass_rate <= before.metrics[name].pass_rate for name in before.metrics)


@given(runs())
def test_numbers_equal_standard_library_and_numpy(run):
    summary = summarize_run(tally_of(run))
    for place, (name, figures) in enumerate(summary.metrics.items()):
        values = [e.marks[place].score for e in run[4] if isinstance(e.marks[place], MetricScore)]
        assert figures.n_scored == len(values), name
        if not values:
            continue
        assert figures.mean == pytest.approx(statistics.fmean(values), abs=1e-12)
        assert [figures.p5, figures.p50, figures.p95] == pytest.approx(
            np.quantile(values, [0.05, 0.5, 0.95]), abs=1e-12
        )
        assert (figures.min, figures.max) == (min(values), max(values))
        if len(values) > 1:
            assert figures.stdev == pytest.approx(statistics.stdev(values), abs=1e-9)


@given(runs())
def test_samples_equal_a_plain_loop_over_their_marks(run):
    samples, repetitions, metrics, _, executions = run
    found = entries_of(tally_of(run))
    assert len(found) == samples
    for position, figures in enumerate(found):
        own = [execution for execution in executions if execution.position == position]
        passed = sum(all(isinstance(m, MetricScore) and m.success for m in e.marks) for e in own)
        values = [[m.score for m in e.marks if isinstance(m, MetricScore)] for e in own]
        means = [statistics.fmean(row) for row in values if row]
        assert figures.passed == passed
        assert figures.unscored == repetitions * metrics - sum(map(len, values))
        assert figures.pass_rate == pytest.approx(passed / repetitions, abs=1e-9)
        assert figures.unstable == (repetitions > 1 and 0 < passed < repetitions)
        assert figures.score_mean == (pytest.approx(statistics.fmean(means), abs=1e-9) if means else None)
        assert figures.score_stdev == (pytest.approx(statistics.stdev(means), abs=2e-9) if len(means) > 1 else None)
