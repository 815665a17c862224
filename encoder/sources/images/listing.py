"""Which images there are, in an order that depends on their names alone, with their labels."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator

from encoder.errors import SourceChanged, SourceRefused

SUFFIXES = ("jpg", "jpeg", "png")


class Listing(ABC):
    """The images of a source.

    names : of every image, in the order of the rows; labels : text of each label, None without;
    ignored : how many files there are of every other suffix.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.labels: list[str | None] = []
        self.ignored: Counter[str] = Counter()

    @abstractmethod
    def size(self, index: int) -> int:
        """Bytes of an image's file."""

    @abstractmethod
    def read(self, index: int) -> bytes:
        """The bytes of an image's file. Raises `SourceChanged` if it is not what was listed, and
        `SourceRefused` if it cannot be read."""

    def close(self) -> None:  # noqa: B027 (a folder holds nothing open)
        """Release what is open."""


class FolderListing(Listing):
    """Images anywhere below a folder, by path; the label is the first folder of the path.

    Hidden files and folders are left out (macOS writes a "._x.jpg" beside a "x.jpg"), links are
    followed unless they lead back to a folder above.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        self._states: list[tuple[int, int]] = []  # size and time of change
        self._add("", ())

    def _add(self, below: str, above: tuple[tuple[int, int], ...]) -> None:
        here = os.path.join(self._folder, below)
        try:
            state = os.stat(here)
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError as exc:
            raise SourceRefused(f"{here}: cannot be read: {exc.strerror}") from exc
        seen = (*above, (state.st_dev, state.st_ino))
        for entry in entries:
            path = f"{below}{entry.name}"
            if entry.name.startswith("."):
                continue
            try:
                found = entry.stat()
            except OSError as exc:
                raise SourceRefused(f"{entry.path}: cannot be read: {exc.strerror}") from exc
            if entry.is_dir():
                if (found.st_dev, found.st_ino) not in seen:
                    self._add(f"{path}/", seen)
            elif suffix_of(path) in SUFFIXES:
                self.names.append(path)
                self.labels.append(path.partition("/")[0] if "/" in path else None)
                self._states.append((found.st_size, found.st_mtime_ns))
            else:
                self.ignored[suffix_of(path)] += 1

    def size(self, index: int) -> int:
        """Size when it was listed."""
        return self._states[index][0]

    def read(self, index: int) -> bytes:
        """Read the file, if it is the one that was listed."""
        path = os.path.join(self._folder, self.names[index])
        try:
            with open(path, "rb") as file:
                found = os.fstat(file.fileno())
                body = file.read()
        except FileNotFoundError as exc:
            raise SourceChanged(f"{path}: was removed while the images were read") from exc
        except OSError as exc:
            raise SourceRefused(f"{path}: cannot be read: {exc.strerror}") from exc
        if (found.st_size, found.st_mtime_ns) != self._states[index]:
            raise SourceChanged(f"{path}: changed while the images were read; encode it again")
        return body


def suffix_of(name: str) -> str:
    """What follows the last dot of a file's name, in lower case; empty without a dot."""
    base = name.rpartition("/")[2]
    return base.rpartition(".")[2].lower() if "." in base else ""


def describe_ignored(ignored: Counter[str]) -> str:
    """ "3 .webp, 1 without a suffix"."""
    return ", ".join(_some(count, suffix) for suffix, count in sorted(ignored.items()))


def _some(count: int, suffix: str) -> str:
    return f"{count} .{suffix}" if suffix else f"{count} without a suffix"


def numbered(labels: Iterator[str | None]) -> tuple[list[int], list[str] | None]:
    """(number of every label, -1 without one; the classes in the order of their numbers).

    Labels that are all whole numbers are kept as they are, and have no classes.
    """
    texts = list(labels)
    classes = sorted({text for text in texts if text is not None})
    if classes and all(text.isascii() and text.lstrip("-").isdigit() for text in classes):
        return [-1 if text is None else int(text) for text in texts], None
    numbers = {text: number for number, text in enumerate(classes)}
    return [-1 if text is None else numbers[text] for text in texts], classes
