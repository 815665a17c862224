from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarcodes.transform import (
    butterflies,
    hadamard,
    kronecker_products,
    transform_inplace,
    transform_rows,
)
from tests.polarcodes.oracles import sylvester

ORDERS = [1 << level for level in range(12)]


@pytest.mark.parametrize("order", ORDERS[:8])
def test_the_factor_is_the_sylvester_matrix(order):
    assert np.array_equal(hadamard(order), sylvester(order))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kernel", [butterflies, kronecker_products])
@pytest.mark.parametrize("columns", [1, 3, 40])
def test_both_kernels_equal_the_dense_product(order, kernel, columns):
    values = np.random.default_rng(order).standard_normal((order, columns))
    dense = hadamard(order) @ values
    result = kernel(values.copy(), np.empty_like(values))
    np.testing.assert_allclose(result, dense, atol=1e-12 * order)


@pytest.mark.parametrize("columns", [0, 1, 15, 16, 17, 1024, 2500])
@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64"])
def test_any_number_of_columns_goes_through_the_chunks(columns, dtype):
    values = np.random.default_rng(1).integers(-9, 9, (64, columns)).astype(dtype)
    expected = (hadamard(64) @ values.astype(float)).astype(dtype)
    transform_inplace(values)
    assert np.array_equal(values, expected)


@given(st.integers(0, 8), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_twice_is_n_times_the_identity(level, columns, seed):
    order = 1 << level
    values = np.random.default_rng(seed).integers(-1000, 1000, (order, columns))
    twice = values.copy()
    transform_inplace(twice)
    transform_inplace(twice)
    assert np.array_equal(twice, order * values)


def test_placing_picking_and_scaling_rows():
    rng = np.random.default_rng(2)
    source = rng.standard_normal((5, 33))
    at, take = np.array([1, 4, 9, 12, 15]), np.array([3, 0, 8])
    before, after = rng.standard_normal(5), rng.standard_normal(3)
    out = np.empty((3, 33))
    kept = source.copy()
    transform_rows(source, out, 16, at=at, take=take, before=before, after=after)
    dense = after[:, None] * (sylvester(16)[np.ix_(take, at)] @ (before[:, None] * source))
    np.testing.assert_allclose(out, dense, atol=1e-12)
    assert np.array_equal(source, kept)


def test_the_transform_leaves_numpys_settings_alone():
    before = np.getbufsize()
    transform_inplace(np.ones((8, 3)))
    assert np.getbufsize() == before


def test_butterflies_give_a_column_the_same_bits_whatever_its_neighbours():
    values = np.random.default_rng(3).standard_normal((256, 70)).astype(np.float32)
    together = butterflies(values.copy(), np.empty_like(values)).copy()
    for column in range(70):
        alone = values[:, column : column + 1].copy()
        assert np.array_equal(
            butterflies(alone, np.empty_like(alone)), together[:, column : column + 1]
        )
