from __future__ import annotations

import pytest

from deemster.agreement import BiasResult, CorrelationResult
from deemster.stats import (
    EarthMovers,
    interpret_correlation,
    interpret_effect_size,
    interpret_emd,
    interpret_kappa,
)


@pytest.mark.parametrize(
    ("call", "value", "word"),
    [
        (interpret_kappa, -0.01, "poor (worse than chance)"),
        (interpret_kappa, 0.0, "slight"),
        (interpret_kappa, 0.2099, "slight"),
        (interpret_kappa, 0.21, "fair"),
        (interpret_kappa, 0.41, "moderate"),
        (interpret_kappa, 0.61, "substantial"),
        (interpret_kappa, 0.81, "almost perfect"),
        (interpret_kappa, None, "undefined"),
        (interpret_correlation, 0.9, "very strong positive"),
        (interpret_correlation, -0.9, "very strong negative"),
        (interpret_correlation, 0.7, "strong positive"),
        (interpret_correlation, 0.5, "moderate positive"),
        (interpret_correlation, -0.3, "weak negative"),
        (interpret_correlation, 0.0, "very weak positive"),
        (interpret_correlation, None, "undefined"),
        (interpret_effect_size, 0.19, "negligible"),
        (interpret_effect_size, -0.2, "small"),
        (interpret_effect_size, 0.5, "medium"),
        (interpret_effect_size, -0.8, "large"),
        (interpret_effect_size, None, "undefined"),
        (interpret_emd, 0.049, "very similar"),
        (interpret_emd, 0.05, "minor differences"),
        (interpret_emd, 0.1, "moderate differences"),
        (interpret_emd, 0.2, "substantial differences"),
        (interpret_emd, None, "insufficient data"),
    ],
)
def test_words_change_at_their_bounds(call, value, word):
    assert call(value) == word


def test_results_carry_the_words_for_their_numbers_where_autorubric_has_them():
    assert CorrelationResult.interpret_correlation(0.95) == interpret_correlation(0.95) == "very strong positive"
    assert BiasResult.interpret_effect_size(0.6) == interpret_effect_size(0.6) == "medium"
    assert EarthMovers.interpret_emd(0.07) == interpret_emd(0.07)
