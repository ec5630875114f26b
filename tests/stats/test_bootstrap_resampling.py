from __future__ import annotations

import numpy as np
import pytest

from deemster.stats import drawn_seed, resample_blocks, resample_counts


def loop_counts(units, replicates, seed):
    rng = np.random.default_rng(seed)
    counts = [[0] * replicates for _ in range(units)]
    for replicate in range(replicates):
        for unit in rng.integers(0, units, units).tolist():
            counts[unit][replicate] += 1
    return counts


@pytest.mark.parametrize(("units", "replicates"), [(1, 3), (2, 1), (7, 130), (300, 65)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_resample_counts_equal_loop_over_replicates(units, replicates, dtype):
    counts = resample_counts(units, replicates, 11, dtype=dtype)
    assert counts.dtype == dtype
    assert counts.flags.c_contiguous
    assert counts.tolist() == loop_counts(units, replicates, 11)


@pytest.mark.parametrize("block_bytes", [1, 64, 1000, 10**9])
def test_the_size_of_a_block_changes_no_count(block_bytes):
    blocks = list(resample_blocks(13, 200, 5, dtype=np.float32, block_bytes=block_bytes))
    assert all(block.nbytes <= max(block_bytes, 13 * 4) for block in blocks)
    assert np.array_equal(np.concatenate(blocks, axis=1), resample_counts(13, 200, 5))


def test_every_replicate_draws_as_many_units_as_there_are():
    assert (resample_counts(50, 40, 0).sum(axis=0) == 50).all()


@pytest.mark.parametrize(("units", "replicates"), [(0, 5), (5, 0)])
def test_resampling_zero_units_is_error(units, replicates):
    with pytest.raises(ValueError, match="needs a unit"):
        resample_counts(units, replicates, 0)
    with pytest.raises(ValueError, match="needs a unit"):
        list(resample_blocks(units, replicates, 0))


def test_a_seed_is_drawn_only_where_none_is_given():
    assert drawn_seed(0) == 0
    assert drawn_seed() != drawn_seed()
    with pytest.raises(ValueError, match="from 0 on"):
        drawn_seed(-1)
