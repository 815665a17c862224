"""What the syndrome decoder asks of a transform, and how its plan stores one."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polarcodes.kernels.transform import KernelTransform
from polarcodes.plan import Arrays
from polarcodes.rounds import Rounds


class OrthogonalTransform(Protocol):
    """A square matrix G with G^T G = ``energy`` I that ends in random signs: G = B D."""

    order: int

    @property
    def energy(self) -> int:
        """The squared norm of every column of G."""

    @property
    def input_signs(self) -> NDArray[np.int8]:
        """The diagonal of D, shape (N,)."""

    def adjoint(
        self,
        source: NDArray[Any],
        out: NDArray[Any],
        *,
        at: NDArray[np.intp] | None = None,
        take: NDArray[np.intp] | None = None,
        factor: float = 1.0,
    ) -> None:
        """Write rows ``take`` of factor G^T applied to ``source`` placed at rows ``at``."""

    def backward(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply B^T to contiguous rows; both arrays are overwritten, one holds the result."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what :func:`stored_transform` needs."""


def stored_transform(arrays: Arrays) -> OrthogonalTransform:
    """Rebuild a transform from its arrays; raises InvalidPlan where they do not fit together."""
    return (KernelTransform if "kernel_sizes" in arrays else Rounds).from_arrays(arrays)
