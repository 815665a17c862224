from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest

from polarlambda.vectors import read_vector

MATRIX = SimpleNamespace(name="photos", columns=5)


def read(x):
    return read_vector(x, MATRIX)


@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 3)])
@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">f8", ">i4"]
)
def test_every_real_dtype_and_shape_is_accepted(shape, dtype):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    got = read(x)
    assert got.shape == shape
    assert got.dtype == np.dtype(dtype).newbyteorder("=")
    assert got.dtype.isnative
    assert got.flags.c_contiguous
    np.testing.assert_array_equal(got, x)


def test_lists_strides_and_fortran_order_are_accepted():
    x = np.arange(30.0).reshape(10, 3)
    np.testing.assert_array_equal(read([1, 2, 3, 4, 5]), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(read(x[::-2]), x[::-2])
    np.testing.assert_array_equal(read(np.asfortranarray(x[:5])), x[:5])


def test_a_file_is_read(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(5, dtype=">f4"))
    np.testing.assert_array_equal(read(tmp_path / "x.npy"), np.arange(5))
    np.testing.assert_array_equal(read(str(tmp_path / "x.npy")), np.arange(5))


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.ma.masked_array(np.zeros(5), [0, 1, 0, 0, 0]), r"use x\.filled\(value\)"),
        (np.zeros(4), r"shape \(4,\), but matrix 'photos' has 5 columns"),
        (np.zeros((1, 5)), r"x must have shape \(5,\) or \(5, k\)"),
        (np.zeros((5, 0)), r"shape \(5, 0\)"),
        (np.zeros((5, 1, 1)), r"shape \(5, 1, 1\)"),
        (np.float64(3), r"shape \(\)"),
        ([], r"shape \(0,\)"),
        (np.zeros(5, complex), "complex"),
        (np.array([1, 2, 3, 4, None]), "object"),
        ([2**70] * 5, "object"),
        (["a"] * 5, "text"),
        (np.zeros(5, "M8[s]"), "dates"),
        (np.zeros(5, np.longdouble), "extended precision"),
        (np.zeros(5, [("a", "f4")]), "structured"),
        ([[1, 2], [3], [4], [5], [6]], "rectangular"),
        (np.array([1, 2, np.nan, np.inf, 5]), "row 2"),
        (np.array([[1, 2], [3, -np.inf], [1, 1], [1, 1], [1, 1]]), "row 1"),
    ],
)
def test_what_has_no_product_is_refused_with_the_reason(x, words):
    with pytest.raises(ValueError, match=words) as refusal:
        read(x)
    assert "\n" not in str(refusal.value)


def npy(array, **options):
    body = io.BytesIO()
    np.save(body, array, **options)
    return body.getvalue()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (npy(np.zeros(5))[:-3], "40 bytes of data"),
        (npy(np.zeros(5))[:50], "truncated"),
        (npy(np.zeros(5)) + b"x", "40 bytes of data"),
        (npy(np.array([None] * 5), allow_pickle=True), "pickle"),
        (b"PK\x03\x04 and so on", "npz"),
        (b"1,2,3,4,5\n", "not an .npy file"),
        (b"", "truncated"),
    ],
)
def test_a_file_that_is_not_a_whole_array_is_refused(tmp_path, body, words):
    (tmp_path / "x.npy").write_bytes(body)
    with pytest.raises(ValueError, match=words) as refusal:
        read(tmp_path / "x.npy")
    assert str(tmp_path / "x.npy") in str(refusal.value)


def test_a_file_that_is_not_there_is_bad_input(tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        read(tmp_path / "none.npy")
