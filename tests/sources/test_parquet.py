"""Parquet files, written by pandas and pyarrow."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blockstore.bucket import Bucket
from encoder import MemoryTooSmall, SourceRefused
from tests.sources.encoded import encode_path

RNG = np.random.default_rng(0)
ROWS = 1000
FRAME = pd.DataFrame(
    {
        "small": RNG.integers(-100, 100, ROWS).astype("i1"),
        "large": RNG.integers(0, 1 << 40, ROWS),
        "half": RNG.integers(0, 100, ROWS).astype("f2"),
        "single": RNG.standard_normal(ROWS).astype("f4"),
        "flag": RNG.integers(0, 2, ROWS).astype(bool),
        "name": [f"row {i}" for i in range(ROWS)],
    }
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Row groups of 300 rows, so that the last one is smaller."""
    FRAME.to_parquet(tmp_path / "a.parquet", row_group_size=300)
    return tmp_path / "a.parquet"


@pytest.mark.parametrize(
    ("columns", "dtype"),
    [
        (("single",), "f4"),
        (("flag", "small"), "i1"),
        (("flag",), "?"),
        (("small", "large"), "i8"),
        (("single", "half", "small"), "f4"),
        (("large", "single", "flag", "half"), "f8"),
    ],
)
def test_columns_in_the_order_asked_for(
    bucket: Bucket, path: Path, columns: tuple[str, ...], dtype: str
) -> None:
    manifest, matrix = encode_path(bucket, path, columns=columns)
    assert np.dtype(manifest.source_dtype) == np.dtype(dtype)
    expected = FRAME[list(columns)].to_numpy(np.dtype(dtype))
    exact = np.dtype(dtype).kind != "f"
    np.testing.assert_allclose(matrix, expected, rtol=0 if exact else 1e-5, atol=0 if exact else 1)


def test_all_columns_if_all_are_numbers(bucket: Bucket, path: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match=r"'name' is .*string.*--columns small,large,half"):
        encode_path(bucket, path)
    FRAME[["small", "flag"]].to_parquet(tmp_path / "b.parquet")
    _, matrix = encode_path(bucket, tmp_path / "b.parquet")
    np.testing.assert_array_equal(matrix, FRAME[["small", "flag"]].to_numpy("i8"))


def test_a_folder_of_files_in_the_order_of_their_names(bucket: Bucket, tmp_path: Path) -> None:
    for name, part in (("part-1.parquet", FRAME[600:]), ("part-0.parquet", FRAME[:600])):
        part[["small", "flag"]].to_parquet(tmp_path / name, index=False)
    (tmp_path / "_SUCCESS").write_text("")
    _, matrix = encode_path(bucket, tmp_path)
    np.testing.assert_array_equal(matrix, FRAME[["small", "flag"]].to_numpy("i8"))
    FRAME[["flag", "small"]].to_parquet(tmp_path / "part-2.parquet", index=False)
    with pytest.raises(SourceRefused, match=r"part-2.*first file"):
        encode_path(bucket, tmp_path)


def test_null_is_refused_with_column_and_row(bucket: Bucket, tmp_path: Path) -> None:
    values: list[int | None] = list(range(500))
    values[321] = None
    table = pa.table({"x": pa.array(range(500)), "y": pa.array(values, pa.int32())})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    with pytest.raises(SourceRefused, match=r"column 'y' has no value \(null\) in row 321"):
        encode_path(bucket, tmp_path / "a.parquet")
    _, matrix = encode_path(bucket, tmp_path / "a.parquet", columns=("x",))
    assert matrix[-1, 0] == 499


def test_integers_that_would_be_rounded_are_refused(bucket: Bucket, tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [1, (1 << 53) + 1], "value": [0.5, 1.5]})
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(SourceRefused, match=r"'id' holds integers beyond 2\^53 \(row 1\)"):
        encode_path(bucket, tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("column", "rule"),
    [
        ([datetime.datetime(2020, 1, 1)], "timestamp"),
        ([[1.0, 2.0]], "list"),
        (["a"], "string"),
        ([None], "null"),
    ],
)
def test_columns_that_are_not_numbers(
    bucket: Bucket, tmp_path: Path, column: list[Any], rule: str
) -> None:
    pq.write_table(pa.table({"c": column}), tmp_path / "a.parquet")
    with pytest.raises(SourceRefused, match=rule):
        encode_path(bucket, tmp_path / "a.parquet")


def test_files_and_columns_that_are_not_there(bucket: Bucket, path: Path) -> None:
    with pytest.raises(SourceRefused, match=r"no column 'nope'.*small"):
        encode_path(bucket, path, columns=("nope",))
    with pytest.raises(SourceRefused, match="differ"):
        encode_path(bucket, path, columns=("small", "small"))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceRefused, match="Parquet"):
        encode_path(bucket, path)
    with pytest.raises(SourceRefused, match="Parquet"):
        encode_path(bucket, path.with_name("none.parquet"))


@pytest.mark.parametrize(
    ("url", "options", "command"),
    [
        ("inputs/a.parquet", {}, "aws s3 cp s3://blocks/inputs/a.parquet ."),
        ("inputs/table", {"columns": ("small",)}, "aws s3 sync s3://blocks/inputs/table/ FOLDER/"),
        ("inputs/table", {}, "aws s3 sync s3://blocks/inputs/table/ FOLDER/"),
        ("inputs/table/", {}, "aws s3 sync s3://blocks/inputs/table/ FOLDER/"),
        ("t/x-{000..146}.tar", {"images": True, "size": 8}, "aws s3 sync s3://blocks/t/ FOLDER/"),
        ("t/x-000.tar", {}, "aws s3 cp s3://blocks/t/x-000.tar ."),
    ],
)
def test_what_is_read_from_disk_only_is_refused_in_s3_with_the_command_that_copies_it(
    bucket: Bucket, url: str, options: dict[str, Any], command: str
) -> None:
    bucket.put("inputs/table/part-0.parquet", b"PAR1")
    with pytest.raises(SourceRefused) as refusal:
        encode_path(bucket, f"s3://blocks/{url}", **options)
    assert f"({command}) and encode the copy here (--on local)" in str(refusal.value)


def test_columns_whose_pages_do_not_fit_the_memory_are_refused_with_the_number(
    bucket: Bucket, tmp_path: Path
) -> None:
    frame = pd.DataFrame(RNG.standard_normal((100_000, 12))).rename(columns=str)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    with pytest.raises(MemoryTooSmall, match="at least"):
        encode_path(bucket, tmp_path / "a.parquet", memory=230 << 20)
    assert list(bucket.list("")) == []


def test_nan_is_found_by_the_first_pass(bucket: Bucket, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5], "y": [1.0, 2.0, np.inf]})
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(SourceRefused, match="row 2 has inf in column 1"):
        encode_path(bucket, tmp_path / "a.parquet")
    assert list(bucket.list("")) == []
