"""Sizes that a search for N and s tries: what each code can have, and what makes sense for it."""

from __future__ import annotations

from math import isqrt

__all__ = ["block_counts", "worker_counts"]

LEAST_WORKERS, MOST_WORKERS = 8, 4_096
REDUNDANCIES = (1 / 64, 1 / 32, 3 / 64, 1 / 16, 3 / 32, 1 / 8, 3 / 16, 1 / 4, 3 / 8)
REDUNDANCIES_OF_SEVERAL = (1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2)  # they cost storage, not time
_DENSE = ("mds", "berrut", "lt")  # encoding costs N s additions, or the search is slow
_SEARCHED = ("berrut", "lt")
_MOST_DENSE = 128
_MOST_THIRDS = 8  # 3 2^a below 3 2^8
_SIDES = (3, 4, 6, 8, 11, 16, 22)  # of product grids: 9 to 484 workers


def worker_counts(
    code: str, rows: int, data_blocks: int | None, concurrency: int = 1_000
) -> list[int]:
    """Candidate N, ascending: no more blocks than rows need or than workers may run at once, and
    room for the s that was given."""
    if data_blocks is not None:
        return _room_for(code, max(1, int(data_blocks)))
    if code == "product":
        sizes = [side * side for side in _SIDES]
    else:
        most = _MOST_DENSE if code in _DENSE else MOST_WORKERS
        sizes = [n for n in _round_numbers(most) if n >= LEAST_WORKERS]
    return [n for n in sizes if n < 2 * rows and n <= concurrency] or [sizes[0]]


def block_counts(
    code: str,
    workers: int,
    data_blocks: int | None,
    redundancy: float | None,
    subtasks: int = 1,
) -> list[int]:
    """Candidate s for N, ascending; one if s or the redundancy is given.

    With several `subtasks` N and s are those of one block for each worker. A product code takes the
    corner of a grid that is nearest to the redundancy asked for.
    """
    if data_blocks is not None:
        return [data_blocks]
    if code == "uncoded":
        return [workers]
    if redundancy is not None:
        frozen = round(redundancy * workers) or int(redundancy > 0)
        wanted = max(1, workers - frozen)
        if code == "product" and frozen:
            return [min(_corners(workers) or [wanted], key=lambda s: (abs(s - wanted), s))]
        return [wanted]
    if code == "replication":
        return sorted({max(1, workers // copies) for copies in (2, 3)})
    if code == "product":
        return _corners(workers)[-3:] or [workers]
    shares = REDUNDANCIES if subtasks == 1 else REDUNDANCIES_OF_SEVERAL
    return sorted({max(1, workers - max(1, round(r * workers))) for r in shares})


def _room_for(code: str, data_blocks: int) -> list[int]:
    """Candidate N for s: from a redundancy of 1/32 up to the next power of two."""
    if code == "uncoded":
        return [data_blocks]
    if code == "replication":
        return [2 * data_blocks]
    if code == "product":
        first = next(a for a in range(isqrt(data_blocks), 0, -1) if data_blocks % a == 0)
        return [(first + 1) * (data_blocks // first + 1)]
    most = max(2, 1 << data_blocks.bit_length())
    least = data_blocks + max(1, data_blocks // 31)
    if code in _SEARCHED:
        return [most]
    eighth = -(-data_blocks * 8 // 7)  # a redundancy of 1/8, between the round numbers
    return sorted({n for n in (*_round_numbers(most), eighth) if least <= n <= most} | {most})


def _round_numbers(most: int) -> list[int]:
    """2^a, and 3 2^a up to 384, ascending: polar codes have them without puncturing.

    Beyond, the search takes longer than what it can save: time is flat there (ADR 9).
    """
    powers = [1 << p for p in range(1, most.bit_length())]
    return sorted(powers + [3 << p for p in range(_MOST_THIRDS) if 3 << p <= most])


def _corners(workers: int) -> list[int]:
    """Data blocks of product codes with one or two parities in rows and columns, ascending."""
    sides = [(a, workers // a) for a in range(2, workers) if workers % a == 0]
    return sorted({(a - p) * (b - p) for a, b in sides for p in (1, 2) if min(a, b) > p})
