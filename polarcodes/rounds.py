"""One or two randomised rounds of the Hadamard transform: the generator G of a code, applied fast.

A round is B = H D with random signs D. One round is G = B, entries +1 and -1 (arXiv 2309.00682);
two rounds are G = B_2 B_1 / sqrt(N) (ours). A stage of H may be rotated: each of its pairs of rows
has an angle t of its own,

    (a, b) -> sqrt(2) (a cos t + b sin t, a sin t - b cos t),

which is the plain butterfly (a + b, a - b) at t = pi/4. B^T B = N I for any angles, so G^T G = N I.
Rotated are the last stage of the first round, on rows (2j, 2j+1), and the last four stages of the
second (all of them up to N = 16, where fewer leave some sets of erasures singular).

The last four stages of a round are one product with a small matrix per 16 neighbouring rows, and
that matrix absorbs the angles, the signs of the next round and the scale: two rotated rounds cost
two plain transforms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidPlan
from polarcodes.plan import Arrays
from polarcodes.signed_transform import SignedTransform
from polarcodes.transform import (
    SINGLE_THREAD,
    butterflies,
    hadamard,
    kronecker_products,
    transform_rows,
)

_GROUP = 1 << 4  # rows of one small product, the fastest Kronecker factor
ROTATED_STAGES = 4
"""Rotated stages of the second round, as far as log2 N allows."""


Ids = NDArray[np.intp]
Float = NDArray[np.float64]


class Rounds(SignedTransform):
    """G and its transpose as operators on the rows of (N, L) arrays.

    Parameters
    ----------
    signs : (r, N) int8
        The diagonals of D, +1 or -1; r is 1 or 2.
    angles : (1 + min(4, log2 N), N/2) float64 or None
        Of two rounds: row 0 rotates the last stage of the first round, row 1 + q that stage of the
        second which pairs rows differing in bit q; column j belongs to the j-th such pair.
    """

    def __init__(self, signs: NDArray[np.int8], angles: Float | None = None) -> None:
        self.signs = signs
        self.angles = angles if angles is not None and angles.size else None
        self.order: int = signs.shape[1]
        self._matrices: dict[str, list[NDArray[Any]]] = {}

    @staticmethod
    def angle_shape(order: int) -> tuple[int, int]:
        """Return the shape of the angles of two rotated rounds of this order."""
        return 1 + min(ROTATED_STAGES, order.bit_length() - 1), order // 2

    @property
    def energy(self) -> int:
        """N: G^T G = N I."""
        return self.order

    @property
    def input_signs(self) -> NDArray[np.int8]:
        """The signs that the inputs meet first, shape (N,)."""
        first: NDArray[np.int8] = self.signs[0]
        return first

    @property
    def plain(self) -> bool:
        """Whether G is H D: one round of plain butterflies, exact in integers."""
        return len(self.signs) == 1 and self.angles is None

    @property
    def exact(self) -> bool:
        """Whether sums of integers stay integers: those of one plain round."""
        return self.plain

    @property
    def orthogonal(self) -> bool:
        """Always: G^T G = N I."""
        return True

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return signs and angles."""
        angles = np.empty((0, 0)) if self.angles is None else self.angles
        return {"signs": self.signs, "angles": angles}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Rounds:
        """Rebuild from stored signs and angles; raises InvalidPlan."""
        signs, angles = np.asarray(arrays["signs"]), np.asarray(arrays["angles"])
        if signs.ndim != 2 or not 1 <= len(signs) <= 2 or not np.isin(signs, (-1, 1)).all():
            raise InvalidPlan("signs must be +-1, one row for each of one or two rounds")
        order = signs.shape[1]
        if order < 2 or order & (order - 1):
            raise InvalidPlan(f"signs must have a power of two of columns, got {order}")
        if angles.size and (
            len(signs) != 2
            or angles.shape != Rounds.angle_shape(order)
            or angles.dtype.kind != "f"
            or not np.isfinite(angles).all()
        ):
            raise InvalidPlan(f"angles must be finite, of shape {Rounds.angle_shape(order)}")
        return cls(signs.astype(np.int8), angles.astype(np.float64))

    def apply(
        self,
        source: NDArray[Any],
        out: NDArray[Any],
        *,
        at: Ids | None = None,
        take: Ids | None = None,
    ) -> None:
        """As :meth:`SignedTransform.apply`: r plain transforms in time for r rounds.

        One plain round of floats takes the signs into its first product.
        """
        if self.plain and out.dtype.kind == "f":
            transform_rows(source, out, self.order, at=at, take=take, kernel=self._signed)
        else:
            super().apply(source, out, at=at, take=take)

    def forward(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply G D_1 to the rows of a contiguous float array: G without the first signs.

        Both arrays are overwritten; the one that holds the result is returned.
        """
        if self.plain:
            return kronecker_products(values, spare)
        for matrices in self._group_matrices(values.dtype.name):
            values, spare = self._leading(values, spare)
            values, spare = _grouped(matrices, values, spare)
        return values

    def exact_forward(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply H to integers: one plain round."""
        return butterflies(values, spare)

    def backward(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply D_1 G^T likewise: the transpose of :meth:`forward`."""
        if self.plain:
            return kronecker_products(values, spare)
        for matrices in reversed(self._group_matrices(values.dtype.name)):
            values, spare = _grouped(matrices.swapaxes(1, 2), values, spare)
            values, spare = self._leading(values, spare)
        return values

    def _signed(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply H D of one plain round: the stages within groups first, which take the signs in."""
        dtype = values.dtype.name
        if dtype not in self._matrices:
            group = min(self.order, _GROUP)
            signs = self.signs[0].reshape(-1, 1, group)
            self._matrices[dtype] = [(hadamard(group) * signs).astype(dtype)]
        values, spare = _grouped(self._matrices[dtype][0], values, spare)
        return self._leading(values, spare)[0]

    def _leading(
        self, values: NDArray[Any], spare: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Apply H_{N/g} (x) I_g, the stages between groups of g rows."""
        group = min(self.order, _GROUP)
        if group < self.order and kronecker_products(values, spare, group=group) is spare:
            return spare, values
        return values, spare

    def _group_matrices(self, dtype: str) -> list[NDArray[Any]]:
        """Return one (N/g, g, g) array per round: the stages within each group of g rows."""
        if dtype not in self._matrices:
            self._matrices[dtype] = [
                self._group_matrix(index).astype(dtype) for index in range(len(self.signs))
            ]
        return self._matrices[dtype]

    def _group_matrix(self, index: int) -> Float:
        group = min(self.order, _GROUP)
        matrix = np.broadcast_to(np.eye(group), (self.order // group, group, group)).copy()
        if self.angles is None:
            rotated = np.empty((0, self.order // 2))
        else:
            rotated = self.angles[:1] if index == 0 else self.angles[1:]
        for bit in reversed(range(group.bit_length() - 1)):
            half = 1 << bit
            pairs = matrix.reshape(-1, 2, half, group)
            up, low = pairs[:, 0].copy(), pairs[:, 1].copy()
            if bit < len(rotated):
                angle = rotated[bit].reshape(-1, half, 1)
                cosine, sine = np.sqrt(2.0) * np.cos(angle), np.sqrt(2.0) * np.sin(angle)
            else:
                cosine = sine = np.ones(1)
            pairs[:, 0] = cosine * up + sine * low
            pairs[:, 1] = sine * up - cosine * low
        if index + 1 < len(self.signs):
            matrix *= self.signs[index + 1].reshape(-1, group, 1)
        else:
            matrix *= self.order ** (0.5 * (1 - len(self.signs)))
        return matrix


def _grouped(
    matrices: NDArray[Any], values: NDArray[Any], spare: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Multiply each group of rows by its own matrix; return the result and the other array."""
    count, group, _ = matrices.shape
    columns = values.shape[1]
    pieces = 1
    while columns % (2 * pieces) == 0 and group * group * columns // pieces > SINGLE_THREAD:
        pieces *= 2
    shape = (count, group, pieces, columns // pieces)
    np.matmul(
        matrices[:, None],
        values.reshape(shape).swapaxes(1, 2),
        out=spare.reshape(shape).swapaxes(1, 2),
    )
    return spare, values
