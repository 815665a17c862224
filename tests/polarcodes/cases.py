"""The codes that the contract tests run; a new code joins here by its name."""

from __future__ import annotations

from polarcodes import CODE_NAMES

# name -> (workers, data blocks), small to large; codes of rate one and of one block among them.
SIZES = {
    "polar": [(2, 1), (2, 2), (4, 3), (8, 5), (16, 16), (32, 1), (64, 48), (256, 192)],
    "uncoded": [(1, 1), (2, 2), (7, 7), (64, 64)],
}
CASES = [(name, *size) for name in CODE_NAMES for size in SIZES[name]]
