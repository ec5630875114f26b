"""The words for a kappa, a correlation, an effect size and an earth mover's distance."""

from __future__ import annotations

from bisect import bisect_right

UNDEFINED = "undefined"
_KAPPA = ((0.0, 0.21, 0.41, 0.61, 0.81), ("poor (worse than chance)", "slight", "fair", "moderate", "substantial"))
_CORRELATION = ((0.3, 0.5, 0.7, 0.9), ("very weak", "weak", "moderate", "strong", "very strong"))
_EFFECT = ((0.2, 0.5, 0.8), ("negligible", "small", "medium", "large"))
_DISTANCE = (
    (0.05, 0.10, 0.20),
    ("very similar", "minor differences", "moderate differences", "substantial differences"),
)


def interpret_kappa(kappa: float | None) -> str:
    """The word for a kappa, or for another chance-corrected agreement.

    Below 0 poor, below .21 slight, .41 fair, .61 moderate, .81 substantial, else almost perfect; None is undefined.

    Reference: J. R. Landis, G. G. Koch, The measurement of observer agreement, Biometrics 33 (1977).

    >>> interpret_kappa(0.72), interpret_kappa(None)
    ('substantial', 'undefined')
    """
    if kappa is None:
        return UNDEFINED
    bounds, words = _KAPPA
    return (*words, "almost perfect")[bisect_right(bounds, kappa)]


def interpret_correlation(r: float | None) -> str:
    """The word for a correlation: its strength by absolute value, then its direction; None is undefined.

    From .9 very strong, from .7 strong, from .5 moderate, from .3 weak, else very weak.

    >>> interpret_correlation(-0.75)
    'strong negative'
    """
    if r is None:
        return UNDEFINED
    bounds, words = _CORRELATION
    return f"{words[bisect_right(bounds, abs(r))]} {'positive' if r >= 0 else 'negative'}"


def interpret_effect_size(d: float | None) -> str:
    """The word for a standardised difference, by absolute value: from .2 small, from .5 medium, from .8 large.

    Reference: J. Cohen, Statistical Power Analysis for the Behavioral Sciences (1988).

    >>> interpret_effect_size(-0.3), interpret_effect_size(None)
    ('small', 'undefined')
    """
    if d is None:
        return UNDEFINED
    bounds, words = _EFFECT
    return words[bisect_right(bounds, abs(d))]


def interpret_emd(distance: float | None) -> str:
    """The word for an earth mover's distance on a scale of width 1.

    Below .05 very similar, .10 minor, .20 moderate, else substantial differences; None is insufficient data.

    >>> interpret_emd(0.07)
    'minor differences'
    """
    if distance is None:
        return "insufficient data"
    bounds, words = _DISTANCE
    return words[bisect_right(bounds, distance)]
