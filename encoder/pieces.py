"""Contiguous pieces of a two-dimensional array, in the order in which it is stored.

An array of `lines` x `length` is stored line after line: rows in C order, columns in Fortran order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Piece(NamedTuple):
    """Entries `start` to `stop` of lines `line0` to `line1`, the ends excluded; contiguous:
    either whole lines or part of one."""

    line0: int
    line1: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of entries."""
        return (self.line1 - self.line0) * (self.stop - self.start)


def pieces(lines: int, length: int, entries: int) -> Iterator[Piece]:
    """Cut `lines` x `length` into contiguous pieces of at most `entries` (at least 1) entries."""
    if length <= entries:
        step = entries // length
        for line in range(0, lines, step):
            yield Piece(line, min(line + step, lines), 0, length)
        return
    for line in range(lines):
        for start in range(0, length, entries):
            yield Piece(line, line + 1, start, min(start + entries, length))


def flat_pieces(length: int, start: int, stop: int, entries: int) -> Iterator[Piece]:
    """Cut the entries `start` to `stop` of lines of `length`, counted through all lines, into
    contiguous pieces of at most `entries` (at least 1) entries."""
    while start < stop:
        line, place = divmod(start, length)
        most = min(entries, stop - start)
        if place == 0 and most >= length:
            yield Piece(line, line + most // length, 0, length)
            start += most // length * length
        else:
            end = min(place + most, length)
            yield Piece(line, line + 1, place, end)
            start += end - place


def grouped(parts: Iterable[Piece], entries: int) -> Iterator[list[tuple[int, Piece]]]:
    """Consecutive pieces, each with the number of entries before it, in groups of at most `entries`
    (a single piece may have more)."""
    group: list[tuple[int, Piece]] = []
    offset = 0
    for part in parts:
        if group and offset + part.size - group[0][0] > entries:
            yield group
            group = []
        group.append((offset, part))
        offset += part.size
    yield group


def requests(lines: int, width: int, entries: int, length: int) -> int:
    """Reads of `lines` x `width` entries, at most `entries` at a time, of a source that is stored
    in lines of `length`: what is not whole lines takes one for each line."""
    parts = pieces(lines, width, entries)
    return sum(1 if width == length else part.line1 - part.line0 for part in parts)


def joined(parts: Sequence[Piece], length: int) -> list[Piece]:
    """The same entries in as few pieces as are contiguous; `parts` follow each other in lines of
    `length`."""
    found: list[Piece] = []
    for part in parts:
        last = found[-1] if found else None
        if last is not None and last.line1 == part.line1 and last.stop == part.start:
            found[-1] = last._replace(stop=part.stop)  # goes on with the same line
        else:
            found.append(part)
    whole: list[Piece] = []
    for part in found:
        last = whole[-1] if whole else None
        if last is not None and _is_whole(last, length) and _is_whole(part, length):
            whole[-1] = last._replace(line1=part.line1)
        else:
            whole.append(part)
    return whole


def _is_whole(piece: Piece, length: int) -> bool:
    return (piece.start, piece.stop) == (0, length)
