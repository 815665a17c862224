"""Numeric columns of Parquet files as a source: one file, or all of a folder."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder.errors import SourceRefused
from encoder.progress import Counter
from encoder.sources.converted import ConvertedSource, RowSpool, missing_library, too_small
from encoder.sources.source import check_matrix

SUFFIXES = (".parquet", ".pq")
ARROW_BYTES = 80 << 20  # the library and its allocator
BUFFER_BYTES = 64 << 10
# A column while it is read: a page of 1 MB compressed and decompressed, its dictionary, its values.
COLUMN_BYTES = 5 << 20
COPIES = 3  # of a column of a row group that is smaller than that
EXACT = 1 << 53  # integers beyond are not all floats
MOST_ROWS = 1 << 13


class ParquetSource(ConvertedSource):
    """The columns `columns` of the files, in this order, as the least dtype that holds them all.

    Row groups are streamed. Raises `SourceRefused` for columns that are not numbers, for null
    values, and for integers that a float column beside them would round, naming the column.
    """

    def __init__(self, path: str, columns: tuple[str, ...]) -> None:
        try:
            import pyarrow.parquet as pq
        except ImportError as exc:
            raise SourceRefused(missing_library(path, "pyarrow", "parquet")) from exc
        from pyarrow import ArrowException

        self.description = os.path.basename(os.path.normpath(path))
        self.library_bytes = ARROW_BYTES
        self._files = []
        paths = parquet_paths(path)
        try:
            for each in paths:
                self._files.append(pq.ParquetFile(each, buffer_size=BUFFER_BYTES, pre_buffer=False))
        except (ArrowException, OSError) as exc:
            raise SourceRefused(f"{each}: cannot be read as a Parquet file: {exc}") from exc
        names = self._files[0].schema_arrow.names
        self._columns = columns or tuple(names)
        for each, file in zip(paths, self._files, strict=True):
            self._check_columns(each, file.schema_arrow, bool(columns))
        first = self._files[0].schema_arrow
        kinds = [np.dtype(first.field(name).type.to_pandas_dtype()) for name in self._columns]
        self.dtype = np.result_type(*kinds).newbyteorder("<")
        rows = sum(file.metadata.num_rows for file in self._files)
        self.shape = check_matrix(path, (rows, len(self._columns)), self.dtype)

    def _check_columns(self, path: str, schema: Any, chosen: bool) -> None:
        from pyarrow import types

        def is_number(kind: Any) -> bool:
            return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)

        numbers = [field.name for field in schema if is_number(field.type)]
        for name in self._columns:
            found = schema.get_all_field_indices(name)
            if len(found) != 1:
                what = "there are several columns" if found else "there is no column"
                raise SourceRefused(
                    f"{path}: {what} {name!r}; those with numbers are {', '.join(numbers)}"
                )
            kind = schema.field(name).type
            if not is_number(kind):
                fix = f"--columns {','.join(numbers)}" if numbers else "none of the columns is"
                raise SourceRefused(
                    f"{path}: column {name!r} is {kind}, not a number; "
                    + (f"convert it, or choose others: {fix}" if numbers else fix)
                )
            first = self._files[0].schema_arrow.field(name).type
            if kind != first:
                raise SourceRefused(
                    f"{path}: column {name!r} is {kind}, and {first} in the first file; write all "
                    "files with one schema"
                )
        if not chosen and schema.names != self._files[0].schema_arrow.names:
            raise SourceRefused(
                f"{path}: its columns are not those of the first file; write all files with one "
                "schema, or choose columns that they share (--columns)"
            )

    def convert(self, spool: RowSpool, memory: int, count: Counter) -> None:
        """Stream the batches of every file."""
        from pyarrow import ArrowException

        pages = max(self._pages(file.metadata) for file in self._files)
        width = self.shape[1] * self.dtype.itemsize
        if pages + COPIES * width > memory:
            raise too_small(self, pages + COPIES * width)
        batch_rows = max(1, min(MOST_ROWS, (memory - pages) // (COPIES * width)))
        row = 0
        for file in self._files:
            try:
                for batch in file.iter_batches(
                    batch_rows, columns=list(self._columns), use_threads=False
                ):
                    block = self._block(batch, row)
                    spool.write(block, row)
                    row += len(block)
                    count.add(block.nbytes)
            except (ArrowException, OSError) as exc:
                raise SourceRefused(
                    f"{self.description}: cannot be read after row {row}: {exc}"
                ) from exc

    def _pages(self, metadata: Any) -> int:
        """Bytes that the pages of all columns take while the largest row group is read."""
        most = 0
        for group in range(metadata.num_row_groups):
            chunks = (
                metadata.row_group(group).column(place) for place in range(metadata.num_columns)
            )
            sizes = (
                min(COLUMN_BYTES, COPIES * chunk.total_uncompressed_size)
                for chunk in chunks
                if chunk.path_in_schema in self._columns
            )
            most = max(most, sum(sizes))
        return most

    def _block(self, batch: Any, row: int) -> NDArray[Any]:
        block = np.empty((batch.num_rows, len(self._columns)), self.dtype)
        for place, name in enumerate(self._columns):
            column = batch.column(batch.schema.get_field_index(name))
            if column.null_count:
                at = row + int(np.argmin(column.is_valid().to_numpy(zero_copy_only=False)))
                raise SourceRefused(
                    f"{self.description}: column {name!r} has no value (null) in row {at}: fill "
                    "it, drop the row, or choose other columns (--columns)"
                )
            values = column.to_numpy(zero_copy_only=False)
            block[:, place] = values
            self._check_exact(name, values, row)
        return block

    def _check_exact(self, name: str, values: NDArray[Any], row: int) -> None:
        if self.dtype.kind != "f" or values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
            return
        large = (values > EXACT) | (values < -EXACT if values.dtype.kind == "i" else False)
        if large.any():
            at = row + int(np.argmax(large))
            raise SourceRefused(
                f"{self.description}: column {name!r} holds integers beyond 2^53 (row {at}), which "
                f"{self.dtype.name} beside the other columns would round: encode it by itself, or "
                "scale it"
            )

    def close(self) -> None:
        """Close the files and free the spool."""
        super().close()
        for file in self._files:
            file.close()


def is_parquet(path: str) -> bool:
    """Whether a path names a Parquet file, or a folder of them."""
    if os.path.isdir(path):
        return bool(_inside(path))
    return path.lower().endswith(SUFFIXES)


def parquet_paths(path: str) -> list[str]:
    """The files that a path names, by name."""
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(path, name) for name in _inside(path)]


def _inside(folder: str) -> list[str]:
    hidden = (".", "_")  # as Spark and Hive leave them
    names = sorted(os.listdir(folder))
    return [n for n in names if n.lower().endswith(SUFFIXES) and not n.startswith(hidden)]
