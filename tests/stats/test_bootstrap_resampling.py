from __future__ import annotations

import numpy as np
import pytest

from deemster.stats import bayesian_weight_blocks, drawn_seed, resample_blocks
from deemster.stats.bootstrap_resampling import imagined_weights


def loop_counts(units, replicates, seed):
    rng = np.random.default_rng(seed)
    counts = [[0] * replicates for _ in range(units)]
    for replicate in range(replicates):
        for unit in rng.integers(0, units, units).tolist():
            counts[unit][replicate] += 1
    return counts


@pytest.mark.parametrize(("units", "replicates"), [(1, 3), (2, 1), (7, 130), (300, 65)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_counts_equal_loop_over_replicates(units, replicates, dtype):
    (counts,) = resample_blocks(units, replicates, 11, dtype=dtype)
    assert counts.dtype == dtype
    assert counts.flags.c_contiguous
    assert counts.tolist() == loop_counts(units, replicates, 11)


@pytest.mark.parametrize("block_bytes", [1, 64, 1000, 10**9])
def test_size_of_a_block_changes_no_count(block_bytes):
    blocks = list(resample_blocks(13, 200, 5, dtype=np.float32, block_bytes=block_bytes))
    assert all(block.nbytes <= max(block_bytes, 13 * 4) for block in blocks)
    assert np.concatenate(blocks, axis=1).tolist() == loop_counts(13, 200, 5)


def test_every_replicate_draws_as_many_units_as_there_are():
    (counts,) = resample_blocks(50, 40, 0)
    assert (counts.sum(axis=0) == 50).all()


@pytest.mark.parametrize(("units", "replicates"), [(0, 5), (5, 0)])
def test_resampling_zero_units_is_error(units, replicates):
    with pytest.raises(ValueError, match="needs a unit"):
        list(resample_blocks(units, replicates, 0))


def test_seed_is_drawn_only_where_none_is_given():
    assert drawn_seed(0) == 0
    assert drawn_seed() != drawn_seed()
    with pytest.raises(ValueError, match="from 0 on"):
        drawn_seed(-1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block_bytes", [1, 64, 1000])
def test_size_of_a_block_changes_no_weight(block_bytes, dtype):
    (whole,) = bayesian_weight_blocks(13, 200, 5, dtype=dtype)
    blocks = list(bayesian_weight_blocks(13, 200, 5, dtype=dtype, block_bytes=block_bytes))
    assert all(block.nbytes <= max(block_bytes, 13 * whole.itemsize) for block in blocks)
    assert np.array_equal(np.concatenate(blocks, axis=1), whole)


def test_weights_are_flat_dirichlet_draws_times_the_number_of_units():
    (weights,) = bayesian_weight_blocks(5, 20_000, 3)
    assert weights.flags.c_contiguous
    assert weights.min() > 0
    assert weights.sum(axis=0) == pytest.approx(5)
    # A part of a flat Dirichlet draw of five parts has the variance 1/5·4/5/6.
    assert weights.mean(axis=1) == pytest.approx(1, abs=0.03)
    assert (weights / 5).var(axis=1) == pytest.approx(4 / 150, rel=0.05)


def test_imagined_weights_have_their_parameter_as_mean_and_come_replicate_by_replicate():
    shapes = np.array([0.5, 0.25, 0.0625])
    whole = imagined_weights(shapes, 20_000, np.random.default_rng(2))
    assert whole.mean(axis=1) == pytest.approx(shapes, rel=0.05)
    assert whole.var(axis=1) == pytest.approx(shapes, rel=0.1)
    rng = np.random.default_rng(2)
    parts = [imagined_weights(shapes, size, rng) for size in (1, 99, 19_900)]
    assert np.array_equal(np.concatenate(parts, axis=1), whole)


@pytest.mark.parametrize(("units", "replicates"), [(0, 5), (5, 0)])
def test_weights_of_zero_units_are_error(units, replicates):
    with pytest.raises(ValueError, match="needs a unit"):
        list(bayesian_weight_blocks(units, replicates, 0))
