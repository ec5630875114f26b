"""A spool returns executions by sample and repetition, in any order of arrival."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from deemster.records import Execution, MetricScore, Output, Unscored
from deemster.store import Spool


def execution(position, repetition, text="x"):
    marks = (MetricScore(0.25, {"match": False}), Unscored("no_usage", "none"))
    return Execution(position, f"s{position}", repetition, Output(text), marks)


@given(
    st.integers(1, 6),
    st.integers(1, 3),
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=18, max_size=18),
    st.randoms(use_true_random=False),
    st.integers(0, 18),
)
def test_executions_are_read_in_dataset_order_with_none_for_missing(
    samples, repetitions, texts, rng: random.Random, kept
):
    every = [
        execution(position, repetition, texts[position * repetitions + repetition])
        for position in range(samples)
        for repetition in range(repetitions)
    ]
    shuffled = every.copy()
    rng.shuffle(shuffled)
    added = shuffled[:kept]
    spool = Spool(samples=samples, repetitions=repetitions)
    spool.add(added[: kept // 2])
    spool.add(added[kept // 2 :])
    assert len(spool) == len(every)
    assert list(spool) == [one for one in every if one in added]


def test_spool_can_be_read_twice_at_once():
    spool = Spool(samples=3, repetitions=1)
    spool.add([execution(position, 0, "y" * position) for position in (2, 0, 1)])
    assert [(one.id, other.answer.text) for one, other in zip(spool, spool, strict=True)] == [
        ("s0", ""),
        ("s1", "y"),
        ("s2", "yy"),
    ]


def test_executions_beyond_memory_limit_are_read_from_file():
    spool = Spool(samples=40, repetitions=1)
    for position in range(40):
        spool.add([execution(position, 0, chr(65 + position % 26) * 1_000_000)])
    assert [(one.position, one.answer.text[:2], len(one.answer.text)) for one in spool] == [
        (position, chr(65 + position % 26) * 2, 1_000_000) for position in range(40)
    ]
