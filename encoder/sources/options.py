"""How a source is read, beyond where it is."""

from __future__ import annotations

from dataclasses import dataclass

from encoder.errors import SourceRefused

MOST_SIZE = 4096


@dataclass(frozen=True)
class SourceOptions:
    """Options that belong to one kind of source each.

    images : the path holds JPEG and PNG files or shards of them; size : pixels of a side that they
    are resized and cut to; skip_broken : leave out broken images instead of refusing; columns : of
    a Parquet file, in this order, all of them without; fill_missing : chunks that a Zarr array does
    not store have its fill value, instead of being refused. Raises `SourceRefused`.
    """

    images: bool = False
    size: int | None = None
    skip_broken: bool = False
    columns: tuple[str, ...] = ()
    fill_missing: bool = False

    def __post_init__(self) -> None:
        if self.images and self.size is None:
            raise SourceRefused("images need a size: the pixels of a side, for example --size 64")
        if not self.images and (self.size is not None or self.skip_broken):
            raise SourceRefused("size and skip-broken are for images: give --images too")
        if self.size is not None and not 1 <= self.size <= MOST_SIZE:
            raise SourceRefused(f"size must be in 1..{MOST_SIZE} pixels, got {self.size}")
        if len(set(self.columns)) < len(self.columns):
            raise SourceRefused(f"columns must differ, got {', '.join(self.columns)}")
        if self.images and (self.columns or self.fill_missing):
            raise SourceRefused("columns are of Parquet files and missing chunks of Zarr arrays")

    def need_none(self, what: str) -> None:
        """Raise `SourceRefused` if any is given, for a source that takes none."""
        if self != SourceOptions():
            raise SourceRefused(
                f"{what}: options of images, Parquet files and Zarr arrays do not apply to it"
            )
