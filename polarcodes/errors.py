"""Typed errors of the codes.

Every message names the argument, the rule, the value received and the fix. A missing answer is not
an error but an erasure; an answer of the wrong shape, or one with NaN, is an error.
"""

from __future__ import annotations

from collections.abc import Sequence


class CodeError(ValueError):
    """Base of every error that this package raises on purpose."""


class InvalidCode(CodeError):
    """The parameters do not describe a code (lengths, rates, seeds, options)."""


class InvalidManifest(CodeError):
    """A stored code description is incomplete or contradicts itself."""


class InvalidBlocks(CodeError):
    """The data to encode have the wrong shape or type, or are not finite."""


class InvalidWorkers(CodeError):
    """A set of workers holds duplicates, or indices outside ``0..N-1``."""


class InvalidAnswers(CodeError):
    """The answers have the wrong shape or type, or are not finite."""


class InvalidPlan(CodeError):
    """The arrays do not describe a decoding plan."""


class NotDecodable(CodeError):
    """The answers of a set of workers do not determine the product yet.

    Attributes
    ----------
    missing_count : int
        Data blocks that the decoder cannot reach yet. At least that many more answers are needed,
        because one answer settles one block at most.
    helpful : tuple of int
        Workers whose answers together would complete the set; none of them can be left out.
    """

    def __init__(self, missing_count: int, helpful: Sequence[int]) -> None:
        self.missing_count = int(missing_count)
        self.helpful = tuple(int(worker) for worker in helpful)
        shown = ", ".join(map(str, self.helpful[:8])) + (", ..." if len(self.helpful) > 8 else "")
        super().__init__(
            f"the answers of S do not determine {self.missing_count} of the data blocks; answers "
            f"from workers {shown} would complete them ({len(self.helpful)} in all). Wait for "
            "these, or use estimate() until then"
        )
