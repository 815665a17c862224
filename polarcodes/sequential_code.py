"""What polar codes of any kernels have in common: a sequential decoder beside the syndrome's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE
from polarcodes.checks import real, worker_indices
from polarcodes.completing import completing_workers
from polarcodes.errors import InvalidCode, NotDecodable
from polarcodes.plan import DecodingPlan
from polarcodes.settled import settled_inputs
from polarcodes.signed_transform import SignedTransform
from polarcodes.transform_code import TransformCode

Ids = NDArray[np.intp]


class SequentialCode(TransformCode):
    """A polar code: its data inputs are the ones that a sequential decoder reaches first.

    It is decodable as soon as that decoder reaches all of them, or the syndrome decoder is ready,
    which happens some answers earlier.
    """

    def __init__(
        self, seed: int, epsilon: float, transform: SignedTransform, inputs: Ids, positions: Ids
    ) -> None:
        super().__init__(seed, transform, inputs, positions)
        self._epsilon = epsilon

    @property
    def epsilon(self) -> float:
        """The mean share of missing answers that the inputs were chosen for."""
        return self._epsilon

    def settled(self, S: Iterable[int]) -> NDArray[np.bool_]:
        """Return which data blocks the sequential decoder fixes from S, shape (s,).

        O(N' log N').
        """
        known, is_data = np.zeros((2, self._transform.order), bool)
        known[self._positions[worker_indices(S, self.workers)]] = True
        is_data[self._inputs] = True
        return settled_inputs(self._sizes, known, is_data)[self._inputs]

    def decodable(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> bool:
        """Return whether either decoder is ready: O(N' log N'), then O(e^2 f) if e <= f."""
        workers = worker_indices(S, self.workers)
        if self._reached(workers).all():
            return True
        decoder = self._syndrome
        return decoder is not None and decoder.predicted_error(workers, answer_error) <= tolerance

    def plan(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> DecodingPlan:
        """Return the sequential decoder's plan where that reaches every block, else the syndrome's.

        ``plan.method`` says which. The sequential one never costs more: it completes the codeword
        in at most N' sums a stage, as many as one transform has, and transforms back once; the
        other transforms twice and multiplies e x f in between. Raises NotDecodable, with workers
        that complete the set.
        """
        workers = worker_indices(S, self.workers)
        lacking = int(np.sum(~self._reached(workers)))
        if not lacking:
            return self._sequential_plan(workers)
        if self._syndrome is not None:
            return self._syndrome.plan(workers, answer_error, tolerance)
        erased = np.ones(self.workers, bool)
        erased[workers] = False
        helpful = completing_workers(
            erased, lambda flags: bool(self._reached(np.flatnonzero(~flags)).all())
        )
        raise NotDecodable(lacking, helpful)

    @property
    @abstractmethod
    def _sizes(self) -> Sequence[int]:
        """The sizes of the kernels, outermost first."""

    @abstractmethod
    def _reached(self, workers: Ids) -> NDArray[np.bool_]:
        """Return which data blocks are reached once those before them are known, shape (s,)."""

    @abstractmethod
    def _sequential_plan(self, workers: Ids) -> DecodingPlan:
        """Return the plan for a set from which everything is reached."""


def checked_epsilon(epsilon: object) -> float:
    """Return a share of missing answers strictly between 0 and 1, or raise InvalidCode."""
    share = real("epsilon", epsilon)
    if not 0 < share < 1:
        raise InvalidCode(f"epsilon must lie strictly between 0 and 1, got {share}")
    return share
