import numpy as np
import pytest
from scipy.sparse import csr_array

from deemster.stats.sparse_rows import SparseRows


@pytest.fixture
def drawn():
    return np.random.default_rng(7)


def numbers_at_places(drawn, *, size, shape):
    rows = np.minimum(drawn.geometric(0.05, size), shape[0]) - 1
    return rows, drawn.integers(0, shape[1], size)


@pytest.mark.parametrize("replicates", [1, 2, 511, 513, 1030])
@pytest.mark.parametrize("weight_type", [np.float32, np.float64])
def test_product_has_scipys_digits_and_type(drawn, replicates, weight_type):
    shape = (80, 300)
    rows, columns = numbers_at_places(drawn, size=4000, shape=shape)
    weights = drawn.standard_gamma(1.0, (shape[1], replicates)).astype(weight_type)

    counts = np.ones(4000, dtype=np.uint16)
    numbers = np.where(drawn.random(shape) < 0.2, drawn.standard_normal(shape), 0)

    for matrix, expected in (
        (SparseRows(rows, columns, counts, shape=shape), csr_array((counts, (rows, columns)), shape=shape)),
        (SparseRows.of(numbers), csr_array(numbers)),
    ):
        product = matrix @ weights
        assert product.dtype == (expected @ weights).dtype
        assert np.array_equal(product, expected @ weights)


def test_digits_do_not_depend_on_the_width_of_a_block(drawn):
    dense = np.where(drawn.random((20, 200)) < 0.5, drawn.standard_normal((20, 200)), 0)
    weights = drawn.standard_gamma(1.0, (200, 40))
    matrix = SparseRows.of(dense)

    one_by_one = [matrix @ weights[:, [replicate]] for replicate in range(40)]

    assert np.array_equal(matrix @ weights, np.concatenate(one_by_one, axis=1))


def test_sums_and_columns_are_those_of_the_dense_matrix(drawn):
    shape = (30, 50)
    rows, columns = numbers_at_places(drawn, size=900, shape=shape)
    matrix = SparseRows(rows, columns, np.ones(900, dtype=np.uint16), shape=shape)
    dense = np.zeros(shape, dtype=np.uint16)
    np.add.at(dense, (rows, columns), 1)

    assert np.array_equal(matrix.row_sums(), dense.sum(axis=1, keepdims=True))
    assert np.array_equal(matrix.dense_columns(10, 35), dense[:, 10:35])


def test_matrix_without_numbers_gives_zeros():
    assert np.array_equal(SparseRows.of(np.zeros((2, 3))) @ np.ones((3, 4)), np.zeros((2, 4)))
    assert (SparseRows.of(np.zeros((0, 3))) @ np.ones((3, 4))).shape == (0, 4)
