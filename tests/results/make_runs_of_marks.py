"""Small made-up runs for the tests of summaries and reports."""

from hypothesis import strategies as st

from deemster.records import (
    CAUSES,
    Execution,
    MetricCard,
    MetricScore,
    Output,
    SampleFacts,
    SampleLabels,
    TargetFailure,
    Unscored,
)
from deemster.results.mark_table import MarkTable
from deemster.results.sample_summary import summarize_samples

scores = st.one_of(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1 - 0.9, 1.0]), st.floats(0, 1))
failures = st.sampled_from([cause for cause in CAUSES if cause != "not_run"]).map(
    lambda cause: Unscored(cause, "because")
)
marks = st.one_of(scores.map(lambda score: MetricScore(score, {"x": 1})), failures)


def cards(count):
    return [MetricCard(f"m{place}", f"m{place}", f"m{place} v1", "lexical", frozenset()) for place in range(count)]


@st.composite
def runs(draw, max_samples=6, max_repetitions=3, max_metrics=3):
    """A tally's shape, the tags of its samples, and executions, some of them missing."""
    samples = draw(st.integers(1, max_samples))
    repetitions = draw(st.integers(1, max_repetitions))
    metrics = draw(st.integers(1, max_metrics))
    tags = draw(st.lists(st.lists(st.sampled_from("abc"), max_size=2, unique=True), min_size=samples, max_size=samples))
    executions = []
    for position in range(samples):
        for repetition in range(repetitions):
            kind = draw(st.sampled_from(["output", "output", "output", "failure", "missing"]))
            if kind == "missing":
                continue
            if kind == "failure":
                row = (Unscored("target_failed", "boom"),) * metrics
                answer = TargetFailure("boom")
            else:
                row = tuple(draw(marks) for _ in range(metrics))
                answer = Output("text")
            executions.append(Execution(position, f"s{position}", repetition, answer, row))
    return samples, repetitions, metrics, tags, executions


def tally_of(run, executions=None):
    samples, repetitions, metrics, tags, own = run
    tally = MarkTable(cards(metrics), samples=samples, repetitions=repetitions)
    for position, names in enumerate(tags):
        tally.tag(position, names)
    tally.add(own if executions is None else executions)
    return tally


def entries_of(tally):
    """The entries of a tally whose samples have an id and nothing else."""
    return list(
        summarize_samples(tally, (SampleFacts(at, f"s{at}", "", SampleLabels(), None) for at in range(tally.samples)))
    )
