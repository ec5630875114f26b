"""Effects of factors on paired samples: by hand, by regression, and by how often they err."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deemster.stats import paired_difference
from deemster.stats.factor_effects import factor_effects

GRID = [{"prompt": prompt, "chat": chat} for prompt in ("short", "polite") for chat in ("mini", "local")]
CUBE = [{"a": a, "b": b, "c": c} for a in "012" for b in "01" for c in "01"]


def draw(generator, samples, rates):
    """Passes of samples in each cell; what is hard is hard in all of them."""
    means = np.asarray(rates)[None, :]
    easiness = generator.uniform(-0.8, 0.8, samples)[:, None] * np.minimum(means, 1 - means)
    return (generator.random((samples, len(rates))) < means + easiness).astype(float)


def test_effect_is_the_paired_difference_of_means_over_the_other_factor():
    values = draw(np.random.default_rng(1), 90, [0.5, 0.6, 0.7, 0.8])
    effects = factor_effects(values, GRID)
    prompt, chat = effects.mains
    change = (values[:, 2] + values[:, 3] - values[:, 0] - values[:, 1]) / 2
    alone = paired_difference(change, confidence=0.975)
    assert prompt.paired.value == pytest.approx(alone.value)
    assert prompt.paired.interval.lower == pytest.approx(alone.interval.lower)
    assert (prompt.factor, prompt.first, prompt.second, prompt.missing) == ("prompt", "short", "polite", ())
    assert chat.paired.value == pytest.approx(np.mean(values[:, 1] + values[:, 3] - values[:, 0] - values[:, 2]) / 2)


def test_effects_and_interactions_are_those_of_least_squares():
    """In a full grid, coefficients of the model with effects coded -1/2 and +1/2 are the averages over the others."""
    values = draw(np.random.default_rng(2), 120, [0.4, 0.6, 0.7, 0.5])
    means = values.mean(axis=0)
    prompt = np.array([-0.5, -0.5, 0.5, 0.5])
    chat = np.array([-0.5, 0.5, -0.5, 0.5])
    design = np.column_stack([np.ones(4), prompt, chat, prompt * chat])
    _, *slopes = np.linalg.solve(design, means)
    effects = factor_effects(values, GRID)
    (interaction,) = effects.interactions
    found = [*(main.paired.value for main in effects.mains), 2 * interaction.paired.value]
    assert found == pytest.approx(slopes)
    assert (interaction.factors, interaction.levels, interaction.within) == (
        ("prompt", "chat"),
        ("short", "polite"),
        ("mini", "local"),
    )


def test_three_factors_have_every_pair_of_levels_and_one_shared_level():
    effects = factor_effects(draw(np.random.default_rng(3), 60, [0.5] * 12), CUBE)
    assert [(main.factor, main.first, main.second) for main in effects.mains] == [
        *(("a", "0", "1"), ("a", "0", "2"), ("a", "1", "2")),
        *(("b", "0", "1"), ("c", "0", "1")),
    ]
    assert [main.paired.interval.confidence for main in effects.mains] == pytest.approx([1 - 0.05 / 5] * 5)
    assert [one.paired.interval.confidence for one in effects.interactions] == pytest.approx([1 - 0.05 / 7] * 7)


def test_clusters_are_the_units():
    values = draw(np.random.default_rng(4), 30, [0.5, 0.5, 0.7, 0.7])
    clusters = np.repeat(np.arange(30), 4)
    alone = factor_effects(values, GRID)
    copied = factor_effects(np.repeat(values, 4, axis=0), GRID, clusters=clusters)
    assert copied.mains[0].paired.n == 30
    assert copied.mains[0].paired.interval.lower == pytest.approx(alone.mains[0].paired.interval.lower)


def test_missing_cell_is_left_out_of_averages_and_named():
    values = draw(np.random.default_rng(5), 60, [0.5, 0.5, 0.8])
    prompt, chat = factor_effects(values, GRID[:3]).mains
    assert prompt.paired.value == pytest.approx(np.mean(values[:, 2] - values[:, 0]))
    assert prompt.missing == ({"chat": "local"},)
    assert chat.missing == ({"prompt": "polite"},)
    assert factor_effects(values, GRID[:3]).interactions == ()


def test_levels_that_never_meet_have_no_effect():
    corners = [GRID[0], GRID[3]]
    effects = factor_effects(draw(np.random.default_rng(6), 20, [0.5, 0.6]), corners)
    assert [main.paired for main in effects.mains] == [None, None]


def test_factor_of_one_level_has_no_effect():
    effects = factor_effects(np.ones((5, 2)), [{"prompt": "a", "chat": "x"}, {"prompt": "b", "chat": "x"}])
    assert [main.factor for main in effects.mains] == ["prompt"]
    assert factor_effects(np.ones((5, 1)), [{"prompt": "a"}]).mains == ()


def test_effect_without_any_flip_still_has_an_interval():
    (main, _) = factor_effects(np.ones((20, 4)), GRID).mains
    assert main.paired.value == 0
    assert main.paired.interval.lower < -0.1


@pytest.mark.parametrize(
    ("values", "cells"), [(np.ones((4, 3)), GRID), (np.full((4, 4), 1.5), GRID), (np.full((4, 4), np.nan), GRID)]
)
def test_values_that_do_not_fit_are_refused(values, cells):
    with pytest.raises(ValueError, match=r"Every cell has a column|Values lie from 0 to 1"):
        factor_effects(values, cells)


@pytest.mark.parametrize(
    ("cells", "rates"),
    [(GRID, [0.8] * 4), (CUBE, [0.8] * 12), (GRID, [0.5, 0.6, 0.8, 0.9])],
    ids=["2x2", "3x2x2", "additive"],
)
def test_effects_that_are_not_there_are_seldom_claimed(cells, rates):
    generator, draws = np.random.default_rng(7), 200
    truth = factor_effects(np.tile(rates, (2, 1)), cells)
    wrong = {"mains": 0, "interactions": 0}
    for _ in range(draws):
        effects = factor_effects(draw(generator, 80, rates), cells)
        for kind in wrong:
            pairs = zip(getattr(effects, kind), getattr(truth, kind), strict=True)
            intervals = [(found.paired.interval, true.paired.value) for found, true in pairs]
            wrong[kind] += any(not one.lower - 1e-9 <= value <= one.upper + 1e-9 for one, value in intervals)
    assert max(wrong.values()) / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)
