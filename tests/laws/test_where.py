"""Samples outside a metric's `where` change no number of the metric."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import deemster as dm
from deemster.datasets.sample_selection import SampleSearch
from deemster.datasets.where_condition import applies, parse_condition, where_selection
from deemster.models.clock import FrozenClock
from deemster.records import Where
from tests.builders.arguments import arguments

CLOCK = FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))
WORDS = st.sampled_from(["red", "blue", "red blue", ""])
CONDITIONS = [
    {"tags": "hard"},
    {"tags": ["hard", "easy"]},
    {"has": "citations"},
    {"has": ["citations|quotes", "expected_output"]},
    {"metadata": {"lang": "de"}},
    {"metadata": {"lang": ["de", "fr"], "level": 1}, "tags": ["hard"]},
]


@st.composite
def rows(draw):
    """Samples of several kinds, and what was said to them."""
    found = []
    for place in range(draw(st.integers(2, 9))):
        metadata = {"tags": draw(st.lists(st.sampled_from(["hard", "easy", "odd"]), unique=True, max_size=2))}
        metadata |= {"lang": draw(st.sampled_from(["de", "fr", "en"])), "level": draw(st.integers(0, 1))}
        if draw(st.booleans()):
            metadata["citations"] = ["[1]"]
        if draw(st.booleans()):
            metadata["quotes"] = draw(st.sampled_from([None, "q"]))
        expected = draw(st.one_of(st.none(), WORDS))
        found.append({"id": f"q{place}", "input": {"n": place}, "expected_output": expected, "metadata": metadata})
    return found, {row["id"]: draw(WORDS) for row in found}


def evaluated(samples, outputs, metrics, **settings):
    dataset = dm.Dataset(samples, name="colours")
    own = {row["id"]: outputs[row["id"]] for row in samples}
    return dm.evaluate(dataset, outputs=own, metrics=metrics, **arguments(clock=CLOCK, **settings))


def can_be_scored(samples):
    """Whether some sample has what the metrics read; otherwise they are refused."""
    return any(row["expected_output"] is not None for row in samples)


def without_where(figures):
    """The figures of a metric without its `where`, and without the only one that counts what is outside."""
    bare = {"where": None} if hasattr(figures, "where") else {}
    return msgspec.structs.replace(figures, n_not_applicable=0, **bare)


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(rows(), st.sampled_from(CONDITIONS), st.integers(1, 3))
def test_marks_outside_where_change_no_number(case, given_where, repetitions):
    samples, outputs = case
    where = parse_condition(given_where, called="token-f1")
    inside = [row for row in samples if applies(where, dm.Sample(**row))]
    search = SampleSearch(where_selection(where))
    assert [row for row in samples if search.takes(dm.Sample(**row))] == inside
    # A `where` that names what no sample has is refused.
    assume(inside and not list(search.issues(None)))
    assume(can_be_scored(inside))
    metrics = [{"token-f1": {"where": given_where}}, {"levenshtein": {"where": given_where}}]
    settings = {
        "repetitions": repetitions,
        "aggregator": "and",
        "gate": {"min_macro_f1": 0.5, "min_pass_rate": 0.2, "min_aggregate_score": 0.3, "max_unscored": "20%"},
        "max_unscored": "100%",
    }
    whole = evaluated(samples, outputs, metrics, **settings)
    alone = evaluated(inside, outputs, ["token-f1", "levenshtein"], **settings)
    outside = (len(samples) - len(inside)) * repetitions

    for name in ("token-f1", "levenshtein"):
        assert without_where(whole.metrics[name]) == without_where(alone.metrics[name])
        assert whole.metrics[name].n_not_applicable == outside
    assert (whole.histograms, whole.aggregate, whole.precision) == (alone.histograms, alone.aggregate, alone.precision)
    assert (whole.macro_f1, whole.macro_f1_interval) == (alone.macro_f1, alone.macro_f1_interval)
    assert (whole.pass_rate, whole.pass_rate_interval) == (alone.pass_rate, alone.pass_rate_interval)
    assert (whole.gate, whole.run.status) == (alone.gate, alone.run.status)
    for label, cohort in alone.cohorts.items():
        own = whole.cohorts[label]
        assert (own.macro_f1, own.pass_rate, own.aggregate) == (cohort.macro_f1, cohort.pass_rate, cohort.aggregate)
        assert {name: without_where(each) for name, each in own.metrics.items()} == {
            name: without_where(each) for name, each in cohort.metrics.items()
        }
    counts = ("marks", "scored", "unscored", "not_run")
    assert [getattr(whole.totals, name) for name in counts] == [getattr(alone.totals, name) for name in counts]
    assert [entry for entry in whole.samples if not entry.not_applicable] == list(alone.samples)
    assert [entry.sample for entry in whole.failures()] == [entry.sample for entry in alone.failures()]


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(rows(), st.sampled_from(CONDITIONS), st.integers(1, 2), st.randoms())
def test_metric_has_the_same_numbers_beside_metrics_with_other_conditions(case, given_where, repetitions, random):
    samples, outputs = case
    where = parse_condition(given_where, called="token-f1")
    inside = [row for row in samples if applies(where, dm.Sample(**row))]
    search = SampleSearch(where_selection(where))
    assume([row for row in samples if search.takes(dm.Sample(**row))] and not list(search.issues(None)))
    assume(can_be_scored(inside))
    narrow = {"token-f1": {"where": given_where}}
    mixed = evaluated(samples, outputs, [narrow, "levenshtein"], repetitions=repetitions, max_unscored="100%")
    alone = evaluated(inside, outputs, ["token-f1"], repetitions=repetitions, max_unscored="100%")
    assert without_where(mixed.metrics["token-f1"]) == alone.metrics["token-f1"]

    # Macro-F1 is the mean of the pass rates, whatever the order of the samples.
    rates = [figures.pass_rate for figures in mixed.metrics.values()]
    assert mixed.macro_f1 == pytest.approx(sum(rates) / 2)
    low, high = mixed.macro_f1_interval
    assert 0 <= low <= mixed.macro_f1 <= high <= 1
    shuffled = random.sample(samples, len(samples))
    again = evaluated(shuffled, outputs, [narrow, "levenshtein"], repetitions=repetitions, max_unscored="100%")
    assert (again.macro_f1, again.macro_f1_interval) == (mixed.macro_f1, mixed.macro_f1_interval)


@given(rows())
def test_where_that_all_samples_fit_changes_nothing_but_itself(case):
    samples, outputs = case
    for row in samples:
        row["metadata"]["kind"] = "question"
    plain = evaluated(samples, outputs, ["json-valid", "length-within(max=4)"])
    everywhere = evaluated(
        samples, outputs, [dm.metrics.JsonValid(where={"metadata": {"kind": "question"}}), "length-within(max=4)"]
    )
    figures = everywhere.metrics["json-valid"]
    assert figures.where == Where(metadata={"kind": ("question",)})
    same = msgspec.structs.replace(figures, where=None)
    assert msgspec.structs.replace(everywhere, metrics={**everywhere.metrics, "json-valid": same}).to_json() == (
        plain.to_json()
    )
