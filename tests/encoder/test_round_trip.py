"""What is stored is the code's product with the matrix, whatever form the matrix comes in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from blockstore.bucket import Bucket
from blockstore.manifest import load_manifest
from encoder import EncodeProgress, encode
from polarcodes import make_code
from tests.encoder.decoding import coded_blocks, decoded, oracle

CODE = make_code("polar", workers=8, data_blocks=5, seed=3)
DTYPES = ["?", "i1", "u1", *(o + k + w for k in "iu" for w in "248" for o in "<>")]
DTYPES += [o + w for w in ("f2", "f4", "f8") for o in "<>"]


def values(dtype: str, shape: tuple[int, int]) -> NDArray[Any]:
    rng = np.random.default_rng(7)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(kind)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        shift = 4 if kind.itemsize == 8 else 0  # so that 5 of the largest still fit int64
        a = rng.integers(info.min >> shift, info.max >> shift, shape, dtype=kind.newbyteorder("="))
        a.flat[0], a.flat[-1] = info.min >> shift, info.max >> shift
        return a.astype(kind)
    return (rng.normal(size=shape) * (1e4 if kind.itemsize == 2 else 1)).astype(kind)


def check(bucket: Bucket, matrix: NDArray[Any], source: Any, **options: Any) -> NDArray[Any]:
    manifest = encode(source, bucket, "m", CODE, replace=True, **options)
    assert manifest == load_manifest(bucket, "m")
    assert manifest.shape == matrix.shape
    blocks = coded_blocks(bucket, manifest)
    expected = oracle(matrix, manifest)
    if blocks.dtype.kind == "i":
        assert (blocks.astype(object) == expected).all()
    else:
        scale = np.abs(matrix.astype("f8")).max() or 1.0
        tolerance = 30 * float(np.finfo(blocks.dtype).eps) * scale
        np.testing.assert_allclose(blocks, expected.astype("f8"), rtol=0, atol=tolerance)
        np.testing.assert_allclose(
            decoded(blocks, manifest), matrix.astype("f8"), rtol=0, atol=tolerance
        )
    return blocks


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_order_from_a_file(
    bucket: Bucket, tmp_path: Path, dtype: str, order: Any
) -> None:
    matrix = values(dtype, (13, 6)).astype(dtype, order=order)
    path = tmp_path / "a.npy"
    np.save(path, matrix)
    check(bucket, matrix, path)


@pytest.mark.parametrize(("workers", "data_blocks"), [(6, 4), (12, 8), (13, 9)])
@pytest.mark.parametrize("dtype", ["u1", "<f4", "<f8"])
def test_any_number_of_workers(bucket: Bucket, workers: int, data_blocks: int, dtype: str) -> None:
    matrix = values(dtype, (29, 6))
    code = make_code("polar", workers=workers, data_blocks=data_blocks, seed=3)
    manifest = encode(matrix, bucket, "m", code)
    blocks = coded_blocks(bucket, manifest)
    tolerance = 1e-5 if blocks.dtype == np.float32 else 1e-12
    close = tolerance * np.abs(matrix.astype("f8")).max()
    np.testing.assert_allclose(decoded(blocks, manifest), matrix.astype("f8"), atol=close)


@pytest.mark.parametrize(
    ("dtype", "coded"),
    [("u1", "i2"), ("i1", "i2"), ("?", "i2"), ("i2", "i4"), ("u4", "i8"), ("f2", "f4")],
)
def test_blocks_are_stored_in_the_smallest_dtype_that_holds_the_sums(
    bucket: Bucket, dtype: str, coded: str
) -> None:
    matrix = values(dtype, (13, 6))
    assert check(bucket, matrix, matrix).dtype == np.dtype(coded)


def test_integers_beyond_int64_are_rounded_and_do_not_wrap(bucket: Bucket) -> None:
    matrix = np.full((10, 3), np.iinfo("u8").max, "u8")
    blocks = coded_blocks(bucket, encode(matrix, bucket, "m", CODE))
    assert blocks.dtype == np.float64
    expected = CODE.generator() @ np.full(5, 2.0**64)
    np.testing.assert_allclose(blocks[:, 0, 0], expected, rtol=1e-14)


def test_float16_does_not_overflow(bucket: Bucket) -> None:
    matrix = np.full((10, 3), 65504, "f2")
    assert np.abs(check(bucket, matrix, matrix)).max() > 65504


def test_float32_near_its_limit_is_widened(bucket: Bucket) -> None:
    matrix = np.full((10, 3), 3e38, "f4")
    assert check(bucket, matrix, matrix).dtype == np.float64


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_header_version(bucket: Bucket, tmp_path: Path, version: tuple[int, int]) -> None:
    matrix = values("<f4", (11, 4))
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array(file, matrix, version=version)
    check(bucket, matrix, str(tmp_path / "a.npy"))


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (3, 4), (4, 4), (5, 4), (6, 4), (10, 4)])
def test_one_row_one_column_and_fewer_rows_than_blocks(
    bucket: Bucket, shape: tuple[int, int]
) -> None:
    matrix = values("<f4", shape)
    check(bucket, matrix, matrix)
    check(bucket, matrix, np.asfortranarray(matrix))


def test_views_with_any_strides(bucket: Bucket) -> None:
    base = values("<i2", (40, 30))
    for view in (base[::-1, ::-1], base[::3, 4:20:5], base.T, base.T[::-2], base[5:6]):
        check(bucket, view, view)
    broadcast = np.broadcast_to(base[0], (9, 30))
    check(bucket, broadcast, broadcast)


def test_from_s3(bucket: Bucket, tmp_path: Path) -> None:
    for order in ("C", "F"):
        matrix = values("<f4", (23, 9)).astype("f4", order=order)
        np.save(tmp_path / "a.npy", matrix)
        bucket.put("inputs/a.npy", (tmp_path / "a.npy").read_bytes())
        check(bucket, matrix, "s3://blocks/inputs/a.npy")


def test_a_file_and_its_array_are_the_same_source(bucket: Bucket, tmp_path: Path) -> None:
    for order in ("C", "F"):
        matrix = values("<f4", (23, 9)).astype("f4", order=order)
        np.save(tmp_path / f"{order}.npy", matrix)
        manifests = [
            encode(source, bucket, f"m{i}{order}", CODE)
            for i, source in enumerate((matrix, tmp_path / f"{order}.npy", matrix.astype(">f4")))
        ]
        assert len({m.source_digest for m in manifests}) == 1
        assert len({m.encoding for m in manifests}) == 1


@pytest.mark.parametrize("code", [CODE, make_code("uncoded", workers=6, data_blocks=6)])
def test_every_code(bucket: Bucket, code: Any) -> None:
    matrix = values("<f4", (23, 9))
    manifest = encode(matrix, bucket, "m", code)
    blocks = coded_blocks(bucket, manifest)
    np.testing.assert_allclose(blocks, oracle(matrix, manifest), atol=1e-5)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 20),
    order=st.sampled_from("CF"),
    target=st.integers(8, 400),
    chunk=st.integers(1, 60),
    piece=st.integers(8, 300),
    spooled=st.booleans(),
    parallel=st.sampled_from([1, 3]),
)
def test_any_tiling_chunk_and_read_size_gives_the_same_blocks(
    bucket: Bucket,
    tmp_path_factory: pytest.TempPathFactory,
    rows: int,
    columns: int,
    order: Any,
    target: int,
    chunk: int,
    piece: int,
    spooled: bool,
    parallel: int,
) -> None:
    from dataclasses import replace

    from blockstore.tiling import choose_tiling
    from encoder.layout import Layout
    from encoder.sources import open_source
    from encoder.tiles import TileWriter, missing_tiles

    folder = tmp_path_factory.mktemp("spool")
    matrix = values("<i2", (rows, columns)).astype("<i2", order=order)
    np.save(folder / "a.npy", matrix)
    manifest = encode(matrix, bucket, "m", CODE, replace=True)
    tiling = choose_tiling(
        manifest.block_rows, columns, 4, CODE.workers, order=order, target=target
    )
    manifest = replace(manifest, tiling=tiling, encoding=f"{target:016x}")
    bucket.delete_prefix(f"matrices/m/coded/{manifest.encoding}/")
    tile = tiling.bytes(1)
    small = min(chunk, tile)
    group = min(3 * small, tile) if spooled else tile
    layout = Layout(small, group, 2, 2, spooled, 2, piece, 0)
    with open_source(folder / "a.npy") as source:
        source.parallel_reads = parallel
        with TileWriter(bucket, source, CODE, manifest, layout, str(folder)) as writer:
            writer.write(missing_tiles(bucket, manifest))
    assert missing_tiles(bucket, manifest) == {}
    blocks = coded_blocks(bucket, manifest)
    assert (blocks.astype(object) == oracle(matrix, manifest)).all()
    assert [path.name for path in folder.iterdir()] == ["a.npy"]


def test_progress_counts_every_byte_of_every_phase(bucket: Bucket) -> None:
    seen: list[EncodeProgress] = []
    encode(values("<f4", (23, 9)), bucket, "m", CODE, progress=seen.append)
    assert list(dict.fromkeys(p.phase for p in seen)) == ["scan", "upload", "encode"]
    for phase, total in (("scan", 23 * 9 * 4), ("encode", 8 * 45 * 4), ("upload", 8 * 45 * 4)):
        counts = [p for p in seen if p.phase == phase]
        assert [p.done for p in counts] == sorted(p.done for p in counts)
        assert (counts[-1].done, counts[-1].total) == (total, total)
