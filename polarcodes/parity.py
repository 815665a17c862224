"""The parity check of a code with an orthogonal transform: which erasures its frozen rows solve.

With G^T G = N I the codeword y = G U has G^T y = N U, which is zero on the frozen rows F. So the
f x N matrix P = (G^T)_F annihilates every codeword, and the erased answers E solve
P_E y_E = -P_S y_S: f equations for e unknowns, solvable if and only if P_E has full column rank.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import ANSWER_ERROR
from polarcodes.signed_transform import SignedTransform

Ids = NDArray[np.intp]
Float = NDArray[np.float64]

RANK_FLOOR = 1e-13
"""Squared singular values of P_E / sqrt(N) below this are zero: rounding leaves about 1e-15."""
_PART = 1024  # columns that are made at a time


class ParityCheck:
    """P / sqrt(N) of one code, made column by column; its columns have norm sqrt(f/N) on average.

    ``rows`` are rows of the transform. Nothing larger than the erased columns is ever held.
    """

    def __init__(self, rounds: SignedTransform, slots: Ids) -> None:
        is_frozen = np.ones(rounds.order, bool)
        is_frozen[slots] = False
        self.rounds = rounds
        self.slots = slots
        self.frozen = np.flatnonzero(is_frozen)

    def columns(self, rows: Ids) -> Float:
        """Return P_E / sqrt(N) for the erased rows, shape (f, e). O(e N log N)."""
        out = np.empty((self.frozen.size, rows.size))
        scale = 1.0 / math.sqrt(self.rounds.energy)
        self.rounds.adjoint(np.eye(rows.size), out, at=rows, take=self.frozen, factor=scale)
        return out

    def gain(self, rows: Ids) -> float:
        """Return sum sigma_i^-2 over the singular values of P_E / sqrt(N); inf below full rank.

        From the e x e Gram matrix: O(e^2 f), and nothing at all when e > f. A singular value of
        relative size 1e-5 is found to 1e-5.
        """
        if rows.size > self.frozen.size:
            return math.inf
        if rows.size == 0:
            return 0.0
        columns = self.columns(rows)
        squares = np.linalg.eigvalsh(columns.T @ columns)
        return float(np.sum(1.0 / squares)) if squares[0] > RANK_FLOOR else math.inf

    def nullity(self, rows: Ids) -> int:
        """Return e - rank(P_E): how many data dimensions the other rows leave undetermined.

        From the e x e Gram matrix: O(e^2 f + e N log N). With e > f from that of the f rows of P_E:
        P_E P_E^T + P_S P_S^T = N I, so the smaller set of columns serves, a part at a time. Then
        the cost is O(min(e, m) (f^2 + N log N)) and the memory O(f^2 + f N).
        """
        erased, frozen = rows.size, self.frozen.size
        if erased <= frozen:
            columns = self.columns(rows)
            squares = np.linalg.eigvalsh(columns.T @ columns)
            return int(erased - np.sum(squares > RANK_FLOOR))
        arrived = np.setdiff1d(np.arange(self.rounds.order), rows)
        few = arrived if arrived.size < erased else rows
        gram = np.zeros((frozen, frozen))
        for first in range(0, few.size, _PART):
            columns = self.columns(few[first : first + _PART])
            gram += columns @ columns.T
        squares = np.linalg.eigvalsh(gram if few is rows else np.eye(frozen) - gram)
        return int(erased - np.sum(squares > RANK_FLOOR))

    def predicted_error(self, rows: Ids, answer_error: float = ANSWER_ERROR) -> float:
        """Return the rms relative error of the product decoded without the erased rows."""
        return decoding_error(self.rounds.order, rows.size, self.gain(rows), answer_error)


def decoding_error(order: int, erased: int, gain: float, answer_error: float) -> float:
    """Return the predicted rms relative error u sqrt((m + sum (sigma_i^-2 - 1)) / N).

    u is the rms relative error of an answer. Errors of the m answers are independent; those of the
    e filled in answers are -P_E^+ P_S times them, of energy sum (sigma_i^-2 - 1) because
    P_S P_S^T + P_E P_E^T = N I. The data inherit both, divided by N answers of equal energy.
    """
    return answer_error * math.sqrt((order - 2 * erased + gain) / order)
