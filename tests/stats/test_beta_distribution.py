import mpmath
import pytest

from deemster.stats.beta_distribution import beta_cdf, beta_quantile

SHAPES = [(1, 1), (1, 7), (7, 1), (2, 3), (3.5, 1.5), (5, 996), (333, 668), (500, 501), (996, 5)]


@pytest.fixture(autouse=True)
def forty_digits():
    with mpmath.workdps(40):
        yield


def exact_cdf(x, a, b):
    return mpmath.betainc(mpmath.mpf(a), mpmath.mpf(b), 0, mpmath.mpf(x), regularized=True)


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("probability", [1e-12, 0.005, 0.025, 0.4, 0.5, 0.6, 0.975, 0.995])
def test_quantile_is_mpmaths_to_twelve_digits(a, b, probability):
    quantile = beta_quantile(probability, a, b)

    x = mpmath.mpf(quantile)
    density = x ** (mpmath.mpf(a) - 1) * (1 - x) ** (mpmath.mpf(b) - 1) / mpmath.beta(a, b)
    error = (exact_cdf(x, a, b) - mpmath.mpf(probability)) / density
    assert abs(error) <= 1e-12 * quantile


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), *SHAPES])
@pytest.mark.parametrize("x", [1e-3, 0.2, 0.3, 0.5, 0.8])
def test_distribution_is_mpmaths_to_eleven_digits_in_both_tails(a, b, x):
    exact = exact_cdf(x, a, b)

    if exact > 1e-300:
        assert beta_cdf(x, a, b) == pytest.approx(float(exact), rel=1e-11, abs=0)
    else:
        assert beta_cdf(x, a, b) < 1e-299


def test_ends_are_exact():
    assert [beta_cdf(x, 2, 3) for x in (-1, 0, 1, 2)] == [0, 0, 1, 1]
    assert [beta_quantile(probability, 2, 3) for probability in (0, 1)] == [0, 1]
