from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from deemster.stats import student
from tests.builders.published_numbers import ends


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40).filter(lambda values: np.std(values) > 1e-6))
def test_student_equals_scipys(values):
    expected = scipy_stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=scipy_stats.sem(values))
    assert ends(student(values)) == pytest.approx(expected, abs=1e-9)
