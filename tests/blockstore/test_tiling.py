from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockstore.errors import ManifestError
from blockstore.tiling import (
    LEAST_BYTES,
    RESERVE_BYTES,
    TARGET_BYTES,
    Tiling,
    choose_tiling,
    least_memory,
)


@st.composite
def tilings(draw: st.DrawFn) -> Tiling:
    rows, columns = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    return Tiling(
        rows,
        columns,
        draw(st.integers(1, rows)),
        draw(st.integers(1, columns)),
        draw(st.sampled_from("CF")),
    )


@given(tilings())
def test_tiles_partition_the_block(tiling: Tiling) -> None:
    covered = np.zeros((tiling.rows, tiling.columns), int)
    for tile in range(tiling.count):
        span = tiling.span(tile)
        assert span.size == (span.row1 - span.row0) * (span.col1 - span.col0) > 0
        assert span.size * 4 <= tiling.bytes(4)
        covered[span.row0 : span.row1, span.col0 : span.col1] += 1
    assert (covered == 1).all()


@given(tilings())
def test_json_round_trip(tiling: Tiling) -> None:
    assert Tiling.from_json(tiling.to_json()) == tiling


@given(
    st.integers(1, 10**6),
    st.integers(1, 10**7),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([1, 2, 64, 1024, 4096]),
    st.integers(200 << 20, 8 << 30),
    st.booleans(),
    st.sampled_from("CF"),
)
def test_tiles_are_as_large_as_allowed_and_no_larger(
    rows: int, columns: int, itemsize: int, workers: int, memory: int, spool: bool, order: str
) -> None:
    tiling = choose_tiling(rows, columns, itemsize, workers, memory, spool, order=order)
    size = tiling.bytes(itemsize)
    assert size <= TARGET_BYTES
    if spool:
        # At least a third of what is wanted: parts are equal and made of whole lines.
        wanted = min(TARGET_BYTES, max(LEAST_BYTES, (memory - RESERVE_BYTES) // 16))
        assert size >= min(rows * columns * itemsize, wanted // 3)
    else:
        assert workers * size <= memory
    if tiling.count > 1 and order == "C" and columns * itemsize <= size:
        assert tiling.tile_columns == columns
    if tiling.count > 1 and order == "F" and rows * itemsize <= size:
        assert tiling.tile_rows == rows


def test_tiles_of_8_mb_at_the_default_memory() -> None:
    tiling = choose_tiling(5000, 12288, 4, 64)
    assert TARGET_BYTES // 2 < tiling.bytes(4) <= TARGET_BYTES
    assert tiling.tile_columns == 12288


def test_a_small_block_is_one_tile() -> None:
    assert choose_tiling(3, 5, 8, 64).count == 1
    assert choose_tiling(1, 1, 2, 4096).count == 1


@pytest.mark.parametrize("workers", [1, 64, 1024])
def test_too_little_memory_is_refused_with_the_number_needed(workers: int) -> None:
    needed = least_memory(workers)
    choose_tiling(1000, 1000, 4, workers, needed)
    choose_tiling(1000, 1000, 4, workers, needed, spool=False)
    with pytest.raises(ValueError, match=f"{needed:,}"):
        choose_tiling(1000, 1000, 4, workers, needed - 1)


@pytest.mark.parametrize(
    "numbers", [(0, 1, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2), (1, 1, 1, 1, "K"), (1.0, 1, 1, 1)]
)
def test_impossible_tilings_are_refused(numbers: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError):
        Tiling(*numbers)


def test_a_tile_that_is_not_there_is_refused() -> None:
    with pytest.raises(IndexError, match="4"):
        Tiling(4, 4, 2, 2).span(4)


@pytest.mark.parametrize(
    ("field", "value"),
    [("rows", 0), ("tile_rows", 9), ("columns", "4"), ("order", 3), ("order", "K"), ("rows", None)],
)
def test_a_wrong_tiling_document_is_a_manifest_error(field: str, value: object) -> None:
    document = Tiling(4, 4, 2, 2).to_json() | {field: value}
    with pytest.raises(ManifestError):
        Tiling.from_json(document)
    del document[field]
    with pytest.raises(ManifestError, match=field):
        Tiling.from_json(document)
