from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from blockstore import arrays
from blockstore.bucket import Bucket
from blockstore.errors import ArrayRefused, CorruptObject

DTYPES = ["?", *(f"{k}{w}" for k in "iu" for w in (1, 2, 4, 8)), "f2", "f4", "f8"]
BOTH_ORDERS = [order + name for name in DTYPES for order in "<>" if name[-1] not in "?1"] + [
    "?",
    "i1",
    "u1",
]


def saved(a: np.ndarray[Any, Any], version: tuple[int, int] | None = None) -> bytes:
    """What NumPy itself writes."""
    file = io.BytesIO()
    np.lib.format.write_array(file, a, version=version)
    return file.getvalue()


@given(
    hnp.arrays(
        st.sampled_from(BOTH_ORDERS).map(np.dtype),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=7),
    )
)
def test_encode_then_decode_is_the_identity_and_numpy_agrees(a: np.ndarray[Any, Any]) -> None:
    body = arrays.encode_array(a)
    loaded = np.load(io.BytesIO(body), allow_pickle=False)
    decoded = arrays.decode_array(body, shape=a.shape, dtype=a.dtype.newbyteorder("<"))
    np.testing.assert_array_equal(decoded, a)
    np.testing.assert_array_equal(loaded, a)
    assert decoded.dtype == loaded.dtype


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("name", BOTH_ORDERS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_numpy_saves_is_read(version: tuple[int, int], name: str, order: Any) -> None:
    a = np.arange(12).reshape(3, 4).astype(name, order=order)
    decoded = arrays.decode_array(saved(a, version))
    np.testing.assert_array_equal(decoded, a)
    assert decoded.dtype == a.dtype and decoded.shape == a.shape


def test_strides_do_not_matter() -> None:
    a = np.arange(24.0).reshape(4, 6)[::-2, ::-1]
    np.testing.assert_array_equal(arrays.decode_array(arrays.encode_array(a)), a)
    assert arrays.array_digest(a) == arrays.array_digest(a.copy())
    assert arrays.array_digest(a) == arrays.array_digest(np.asfortranarray(a))
    assert arrays.array_digest(a) == arrays.array_digest(a.astype(">f8"))


def test_digests_tell_dtype_shape_and_values_apart() -> None:
    a = np.zeros((2, 3), "f4")
    others = [a.astype("i4"), a.reshape(3, 2), a.ravel(), a + np.float32(1), a[:1]]
    digests = {arrays.array_digest(b) for b in [a, *others]}
    assert len(digests) == len(others) + 1
    assert all(digest.startswith("sha256:") and len(digest) == 71 for digest in digests)


def test_headers_begin_data_at_a_multiple_of_64() -> None:
    for columns in (1, 10**6, 10**15):
        header = arrays.npy_header("f4", (3, columns))
        assert len(header) % 64 == 0
        assert arrays.parse_header(header).shape == (3, columns)


@pytest.mark.parametrize(
    ("a", "fix"),
    [
        (np.array([[object()]]), "pickle"),
        (np.array([["text"]]), "text"),
        (np.array([[b"text"]]), "text"),
        (np.zeros((2, 2), "c8"), ".real"),
        (np.zeros((2, 2), "c16"), ".real"),
        (np.zeros((2, 2), "M8[s]"), "dates"),
        (np.array([[timedelta(1)]], "m8[s]"), "time"),
        (np.zeros((2, 2), "V4"), "structured"),
        (np.zeros(2, [("a", "f4"), ("b", "i4")]), "structured"),
        (np.zeros((2, 2), np.longdouble), "float64"),
    ],
)
def test_arrays_that_are_not_real_numbers_are_refused_with_the_fix(
    a: np.ndarray[Any, Any], fix: str
) -> None:
    if a.dtype.kind == "f" and a.dtype.itemsize == 8:
        pytest.skip("long double is float64 here")
    with pytest.raises(ArrayRefused, match=fix):
        arrays.encode_array(a)
    file = io.BytesIO()
    np.save(file, a, allow_pickle=True)
    with pytest.raises(ArrayRefused, match=fix):
        arrays.parse_header(file.getvalue())


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin1")


@pytest.mark.parametrize(
    ("head", "rule"),
    [
        (b"", "truncated"),
        (b"\x93NUM", "truncated"),
        (b"hello, world", "not an .npy"),
        (b"PK\x03\x04" + bytes(40), "npz"),
        (b"\x80\x04\x95" + bytes(40), "pickle"),
        (b"\x93NUMPY\x04\x00" + bytes(40), "version 4.0"),
        (b"\x93NUMPY\x01\x00\x76\x00{'descr'", "truncated"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + bytes(40), "at most"),
        (header("{'descr': '<f4'}"), "exactly"),
        (header("not a dict"), "read"),
        (header("[" * 10_000), "read"),
        (header("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,), }"), "fortran_order"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': [1], }"), "shape"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "shape"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (True,), }"), "shape"),
        (header("{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,), }"), "dtype"),
        (header("{'descr': 3, 'fortran_order': False, 'shape': (1,), }"), "dtype"),
        (header("{'descr': '<f4', 'fortran_order': f(), 'shape': (1,), }"), "read"),
    ],
)
def test_headers_that_are_wrong_are_refused_with_the_rule(head: bytes, rule: str) -> None:
    with pytest.raises(ArrayRefused, match=rule):
        arrays.parse_header(head)


def test_sizes_that_python_2_wrote_are_read() -> None:
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (10L, 5L), }"
    assert arrays.parse_header(header(text)).shape == (10, 5)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_array_or_a_typed_refusal(body: bytes) -> None:
    for head in (body, b"\x93NUMPY\x01\x00" + body):
        with pytest.raises((ArrayRefused, CorruptObject)):
            arrays.decode_array(head)


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b[:130]])
def test_a_body_of_the_wrong_length_is_corrupt(change: Any) -> None:
    body = arrays.encode_array(np.zeros((3, 4)))
    with pytest.raises(CorruptObject, match="96"):
        arrays.decode_array(change(body))


def test_a_header_that_claims_more_memory_than_there_is_allocates_nothing() -> None:
    body = arrays.npy_header("f8", (2**40, 2**20)) + bytes(64)
    with pytest.raises(CorruptObject, match="needs"):
        arrays.decode_array(body)


def test_shape_and_dtype_are_checked_and_the_object_is_named(bucket: Bucket) -> None:
    a = np.arange(6, dtype="f4").reshape(2, 3)
    assert arrays.put_array(bucket, "a.npy", a, metadata={"k": "v"})
    assert not arrays.put_array(bucket, "a.npy", a + 1, if_none_match=True)
    np.testing.assert_array_equal(arrays.get_array(bucket, "a.npy", shape=(2, 3), dtype="f4"), a)
    with pytest.raises(CorruptObject, match=r"s3://blocks/a.npy.*\(3, 2\)"):
        arrays.get_array(bucket, "a.npy", shape=(3, 2))
    with pytest.raises(CorruptObject, match=r"s3://blocks/a.npy.*float64"):
        arrays.get_array(bucket, "a.npy", dtype="f8")
    bucket.put("text", b"hello, world")
    with pytest.raises(ArrayRefused, match="s3://blocks/text"):
        arrays.get_array(bucket, "text")
