"""Transposes and Gram matrices: what is encoded, and what the manifest says of where it is from."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blockstore.derived import Derived
from blockstore.errors import ManifestError
from blockstore.manifest import Manifest, load_manifest
from encoder import NameTaken, SourceRefused, encode
from encoder.columns import dependent_columns
from encoder.derived import CHUNK_BYTES, derive_source
from encoder.sources import open_source
from polarcodes import make_code
from tests.encoder.decoding import coded_blocks, decoded

CODE = make_code("hadamard", workers=8, data_blocks=6, seed=1)
DTYPES = ["?", "u1", "i4", "<f4", ">f8"]


def decode_matrix(bucket, manifest):
    return decoded(coded_blocks(bucket, manifest), manifest)


def matrix(dtype="<f8", n=57, d=13, order="C"):
    rng = np.random.default_rng(4)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        made = rng.random((n, d)) < 0.4
    elif dtype.kind in "iu":
        made = rng.integers(0, 100, (n, d))
    else:
        made = rng.standard_normal((n, d))
    return np.array(made.astype(dtype), order=order)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stored", [False, True])
def test_a_transpose_is_what_encoding_the_transpose_gives(bucket, tmp_path, dtype, order, stored):
    X = matrix(dtype, order=order)
    path = tmp_path / "X.npy"
    np.save(path, X)
    source = path if stored else X
    plain = encode(source, bucket, "x", CODE)
    back = encode(source, bucket, "xt", CODE, derive="transpose")
    direct = encode(X.T, bucket, "direct", CODE)
    assert back.shape == (13, 57)
    assert back.source_digest == direct.source_digest
    assert back.derived == Derived(
        "transpose", plain.source_digest, 57, (), 0 if order == "C" else None
    )
    assert plain.derived is None
    np.testing.assert_allclose(decode_matrix(bucket, back), X.T, rtol=1e-5, atol=1e-4)
    assert load_manifest(bucket, "xt") == back


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gram_matrix_is_numpys(bucket, dtype, order):
    X = matrix(dtype, order=order)
    plain = encode(X, bucket, "x", CODE)
    gram = encode(X, bucket, "w", CODE, derive="gram")
    assert (gram.shape, gram.source_dtype) == ((13, 13), "<f8")
    assert gram.derived.source_digest == plain.source_digest
    assert (gram.derived.kind, gram.derived.rows) == ("gram", 57)
    W = X.astype(float).T @ X.astype(float)
    np.testing.assert_allclose(decode_matrix(bucket, gram), W, rtol=1e-10, atol=1e-9)


def test_a_gram_matrix_in_panels_over_several_chunks_is_the_same():
    X = matrix(n=3 * CHUNK_BYTES // (8 * 64) + 5, d=64)
    told = []
    whole = derive_source(open_source(X), "gram", 1 << 30, "/tmp")
    panels = derive_source(open_source(X), "gram", 4 * 8 * 64 * 10, "/tmp", told.append)
    with whole, panels:
        np.testing.assert_allclose(panels.read(0, 64, 0, 64), X.T @ X, rtol=1e-10, atol=1e-8)
        np.testing.assert_allclose(panels.read(3, 9, 5, 7), (X.T @ X)[3:9, 5:7], atol=1e-8)
        np.testing.assert_array_equal(
            whole.read(0, 64, 0, 64).round(6), panels.read(0, 64, 0, 64).round(6)
        )
    assert told[-1].phase == "derive" and told[-1].done == told[-1].total == 8 * X.nbytes


def test_columns_that_are_constant_or_follow_from_others_are_counted(bucket):
    X = matrix("f8", n=300, d=9)
    X[:, 2] = 1e6
    X[:, 5] = 3 * X[:, 0] - X[:, 1] + 1e3
    X[:, 7] = 1 - X[:, 8]
    for derive in ("transpose", "gram"):
        found = encode(X, bucket, derive, CODE, derive=derive).derived
        assert found.constant_columns == (2,)
        assert found.dependent_columns == 3
    assert dependent_columns(np.zeros((4, 4))) == 4
    assert dependent_columns(np.diag([1e-8, 1.0, 1e8])) == 0


def test_one_more_encoding_of_the_same_is_taken_as_done_and_other_origins_are_not(bucket):
    X = matrix()
    first = encode(X, bucket, "xt", CODE, derive="transpose")
    assert encode(X, bucket, "xt", CODE, derive="transpose") == first
    with pytest.raises(NameTaken):  # the same content, but nobody could say of what
        encode(X.T, bucket, "xt", CODE)
    with pytest.raises(NameTaken):
        encode(X, bucket, "xt", CODE, derive="gram")


@pytest.mark.parametrize("derive", ["transpose", "gram"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_not_finite_is_refused_and_nothing_is_written(bucket, derive, order):
    X = matrix(order=order)
    X[33, 4] = np.nan
    with pytest.raises(SourceRefused, match=r"finite.*nan"):
        encode(X, bucket, "bad", CODE, derive=derive)
    big = matrix(order=order) * 1e200
    if derive == "gram":
        with pytest.raises(SourceRefused, match="overflow"):
            encode(big, bucket, "bad", CODE, derive=derive)
    with pytest.raises(SourceRefused, match="derive"):
        encode(X, bucket, "bad", CODE, derive="inverse")
    assert list(bucket.list("")) == []


@pytest.mark.parametrize(
    ("field", "value"), [("kind", "rotated"), ("rows", 0), ("constant_columns", [-1])]
)
def test_a_damaged_derivation_is_refused(bucket, field, value):
    record = json.loads(encode(matrix(), bucket, "xt", CODE, derive="transpose").to_json())
    record["derived"][field] = value
    with pytest.raises(ManifestError, match=field):
        Manifest.from_json(record)
