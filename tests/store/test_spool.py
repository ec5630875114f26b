"""The spool keeps executions in any order of arrival, in memory or in a file."""

from __future__ import annotations

import gc
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.records import Execution, MetricScore, Output, TargetFailure, Unscored, Usage
from deemster.store import Spool, spool

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)

MARK = MetricScore(0.5)


def execution(position=0, repetition=0, answer=None, marks=(MARK,)):
    return Execution(position, f"s{position}", repetition, answer or Output("x"), tuple(marks))


@given(st.permutations(range(12)))
def test_executions_come_back_in_dataset_order(order):
    kept = Spool(samples=4, repetitions=3)
    for number in order:
        kept.add([execution(*divmod(number, 3))])
    assert [(entry.position, entry.repetition) for entry in kept] == [divmod(number, 3) for number in range(12)]


def test_missing_execution_is_left_out():
    kept = Spool(samples=2, repetitions=2)
    kept.add([execution(1, 0)])
    assert [entry.position for entry in kept] == [1]
    assert len(kept) == 4


@given(TEXT, TEXT, st.floats(0, 1), st.dictionaries(TEXT, st.integers() | TEXT | st.booleans(), max_size=3))
def test_execution_round_trips(text, message, score, details):
    details = {key: value for key, value in details.items() if type(value) is not int or abs(value) < 2**63}
    marks = (MetricScore(score, details, usage=Usage(calls=2)), Unscored("metric_failed", message))
    entry = execution(answer=Output(text, retrieved=["d"], model="m"), marks=marks)
    kept = Spool(samples=1, repetitions=1)
    kept.add([entry])
    assert list(kept) == [entry]


def test_target_failure_round_trips():
    kept = Spool(samples=1, repetitions=1)
    kept.add([execution(answer=TargetFailure("refused"))])
    assert next(iter(kept)).answer == TargetFailure("refused")


def test_lone_surrogate_is_replaced_and_output_is_invalid():
    kept = Spool(samples=2, repetitions=1)
    kept.add([execution(0, answer=Output("a\ud800b")), execution(1, marks=[Unscored("bad_output", "\udfff")])])
    first, second = kept
    assert (first.answer.text, first.valid) == ("a\ufffdb", False)
    assert (second.marks[0].message, second.valid) == ("\ufffd", True)


def test_numbers_of_any_length_are_kept():
    kept = Spool(samples=1, repetitions=1)
    kept.add([execution(answer=Output("x", retrieved=[2**63, -(2**70), 10**4000]))])
    found = next(iter(kept)).answer.retrieved
    assert [int(value, 16) if isinstance(value, str) else value for value in found] == [2**63, -(2**70), 10**4000]


def test_long_run_goes_to_a_file_and_reads_the_same(monkeypatch):
    monkeypatch.setattr(spool, "_IN_MEMORY", 1000)
    kept = Spool(samples=200, repetitions=1)
    for number in range(200):
        kept.add([execution(number, answer=Output("x" * number))])
    assert [len(entry.answer.text) for entry in kept] == list(range(200))
    assert [len(entry.answer.text) for entry in kept] == list(range(200))


def test_spool_may_be_written_while_read():
    kept = Spool(samples=2, repetitions=1)
    kept.add([execution(0)])
    reader = iter(kept)
    assert next(reader).position == 0
    kept.add([execution(1)])
    assert next(reader).position == 1


def test_spool_that_is_dropped_leaves_no_open_file(monkeypatch):
    monkeypatch.setattr(spool, "_IN_MEMORY", 10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = Spool(samples=1, repetitions=1)
        kept.add([execution()])
        del kept
        gc.collect()
    assert [warning for warning in caught if warning.category is ResourceWarning] == []


def test_full_disk_is_storage_error(monkeypatch):
    kept = Spool(samples=1, repetitions=1)

    def full(data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept._file, "write", full)
    with pytest.raises(OSError, match="No space left"):
        kept.add([execution()])
