"""A transform that ends in random signs, as an operator on the rows of arrays: G = B D."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.transform import Kernel, transform_rows

Ids = NDArray[np.intp]


class SignedTransform(ABC):
    """G and its transpose on the rows of (N, L) arrays, in chunks of columns.

    ``order`` is N. B is given as kernels, functions of a chunk and a spare one of its size, both of
    which they may overwrite; they return the one that holds the result.
    """

    order: int

    @property
    @abstractmethod
    def input_signs(self) -> NDArray[np.int8]:
        """The diagonal of D, shape (N,)."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether all entries are integers, so that sums of integers stay integers."""

    @property
    @abstractmethod
    def orthogonal(self) -> bool:
        """Whether G^T G = ``energy`` I."""

    @property
    @abstractmethod
    def energy(self) -> int:
        """The squared norm of every column of an orthogonal G."""

    @abstractmethod
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what :func:`polarcodes.orthogonal.stored_transform` needs."""

    @abstractmethod
    def forward(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply B to the rows of a contiguous float array."""

    @abstractmethod
    def backward(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply B^T likewise."""

    @abstractmethod
    def exact_forward(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply B to integers by sums and differences."""

    def apply(
        self,
        source: NDArray[Any],
        out: NDArray[Any],
        *,
        at: Ids | None = None,
        take: Ids | None = None,
    ) -> None:
        """Write rows ``take`` of G applied to ``source`` placed at rows ``at`` (None: all N).

        ``source`` (r, L) is never changed unless it is ``out`` (t, L), in whose dtype the sums are
        computed: floats, or integers too where the transform is :attr:`exact`.
        """
        before = self.input_signs if at is None else self.input_signs[at]
        kernel = self.forward if out.dtype.kind == "f" else self.exact_forward
        transform_rows(source, out, self.order, at=at, take=take, before=before, kernel=kernel)

    def adjoint(
        self,
        source: NDArray[Any],
        out: NDArray[Any],
        *,
        at: Ids | None = None,
        take: Ids | None = None,
        factor: float = 1.0,
    ) -> None:
        """Write rows ``take`` of factor G^T applied to float ``source`` placed at rows ``at``."""
        self._leave(self.backward, source, out, at, take, factor)

    def _leave(
        self,
        kernel: Kernel,
        source: NDArray[Any],
        out: NDArray[Any],
        at: Ids | None,
        take: Ids | None,
        factor: float,
    ) -> None:
        """Write rows ``take`` of factor D K applied to ``source``, K being the kernel."""
        after = (self.input_signs if take is None else self.input_signs[take]) * factor
        transform_rows(source, out, self.order, at=at, take=take, after=after, kernel=kernel)
