from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import (
    balanced_accuracy,
    cohen_kappa,
    confusion,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    pabak,
    phi,
    precision_recall_f1,
    scott_pi,
)
from deemster.stats import confusion_tables as tables
from deemster.stats.cohen_kappa import kappa_from_table
from tests.builders.published_numbers import PUBLISHED

COHEN = [[88, 10, 2], [14, 40, 6], [18, 10, 12]]


def listed(table):
    """The pairs of a table, one by one."""
    a = [i for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    b = [j for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    return a, b


def test_table_of_cohen_1968_gives_the_published_kappas():
    entry = PUBLISHED["cohen_1968_weighted"]
    table, expected = entry["input"]["table"], entry["expected"]
    plain = kappa_from_table(table)
    weighted = kappa_from_table(table, weights=entry["input"]["disagreement_weights"])
    assert plain.value == pytest.approx(expected["kappa"], abs=entry["abs_tol"])
    assert plain.standard_error == pytest.approx(expected["kappa_se"], abs=entry["abs_tol"])
    assert weighted.value == pytest.approx(expected["kappa_w"], abs=entry["abs_tol"])
    assert weighted.standard_error == pytest.approx(expected["kappa_w_se"], abs=entry["abs_tol"])
    assert weighted.null_error == pytest.approx(expected["kappa_w_se0"], abs=entry["abs_tol"])
    assert kappa_from_table(table, weights="linear").value == pytest.approx(expected["linear"], abs=entry["abs_tol"])
    assert kappa_from_table(table, weights="quadratic").value == pytest.approx(
        expected["quadratic"], abs=entry["abs_tol"]
    )


def test_table_of_cohen_1968_gives_all_known_answers_of_the_specification():
    a, b = listed(COHEN)
    assert cohen_kappa(a, b).value == pytest.approx(0.4915, abs=5e-5)
    assert scott_pi(a, b).value == pytest.approx(0.4872, abs=5e-5)
    assert gwet_ac([a, b]).value == pytest.approx(0.5760, abs=5e-5)
    assert gwet_ac([a, b], weights="quadratic").value == pytest.approx(0.6386, abs=5e-5)
    assert pabak(a, b).value == pytest.approx(0.55, abs=1e-12)
    assert krippendorff_alpha([a, b]).value == pytest.approx(0.4885, abs=5e-5)


@pytest.mark.parametrize("name", ["paradox_balanced", "gwet_2002"])
def test_tables_of_the_kappa_paradoxes_give_the_published_numbers(name):
    entry = PUBLISHED[name]
    a, b = listed(entry["input"])
    expected, near = entry["expected"], {"abs": entry["abs_tol"]}
    assert cohen_kappa(a, b).observed == pytest.approx(expected["po"], **near)
    assert cohen_kappa(a, b).value == pytest.approx(expected["cohen"], **near)
    assert scott_pi(a, b).value == pytest.approx(expected["scott"], **near)
    assert krippendorff_alpha([a, b]).value == pytest.approx(expected["alpha"], **near)
    assert gwet_ac([a, b]).value == pytest.approx(expected["ac1"], **near)
    assert pabak(a, b).value == pytest.approx(expected["pabak"], **near)
    assert phi(a, b).value == pytest.approx(expected["mcc"], **near)


def test_pair_with_a_missing_side_is_left_out_and_counted():
    result = confusion(["yes", None, "no", "no"], ["yes", "no", float("nan"), "yes"], labels=["yes", "no"])
    assert result.matrix == ((1, 0), (1, 0))
    assert (result.n, result.missing) == (2, 2)


def test_unused_labels_keep_their_position_on_scale():
    truth, final = [0, 0, 0, 1, 1, 1, 4, 4, 4], [0, 0, 1, 1, 1, 0, 4, 4, 1]
    full = cohen_kappa(truth, final, weights="quadratic", labels=range(5))
    assert full.value == pytest.approx(0.7660, abs=5e-5)
    assert cohen_kappa(truth, final, weights="quadratic").value == pytest.approx(0.7273, abs=5e-5)


def test_two_raters_that_give_one_same_label_have_no_kappa():
    result = cohen_kappa(["a", "a"], ["a", "a"])
    assert (result.value, result.interval, result.p_value, result.observed, result.n) == (None, None, None, 1.0, 2)
    assert scott_pi([1, 1], [1, 1]).value is None
    assert pabak([1, 1], [1, 1]).value is None
    assert pabak([1, 1], [1, 1], labels=[0, 1]).value == 1.0
    assert gwet_ac([[1, 1], [1, 1]], labels=[0, 1]).value == 1.0


def test_two_raters_that_are_constant_on_different_labels_have_kappa_zero():
    assert cohen_kappa([1, 1, 1], [0, 0, 0]).value == 0.0


@pytest.mark.parametrize("statistic", [cohen_kappa, scott_pi, pabak, phi, balanced_accuracy])
def test_no_pairs_give_none_and_not_an_exception(statistic):
    result = statistic([], [])
    assert (result.value, result.n) == (None, 0)


def test_full_agreement_has_no_interval_of_no_width():
    result = cohen_kappa([0, 1, 2, 1], [0, 1, 2, 1])
    assert (result.value, result.standard_error, result.interval) == (1.0, 0.0, None)


def test_labels_of_different_types_are_not_turned_into_text():
    assert confusion([1, "1", 1], [1, "1", "1"], labels=[1, "1"]).matrix == ((1, 1), (0, 1))


def test_small_integer_types_do_not_overflow():
    values = np.array([-128, 127, 0], dtype=np.int8)
    assert confusion(values, values).labels == (-128, 0, 127)
    assert confusion(values, values).matrix == ((1, 0, 0), (0, 1, 0), (0, 0, 1))


def test_large_whole_numbers_stay_different_labels():
    big = 2**60
    assert confusion([big, big + 1, None], [big, big + 1, big]).labels == (big, big + 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cohen_kappa([1, 2], [1]), "2 and 1 labels"),
        (lambda: confusion(["a", "c"], ["a", "b"], labels=["a", "b"]), "`c` occurs but is none of `labels`"),
        (lambda: confusion([["a"]], [["b"]]), "A label is a word or a number"),
        (lambda: confusion(["a"], ["a"], labels=["a", "a"]), "twice"),
        (lambda: cohen_kappa([0, 1], [0, 1], weights="cubic"), "`linear`, `quadratic`"),
        (lambda: cohen_kappa([0, 1], [0, 1], weights=[[0, 1]]), "2 × 2"),
        (lambda: cohen_kappa([0, 1], [0, 1], weights=[[1, 0], [0, 1]]), "0 on the diagonal"),
        (lambda: cohen_kappa([0, 1], [0, 1], weights=[[0, -1], [1, 0]]), "not negative"),
        (lambda: cohen_kappa([0, 1], [0, 1], confidence=1.5), "between 0 and 1"),
        (lambda: kappa_from_table([[1, -1], [0, 1]]), "none negative"),
        (lambda: kappa_from_table([[1, 0, 0], [0, 1, 0]]), "square"),
        (lambda: phi([0, 1, 2], [0, 1, 2]), "two labels"),
        (lambda: precision_recall_f1(["y"], ["n"]), "Say which is `positive`"),
        (lambda: fleiss_kappa([[1, 2], [2, 2]]), "as many votes for every unit; these have 3 to 4"),
        (lambda: fleiss_kappa([[1, -1], [0, 0]]), "none negative"),
        (lambda: fleiss_kappa([[0.5, 0.5], [1, 0]]), "whole numbers"),
        (lambda: krippendorff_alpha([[1, 2], [1]]), "rows have 1 to 2"),
        (lambda: krippendorff_alpha([[1, 2], [1, 2]], level="cardinal"), "'cardinal'"),
        (lambda: krippendorff_alpha([["low", "high"], ["low", "low"]], level="ordinal"), "give the scale as `labels`"),
        (lambda: krippendorff_alpha([["low", "high"], ["low", "low"]], level="interval"), "finite numbers"),
        (lambda: krippendorff_alpha([[1, -2], [1, 2]], level="ratio"), "negative"),
        (lambda: krippendorff_alpha(np.zeros(3)), "raters × units"),
    ],
)
def test_bad_input_is_error_with_its_name(call, words):
    with pytest.raises(ValueError) as caught:
        call()
    assert words in str(caught.value)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_standard_error_of_kappa_is_the_spread_of_its_own_gradient(pairs):
    """The gradient by finite differences of the kernel, which knows nothing of standard errors."""
    table = np.zeros((4, 4))
    for i, j in pairs:
        table[i, j] += 1
    for weights in ("nominal", "quadratic"):
        matrix = tables.disagreement(4, weights)
        result = kappa_from_table(table, weights=None if weights == "nominal" else "quadratic")
        if result.value is None:
            continue
        p, step = table / table.sum(), 1e-6
        slopes = np.array(
            [
                (tables.weighted_kappa(p + step * unit, matrix) - tables.weighted_kappa(p - step * unit, matrix)).item()
                / (2 * step)
                for unit in np.eye(16).reshape(16, 4, 4)
                if not ((p == 0) & (unit == 1)).any()
            ]
        )
        shares = p[p > 0]
        variance = (shares @ slopes**2 - (shares @ slopes) ** 2) / table.sum()
        assert result.standard_error == pytest.approx(np.sqrt(max(variance, 0)), abs=1e-4)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=25), st.permutations("abc")
)
def test_names_and_order_of_labels_change_no_unweighted_agreement(pairs, order):
    a, b = zip(*pairs, strict=True)
    for statistic in (cohen_kappa, scott_pi, pabak):
        first, second = statistic(a, b, labels="abc").value, statistic(a, b, labels=order).value
        assert first == second or first == pytest.approx(second, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=25))
def test_agreement_is_symmetric_in_raters(pairs):
    a, b = zip(*pairs, strict=True)
    for statistic in (cohen_kappa, scott_pi, pabak):
        first, second = statistic(a, b).value, statistic(b, a).value
        assert first == second or first == pytest.approx(second, abs=1e-12)
