"""Where a difference comes from: planted shifts are found again, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results.make_compared_runs import compare, run

MARKS = st.sampled_from([0.0, 1.0, "model_failed"])
OUTPUTS = st.sampled_from(["a", "b", None])


def parts(origin):
    return origin.outputs + origin.judge + origin.unscored + origin.dataset + origin.metrics


def test_planted_shifts_are_found_exactly():
    said = [f"answer {place}" for place in range(100)]
    before = run({"m": [1.0] * 100}, outputs=said, keys=range(100))
    marks, now = [1.0] * 100, list(said)
    for place in range(7):  # seven samples answer otherwise, and fail
        marks[place], now[place] = 0.0, f"other {place}"
    marks[10:15] = [0.0] * 5  # of five equal answers the judge thinks otherwise
    marks[20:23] = ["model_failed"] * 3
    after = run(
        {"m": marks[:90] + [0.0] * 10}, outputs=now[:90] + said[90:], keys=[*range(90), *range(200, 210)], name="b"
    )
    found = compare(before, after)
    origin = found.metrics["m"].origin
    assert origin.outputs == pytest.approx(-7 / 90, abs=1e-12)
    assert origin.judge == pytest.approx(-5 / 90, abs=1e-12)
    assert origin.unscored == pytest.approx(-3 / 90, abs=1e-12)
    assert origin.total == pytest.approx(0.75 - 1.0)
    assert parts(origin) == pytest.approx(origin.total, abs=1e-12)
    assert found.macro_f1_origin == origin
    assert found.pass_rate_origin == origin


def test_metric_that_changed_is_a_part_of_its_own():
    same = {"definition": "n"}
    before = run({"m": [1.0, 1.0], "n": [1.0, 1.0]}, identities={"m": {"model": "a"}, "n": same})
    after = run({"m": [0.0, 0.0], "n": [1.0, 0.0]}, name="b", identities={"m": {"model": "b"}, "n": same})
    origin = compare(before, after).macro_f1_origin
    assert (origin.total, origin.outputs) == (-0.75, -0.5)
    assert parts(origin) == pytest.approx(origin.total)


def test_equal_outputs_are_matched_over_repetitions():
    before = run({"m": [[1.0, 0.0]]}, outputs=[["a", "b"]])
    after = run({"m": [[0.0, 0.0]]}, outputs=[["b", "a"]], name="b")
    origin = compare(before, after).metrics["m"].origin
    assert (origin.judge, origin.outputs) == (-0.5, 0.0)


def test_drift_of_a_judge_on_equal_outputs_is_found():
    said = [f"answer {place}" for place in range(40)]
    before = run({"m": [0.8] * 40}, outputs=said)
    after = run({"m": [0.7] * 30 + [0.8] * 10}, outputs=said, name="b")
    drift = compare(before, after).metrics["m"].drift
    assert (drift.n, drift.changed, drift.drifted) == (40, 30, True)
    assert drift.difference == pytest.approx(-0.075)


def test_noise_of_a_judge_is_no_drift():
    said = [f"answer {place}" for place in range(40)]
    noisy = [0.7, 0.9] * 20
    drift = compare(run({"m": [0.8] * 40}, outputs=said), run({"m": noisy}, outputs=said, name="b")).metrics["m"].drift
    assert (drift.changed, drift.drifted) == (40, False)


def test_without_equal_outputs_nothing_is_said_of_drift():
    assert compare(run({"m": [1.0]}), run({"m": [0.0]}, name="b")).metrics["m"].drift is None


@given(st.data())
def test_parts_add_up_whatever_happened(data):
    def side(name):
        keys = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=6, unique=True))
        repetitions = data.draw(st.integers(1, 3))
        rows = st.lists(
            st.lists(MARKS, min_size=repetitions, max_size=repetitions), min_size=len(keys), max_size=len(keys)
        )
        texts = st.lists(
            st.lists(OUTPUTS, min_size=repetitions, max_size=repetitions), min_size=len(keys), max_size=len(keys)
        )
        scores = {"m": data.draw(rows), "n": data.draw(rows)}
        return run(scores, keys=keys, outputs=data.draw(texts), name=name), set(keys)

    (before, first), (after, second) = side("a"), side("b")
    if not first & second:
        return
    found = compare(before, after)
    origins = [found.macro_f1_origin, found.pass_rate_origin, *(metric.origin for metric in found.metrics.values())]
    for origin in origins:
        assert parts(origin) == pytest.approx(origin.total, abs=1e-9)
    assert found.macro_f1_origin.total == pytest.approx(after.run.macro_f1 - before.run.macro_f1)
    if before.marks.outputs.any() and np.array_equal(before.marks.outputs, after.marks.outputs) and first == second:
        assert found.macro_f1_origin.dataset == pytest.approx(0.0, abs=1e-9)
