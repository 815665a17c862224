"""WebDataset shards: tar files in which the files of a sample share their name up to a dot."""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Iterator
from typing import NamedTuple

from encoder.errors import SourceChanged, SourceRefused
from encoder.sources.images.listing import SUFFIXES, Listing, suffix_of

BLOCK = 512
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


class Place(NamedTuple):
    """Where the bytes of an image lie."""

    shard: int
    offset: int
    size: int


class ShardListing(Listing):
    """The images of shards: shards by name, images in the order of the tar file.

    A sample's label is the text of its .cls file. Samples without an image are left out.
    """

    def __init__(self, paths: list[str]) -> None:
        super().__init__()
        self._paths = paths
        self._files: list[int] = []
        self._states: list[tuple[int, ...]] = []
        self._places: list[Place] = []
        try:
            for path in paths:
                self._add(path)
        except BaseException:
            self.close()
            raise

    def _add(self, path: str) -> None:
        try:
            self._files.append(os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
        except OSError as exc:
            raise SourceRefused(f"{path}: cannot be opened: {exc.strerror}") from exc
        self._states.append(_state(self._files[-1]))
        images: dict[str, int] = {}  # sample -> row, of this shard
        labels: dict[str, str] = {}
        try:
            for member in _members(path):
                self._take(path, member, images, labels)
        except (tarfile.TarError, EOFError) as exc:
            raise SourceRefused(
                f"{path}: this is no whole tar file: {exc}; copy it again (a compressed one must "
                "be unpacked first, for example with gunzip)"
            ) from exc
        except OSError as exc:
            raise SourceRefused(f"{path}: cannot be read: {exc.strerror}") from exc
        for sample, row in images.items():
            self.labels[row] = labels.get(sample)

    def _take(
        self, path: str, member: tarfile.TarInfo, images: dict[str, int], labels: dict[str, str]
    ) -> None:
        folder, _, base = member.name.rpartition("/")
        if not member.isfile() or base.startswith("."):
            return
        stem, _, extension = base.partition(".")
        sample = f"{folder}/{stem}"
        place = Place(len(self._files) - 1, member.offset_data, member.size)
        if extension.lower() == "cls":
            text = os.pread(self._files[-1], min(place.size, BLOCK), place.offset)
            labels[sample] = text.decode("utf8", "replace").strip()
        elif suffix_of(base) not in SUFFIXES:
            self.ignored[extension.lower()] += 1
        elif sample in images:
            raise SourceRefused(
                f"{path}: the sample {stem!r} has two images, "
                f"{self.names[images[sample]].rpartition('/')[2]} and {base}: make shards with one "
                "image for each sample"
            )
        else:
            images[sample] = len(self.names)
            self.names.append(f"{os.path.basename(path)}/{member.name}")
            self.labels.append(None)
            self._places.append(place)

    def size(self, index: int) -> int:
        """Size that the tar file gives."""
        return self._places[index].size

    def read(self, index: int) -> bytes:
        """Read the bytes of an image inside its shard."""
        place = self._places[index]
        file, path = self._files[place.shard], self._paths[place.shard]
        try:
            body = os.pread(file, place.size, place.offset)
        except OSError as exc:
            raise SourceRefused(f"{path}: cannot be read: {exc.strerror}") from exc
        if len(body) != place.size or _state(file) != self._states[place.shard]:
            raise SourceChanged(f"{path}: changed while the images were read; encode it again")
        return body

    def close(self) -> None:
        """Close the shards."""
        while self._files:
            os.close(self._files.pop())


def _members(path: str) -> Iterator[tarfile.TarInfo]:
    """The members one after another, none of them kept; a shard that is cut short is refused."""
    with tarfile.open(path, "r:") as tar:
        while (member := tar.next()) is not None:
            tar.members.clear()  # or it would keep a kilobyte for each
            yield member
        end = tar.offset
    with open(path, "rb") as file:
        file.seek(end)
        rest = file.read(1 << 20)
        more = file.read(1)
    if len(rest) < BLOCK:
        raise tarfile.ReadError("its end is missing")
    if more or rest.strip(b"\0"):
        raise tarfile.ReadError("other data follow its end: it was put together from several")


def _state(file: int) -> tuple[int, ...]:
    found = os.fstat(file)
    return found.st_size, found.st_mtime_ns


def shard_paths(path: str) -> list[str]:
    """The shards that a path names: one tar file, those of a folder, or "x-{000..012}.tar"."""
    if os.path.isdir(path):
        names = sorted(os.listdir(path))
        return [os.path.join(path, n) for n in names if n.endswith(".tar") and n[0] != "."]
    match = _RANGE.search(path)
    if match is None or os.path.exists(path):
        return [path]
    first, last = match[1], match[2]
    return [
        path[: match.start()] + str(number).zfill(len(first)) + path[match.end() :]
        for number in range(int(first), int(last) + 1)
    ]
