"""The codes that the contract tests run; a new code joins here by its name."""

from __future__ import annotations

from polarcodes import CODE_NAMES, ErasureCode, make_code
from polarcodes.grid import GridCode

# name -> (workers, data blocks), small to large; codes of rate one and of one block among them.
SIZES = {
    "berrut": [(2, 1), (2, 2), (8, 5), (16, 12), (64, 48)],
    "hadamard": [(2, 1), (2, 2), (4, 3), (8, 5), (12, 9), (16, 16), (32, 1), (64, 48), (256, 192)],
    "lt": [(1, 1), (2, 1), (8, 5), (16, 12), (64, 48)],
    "mds": [(1, 1), (2, 1), (7, 7), (8, 5), (16, 12), (64, 48)],
    "product": [(1, 1), (2, 1), (6, 2), (9, 4), (16, 9), (64, 49), (64, 36)],
    "replication": [(1, 1), (2, 1), (5, 3), (8, 8), (64, 32)],
    "polar": [
        *[(2, 1), (2, 2), (4, 3), (8, 5), (16, 16), (32, 1), (64, 48), (256, 192)],
        *[(3, 2), (5, 3), (7, 7), (12, 1), (50, 37), (72, 54)],  # mixed radix, punctured
    ],
    "uncoded": [(1, 1), (2, 2), (7, 7), (64, 64)],
}
CASES = [(name, *size) for name in CODE_NAMES for size in SIZES[name]]

# A grid of two codes: name and size of the left and of the right one.
GRIDS = [
    (("hadamard", 2, 1), ("hadamard", 2, 2)),
    (("hadamard", 6, 4), ("hadamard", 5, 4)),
    (("hadamard", 8, 6), ("hadamard", 16, 14)),
    (("polar", 8, 5), ("polar", 4, 3)),
    (("polar", 8, 5), ("uncoded", 3, 3)),
    (("mds", 7, 5), ("mds", 1, 1)),
    (("uncoded", 3, 3), ("uncoded", 2, 2)),
    (("replication", 4, 2), ("product", 9, 4)),
    (("polar", 4, 2), ("hadamard", 8, 6)),
]
CASES += [("grid", *pair) for pair in GRIDS]


def build(case: tuple, seed: int) -> ErasureCode:
    """The code of a case."""
    name, *sizes = case
    if name != "grid":
        return make_code(name, workers=sizes[0], data_blocks=sizes[1], seed=seed)
    left, right = (
        make_code(line, workers=workers, data_blocks=blocks, seed=seed + side)
        for side, (line, workers, blocks) in enumerate(sizes)
    )
    return GridCode(left, right)
