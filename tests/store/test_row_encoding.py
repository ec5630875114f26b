"""Reading a run lean: everything that is counted, nothing that is only shown."""

from __future__ import annotations

import pytest

from deemster.errors import StoreError
from deemster.records import Call, MetricScore, Output, TargetFailure, Unscored, Usage
from deemster.store import open_store
from tests.store.make_runs import CARDS, begun, card, execution, samples, written

USAGE = Usage(calls=2, prompt_tokens=7, latency_ms=1.5, model="judge")
MARKS = (
    MetricScore(1 / 3, {"why": "because", "deep": [1, {"a": 2}]}, rubric_score=2.0, threshold=0.25),
    MetricScore(0.0, {"why": "so"}, higher_is_better=False, usage=USAGE, calls=(Call(5, USAGE),)),
    Unscored("model_failed", "It was silent.", usage=USAGE),
)


def kept(store, executions, cards):
    name = begun(store, cards=cards)
    with store.writer(name) as writer:
        writer.add(executions)
    return name


def test_lean_marks_count_as_the_whole_ones_do_and_have_no_details(store):
    name = kept(store, [execution(marks=MARKS)], [card(str(number)) for number in range(3)])
    (lean,) = store.executions(name, lean=True)
    assert lean.marks == (
        MetricScore(1 / 3, threshold=0.25),
        MetricScore(0.0, higher_is_better=False, usage=USAGE, calls=(Call(5, USAGE),)),
        MARKS[2],
    )


def test_a_lean_output_says_what_it_used_and_not_what_it_said(store):
    answer = Output("a long text", retrieved=["d1"], usage=USAGE, model="target")
    name = kept(store, [execution(answer=answer)], CARDS)
    (lean,) = store.executions(name, lean=True)
    assert lean.answer == Output("", usage=USAGE, model="target")


@pytest.mark.parametrize("answer", [TargetFailure("It fell over."), None])
def test_what_is_no_output_is_the_same_when_read_lean(store, answer):
    name = kept(store, [execution(answer=answer)], CARDS)
    assert list(store.executions(name, lean=True)) == list(store.executions(name))


def test_lean_samples_have_their_labels_and_no_content(store):
    name = written(store)
    lean = list(store.samples(name, lean=True))
    assert [(each.id, each.row_hash, each.tags, each.metadata) for each in lean] == [
        (each.id, each.row_hash, each.tags, each.metadata) for each in samples()
    ]
    assert all(not each.content and each.input is None and each.expected_output is None for each in lean)


@pytest.mark.parametrize("table", ["outputs", "marks"])
def test_damage_to_what_is_left_out_is_seen_all_the_same(tmp_path, table):
    with open_store(tmp_path / "runs.db") as store:
        name = begun(store)
        with store.writer(name) as writer:
            writer.add([execution(text="before", marks=[MetricScore(1.0, {"why": "before"})])])
        with store.write_transaction() as rows:
            (body,) = rows.read(f"SELECT body FROM {table}")[0]
            rows.write(f"UPDATE {table} SET body = ?", (bytes(body).replace(b"before", b"behind"),))
        with pytest.raises(StoreError, match="does not fit its check sum"):
            list(store.executions(name, lean=True))
