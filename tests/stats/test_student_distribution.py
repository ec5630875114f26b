import math

import mpmath
import pytest

from deemster.stats.student_distribution import t_cdf, t_quantile

DEGREES = [0.5, 1, 1.5, 2, 3, 4.7, 9, 10, 29, 33.3, 99, 199, 200, 299.5, 500, 999, 1000, 5000, 1e5, 1e7]
LEVELS = [1e-6, 0.01, 0.2, 0.4999, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999]


@pytest.fixture(autouse=True)
def forty_digits():
    with mpmath.workdps(40):
        yield


def beta_share(a, b, x):
    return mpmath.betainc(mpmath.mpf(a), mpmath.mpf(b), 0, x, regularized=True)


@pytest.mark.parametrize("degrees", DEGREES)
def test_quantile_is_mpmaths_to_twelve_digits(degrees):
    def surplus(t, level):
        return beta_share(0.5, degrees / 2, t * t / (degrees + t * t)) - mpmath.mpf(level)

    for level in LEVELS:
        quantile = t_quantile(level, degrees)
        exact = mpmath.findroot(lambda t, level=level: surplus(t, level), mpmath.mpf(quantile))
        assert quantile == pytest.approx(float(exact), rel=1e-12, abs=0), level


@pytest.mark.parametrize("degrees", DEGREES)
def test_distribution_is_mpmaths_to_eleven_digits_in_both_tails(degrees):
    for t in (0.001, 0.5, 1.7, 1.8, 2.6, 5.0, 12.0):
        tail = beta_share(degrees / 2, 0.5, degrees / (degrees + mpmath.mpf(t) ** 2)) / 2
        assert t_cdf(-t, degrees) == pytest.approx(float(tail), rel=1e-11, abs=0), t
        assert t_cdf(t, degrees) == pytest.approx(float(1 - tail), rel=1e-11, abs=0), t


def test_ends_of_the_scale_are_exact_and_what_is_no_level_is_nan():
    assert t_quantile(0, 3) == 0
    assert t_quantile(1, 3) == math.inf
    assert math.isnan(t_quantile(0.95, 0))
    assert math.isnan(t_quantile(math.nan, 3))
    assert math.isnan(t_cdf(math.nan, 3))
    assert (t_cdf(-math.inf, 3), t_cdf(0, 3), t_cdf(math.inf, 3)) == (0, 0.5, 1)
