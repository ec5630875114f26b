"""Attack success: which marks decide, what is undecided, and the intervals."""

from __future__ import annotations

import numpy as np
import pytest

from deemster.datasets.attack_facts import Attack, AttackedSample, AttackedSamples
from deemster.records import Execution, MetricCard, MetricScore, Output, Unscored
from deemster.results.attack_success import summarize_attacks
from deemster.results.mark_table import MarkTable
from deemster.results.run_summary import summarize_run
from deemster.stats import clustered_wilson

PASS, FAIL, NONE = MetricScore(1.0), MetricScore(0.0), Unscored("model_failed", "no answer")


def card(alias):
    return MetricCard(alias, alias, alias, "safety", None)


def table(names, *rows):
    """Marks by sample, repetition and metric."""
    found = MarkTable([card(name) for name in names], samples=len(rows), repetitions=len(rows[0]))
    found.add(
        [
            Execution(position, f"s{position}", repetition, Output("x"), tuple(marks))
            for position, row in enumerate(rows)
            for repetition, marks in enumerate(row)
        ]
    )
    return found


def attacked(*kinds, seeds=None):
    samples = tuple(
        AttackedSample(place, place, f"s{place}" if seeds is None else seeds[place]) for place in range(len(kinds))
    )
    return AttackedSamples(kinds=kinds, samples=samples)


def test_run_without_attacks_has_no_section():
    assert summarize_run(table(["attack-resisted"], [[PASS]])).adversarial is None


def test_failed_mark_is_a_success_of_the_attack_and_a_missing_one_is_undecided():
    marks = table(["attack-resisted"], [[FAIL]], [[PASS]], [[NONE]])
    found = summarize_attacks(marks, attacked(Attack(category="a", severity="high"), Attack(), Attack())).overall
    assert (found.samples, found.successes, found.undecided, found.attack_success_rate) == (3, 1, 1, 0.5)
    assert found.worst_severity == "high"
    assert found.interval.low < 0.5 < found.interval.high


def test_group_in_which_nothing_is_decided_has_no_rate():
    found = summarize_attacks(table(["attack-resisted"], [[NONE]]), attacked(Attack())).overall
    assert (found.attack_success_rate, found.interval, found.worst_severity) == (None, None, None)


def test_one_failed_check_decides_though_another_is_missing():
    marks = table(["attack-resisted", "refusal-quality"], [[FAIL, NONE]], [[PASS, NONE]])
    kind = Attack(refusal_expected=True)
    found = summarize_attacks(marks, attacked(kind, kind)).overall
    assert (found.successes, found.undecided) == (1, 1)


@pytest.mark.parametrize(("expected", "successes"), [(True, 1), (False, 0), (None, 0)])
def test_refusal_that_is_not_called_for_is_no_success_of_the_attack(expected, successes):
    marks = table(["attack-resisted", "refusal-quality"], [[PASS, FAIL]])
    found = summarize_attacks(marks, attacked(Attack(refusal_expected=expected))).overall
    assert (found.successes, found.undecided) == (successes, 0)


def test_other_metrics_decide_only_where_none_of_safety_is_there():
    kinds = attacked(Attack())
    assert summarize_attacks(table(["rouge-l", "attack-resisted"], [[FAIL, PASS]]), kinds).overall.successes == 0
    assert summarize_attacks(table(["rouge-l", "contains"], [[FAIL, PASS]]), kinds).overall.successes == 1


def wilson_ends(counts, *, marks):
    interval = clustered_wilson(np.array(counts), marks=marks).interval
    return interval.lower, interval.upper


def test_interval_is_clustered_wilson_by_seed():
    rows = [[[FAIL]], [[FAIL]], [[PASS]], [[PASS]], [[FAIL]], [[PASS]]]
    kinds = [Attack()] * 6
    alone = summarize_attacks(table(["attack-resisted"], *rows), attacked(*kinds)).overall.interval
    assert tuple(alone) == pytest.approx(wilson_ends([1, 1, 0, 0, 1, 0], marks=1))
    seeds = ["a", "a", "b", "b", "c", "c"]
    pairs = summarize_attacks(table(["attack-resisted"], *rows), attacked(*kinds, seeds=seeds)).overall.interval
    assert tuple(pairs) == pytest.approx(wilson_ends([2, 0, 1], marks=2))
    assert pairs.high - pairs.low > alone.high - alone.low


def test_attack_counts_for_each_item_of_a_framework():
    kind = Attack(frameworks={"ATLAS": ("one", "two")}, severity="low")
    found = summarize_attacks(table(["attack-resisted"], [[FAIL]], [[PASS]]), attacked(kind, Attack()))
    (framework,) = found.frameworks
    assert [(item.name, item.samples, item.attack_success_rate) for item in framework.items] == [
        ("one", 1, 1.0),
        ("two", 1, 1.0),
    ]
    assert [each.name for each in found.severities] == ["low", "(unrated)"]
    assert found.mutators == ()
