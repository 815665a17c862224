"""The matrix of an image data set: one row of 3 size^2 bytes for each image."""

from __future__ import annotations

import io
import json
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder import processors
from encoder.errors import SourceRefused
from encoder.progress import Counter
from encoder.sources.converted import ConvertedSource, RowSpool, missing_library
from encoder.sources.images.decode import BrokenImage, Room, decode
from encoder.sources.images.listing import (
    FolderListing,
    Listing,
    describe_ignored,
    numbered,
)
from encoder.sources.images.shards import ShardListing, shard_paths

PILLOW_BYTES = 8 << 20
NAMED = 5  # broken images named in a note; all of them are in images.json


class ImageSource(ConvertedSource):
    """JPEG and PNG images, resized and cut to `size` x `size`, as uint8 rows in the order height,
    width, channel.

    Companions: labels.npy (int64, -1 without a label), names.txt (a line for each row), images.json
    (size, classes, the images that were left out).
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, path: str, size: int, skip_broken: bool) -> None:
        try:
            import PIL  # noqa: F401 (asked for before anything is listed)
        except ImportError as exc:
            raise SourceRefused(missing_library(path, "Pillow", "images")) from exc
        self._listing = _list(path)
        if not self._listing.names:
            found = describe_ignored(self._listing.ignored) or "nothing"
            self._listing.close()
            raise SourceRefused(
                f"{path}: there are no .jpg, .jpeg or .png images here, there is {found}"
            )
        self.description = os.path.basename(os.path.normpath(path))
        self.shape = (len(self._listing.names), 3 * size * size)
        self.library_bytes = PILLOW_BYTES + sum(map(sys.getsizeof, self._listing.names)) * 2
        self._size = size
        self._skip_broken = skip_broken
        self._kept: list[int] = []
        self._broken: list[tuple[str, str]] = []
        self._companions: dict[str, bytes] = {}

    @property
    def companions(self) -> Mapping[str, bytes]:
        """labels.npy, names.txt, images.json."""
        return self._companions

    @property
    def notes(self) -> Sequence[str]:
        """What was left out."""
        notes = []
        if self._broken:
            some = ", ".join(f"{name} ({reason})" for name, reason in self._broken[:NAMED])
            more = f" and {len(self._broken) - NAMED} more" if len(self._broken) > NAMED else ""
            notes.append(f"{len(self._broken)} broken image(s) left out: {some}{more}")
        if self._listing.ignored:
            notes.append(f"files that are no images: {describe_ignored(self._listing.ignored)}")
        return notes

    def convert(self, spool: RowSpool, memory: int, count: Counter) -> None:
        """Decode on all cores; rows keep the order of the names."""
        width = self.shape[1]
        for index, image in self._decoded(memory):
            if isinstance(image, BrokenImage):
                self._leave_out(self._listing.names[index], image)
            else:
                spool.write(image.reshape(1, width), len(self._kept))
                self._kept.append(index)
            count.add(width)
        if not self._kept:
            raise SourceRefused(f"{self.description}: every image is broken, none is left")
        self.shape = (len(self._kept), width)
        self._companions = self._make_companions()

    def _decoded(self, memory: int) -> Iterator[tuple[int, NDArray[np.uint8] | BrokenImage]]:
        threads = processors.threads()
        room = Room(memory * 3 // 4)

        most = memory // 4 // (2 * threads)  # of a file, which is read whole

        def work(index: int) -> NDArray[np.uint8] | BrokenImage:
            if self._listing.size(index) > most:
                return BrokenImage(
                    f"its file has {self._listing.size(index):,} bytes, more than the {most:,} "
                    "that the memory given allows"
                )
            try:
                return decode(self._listing.read(index), self._size, room)
            except BrokenImage as exc:
                return exc

        waiting: deque[tuple[int, Future[Any]]] = deque()
        with ThreadPoolExecutor(threads, "polarlambda-images") as pool:
            try:
                for index in range(len(self._listing.names)):
                    waiting.append((index, pool.submit(work, index)))
                    if len(waiting) > 4 * threads:
                        first, future = waiting.popleft()
                        yield first, future.result()
                while waiting:
                    first, future = waiting.popleft()
                    yield first, future.result()
            finally:
                for _, future in waiting:
                    future.cancel()

    def _leave_out(self, name: str, why: BrokenImage) -> None:
        if not self._skip_broken:
            raise SourceRefused(
                f"{self.description}: the image {name} is broken: {why}; repair or remove it, or "
                "leave out all that are broken (--skip-broken, skip_broken=True)"
            )
        self._broken.append((name, str(why)))

    def _make_companions(self) -> dict[str, bytes]:
        names = [self._listing.names[index] for index in self._kept]
        labels, classes = numbered(self._listing.labels[index] for index in self._kept)
        body = io.BytesIO()
        np.save(body, np.array(labels, np.int64), allow_pickle=False)
        described = {
            "version": 1,
            "size": self._size,
            "classes": classes,
            "skipped": [{"name": name, "reason": reason} for name, reason in self._broken],
        }
        return {
            "images.json": json.dumps(described).encode(),
            "labels.npy": body.getvalue(),
            "names.txt": "".join(f"{_line(name)}\n" for name in names).encode("utf8", "replace"),
        }

    def close(self) -> None:
        """Close the shards and free the spool."""
        super().close()
        self._listing.close()


def _line(name: str) -> str:
    return name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _list(path: str) -> Listing:
    if not os.path.isdir(path):
        if not path.endswith(".tar"):
            raise SourceRefused(
                f"{path}: images are read from a folder, a .tar shard, or shards named like "
                "'train-{000..012}.tar', and this is none of them"
            )
        return ShardListing(shard_paths(path))
    shards, images = shard_paths(path), FolderListing(path)
    if not shards:
        return images
    if images.names:
        raise SourceRefused(
            f"{path}: holds shards ({os.path.basename(shards[0])}) and images ({images.names[0]}): "
            "give a folder with one or the other"
        )
    return ShardListing(shards)
