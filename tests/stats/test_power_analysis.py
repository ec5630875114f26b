"""Published and verified numbers for intervals, tests and corrections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import (
    clopper_pearson,
    detectable_difference,
    newcombe,
    pass_at_k,
    sample_size,
    wilson,
)

FILE = Path(__file__).parent.parent / "fixtures" / "statistics.json"


FIXTURES = {entry["id"]: entry for entry in json.loads(FILE.read_text())}


def ends(result):
    return [result.interval.lower, result.interval.upper]


def near(name, expected=None):
    entry = FIXTURES[name]
    return pytest.approx(entry["expected"] if expected is None else expected, abs=entry["abs_tol"], rel=0)


@pytest.mark.parametrize("name", ["prop_81_263", "prop_0_20", "prop_20_20"])
def test_shares_have_newcombes_published_intervals(name):
    x, n = FIXTURES[name]["input"]["x"], FIXTURES[name]["input"]["n"]
    assert ends(wilson(x, n)) == near(name, FIXTURES[name]["expected"]["wilson"])
    assert ends(clopper_pearson(x, n)) == near(name, FIXTURES[name]["expected"]["clopper_pearson"])


@pytest.mark.parametrize("name", ["newcombe_diff_56_70_48_80", "newcombe_diff_5_56_0_29"])
def test_differences_of_shares_have_newcombes_published_intervals(name):
    assert ends(newcombe(*FIXTURES[name]["input"])) == near(name)


def test_millers_example_needs_969_samples():
    given, expected = FIXTURES["miller_power"]["input"], FIXTURES["miller_power"]["expected"]
    result = sample_size(given["omega2"], given["delta"])
    assert result.exact == near("miller_power", expected["n"])
    assert result.value == 969
    assert detectable_difference(given["omega2"], 198).value == near("miller_power", expected["mde_n198"])


@given(st.floats(0.001, 1), st.floats(0.01, 0.5), st.floats(0.5, 0.99))
def test_the_samples_a_difference_needs_detect_it(variance, difference, power):
    size = sample_size(variance, difference, power=power)
    shown = detectable_difference(variance, size.value, power=power).value
    assert shown <= difference * (1 + 1e-9)
    if size.value > 1:
        assert detectable_difference(variance, size.value - 1, power=power).value > difference * (1 - 1e-9)


def test_repetitions_shrink_only_the_variance_within_samples():
    assert sample_size(0.1, 0.1, within=(0.2, 0.2), repetitions=(4, 4)).exact == pytest.approx(
        sample_size(0.2, 0.1).exact
    )
    assert sample_size(0.1, 0.1, design_effect=2).exact == pytest.approx(2 * sample_size(0.1, 0.1).exact)
    assert sample_size(0.0, 0.1).value == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sample_size(0.1, 0), "above 0"),
        (lambda: sample_size(-0.1, 0.1), "variance"),
        (lambda: sample_size(0.1, 0.1, power=1), "power"),
        (lambda: sample_size(0.1, 0.1, level=0), "level"),
        (lambda: sample_size(0.1, 0.1, repetitions=(0, 1)), "repetition"),
        (lambda: sample_size(0.1, 0.1, design_effect=0), "design effect"),
        (lambda: detectable_difference(0.1, 0), "one sample"),
        (lambda: pass_at_k(3, attempts=2, k=1), "correct"),
        (lambda: pass_at_k(1, attempts=2, k=3), "needs 3 attempts"),
        (lambda: pass_at_k(1, attempts=2, k=0), "k = 0"),
        (lambda: pass_at_k(0.5, attempts=2, k=1), "whole numbers"),
        (lambda: clopper_pearson(0.5, 2), "whole counts"),
        (lambda: newcombe(3, 2, 1, 2), "successes"),
        (lambda: wilson(1, 2, confidence=1), "confidence"),
    ],
)
def test_invalid_arguments_are_error_with_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()
