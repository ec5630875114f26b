from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import (
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
)
from tests.builders.published_numbers import PUBLISHED, near

METHODS = [holm, benjamini_hochberg, benjamini_yekutieli]


p_values = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12)


@pytest.mark.parametrize("method", METHODS)
@given(p_values)
def test_adjusted_p_value_is_never_smaller_and_keeps_the_order(method, raw):
    result = method(raw)
    assert result.n == sum(p is not None for p in raw)
    pairs = sorted((p, q) for p, q in zip(raw, result.adjusted, strict=True) if p is not None)
    assert all(p <= q + 1e-12 and q <= 1 for p, q in pairs)
    assert all(before[1] <= after[1] for before, after in itertools.pairwise(pairs))
    assert [q is None for q in result.adjusted] == [p is None for p in raw]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("missing", [None, math.nan])
def test_undefined_p_value_does_not_count_in_the_family(method, missing):
    with_none, without = method([0.01, missing, 0.04]), method([0.01, 0.04])
    assert with_none.adjusted == (without.adjusted[0], None, without.adjusted[1])
    assert with_none.rejected[1] is False
    assert method([]).adjusted == ()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [[-0.1], [1.1], [math.inf]])
def test_p_value_outside_its_range_is_refused(method, bad):
    with pytest.raises(ValueError, match="p-value"):
        method(bad)
    with pytest.raises(ValueError, match="level"):
        method([0.5], level=1)


@pytest.mark.parametrize(
    ("method", "key"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh"), (benjamini_yekutieli, "fdr_by")]
)
def test_thrombolysis_trial_is_adjusted_as_published(method, key):
    expected = PUBLISHED["bh_1995"]["expected"][key]
    result = method(PUBLISHED["bh_1995"]["input"])
    assert list(result.adjusted) == near("bh_1995", expected["adjusted"])
    assert sum(result.rejected) == expected["rejected_at_05"]
