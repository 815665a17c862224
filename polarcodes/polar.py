"""Randomised polar codes: the Hadamard transform with the worst slots frozen to zero."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE
from polarcodes.checks import integer, real, worker_indices
from polarcodes.code import ErasureCode
from polarcodes.construction import data_slots
from polarcodes.erasures import erased_inputs
from polarcodes.error_bar import mean_square_error, upper_relative_error
from polarcodes.errors import InvalidCode
from polarcodes.estimate import Estimate, mean_square
from polarcodes.manifest import Fields
from polarcodes.plan import DecodingPlan
from polarcodes.polar_arrivals import PolarArrivals
from polarcodes.randomness import random_signs
from polarcodes.rounds import Rounds
from polarcodes.sequential import compile_operations
from polarcodes.sequential_plan import SequentialPlan
from polarcodes.syndrome import SyndromeDecoder


class PolarCode(ErasureCode):
    """Coded block i is sum_k H[i, slots[k]] d[slots[k]] U_k: all coefficients are +1 or -1.

    H is the Sylvester matrix of order N in natural order, unnormalised, d random signs. S is
    decodable when the sequential decoder reaches every data slot (about 1.107 s answers in random
    order at N = 256, s = 192), or when the frozen rows determine the missing answers (1.07 s).
    Encoding costs N log2 N block additions; sequential decoding O(N log N) for each column.

    Parameters
    ----------
    workers : int
        N, a power of two of at least 2.
    data_blocks : int
        s, in 1..N.
    seed : int
        Non-negative; gives the signs, which are drawn independently of who straggles.
    epsilon : float, optional
        The share of missing answers that the slots are chosen for; (N - s) / N by default.
    slots : (s,) intp, optional
        The slots that carry data, chosen for something else (:mod:`polarcodes.kernels.frozen`).

    References
    ----------
    Bartan and Pilanci, "Randomized Polar Codes for Anytime Distributed Machine Learning",
    arXiv 2309.00682.

    >>> code = PolarCode(4, 2, seed=0)
    >>> code.slots.tolist()
    [2, 3]
    >>> U = np.arange(6).reshape(2, 3)
    >>> Y = code.encode(U)
    >>> code.plan([3, 1, 0]).apply(Y[[3, 1, 0]]).astype(int).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """

    name = "polar"

    def __init__(
        self,
        workers: int,
        data_blocks: int,
        seed: int = 0,
        *,
        epsilon: float | None = None,
        slots: NDArray[np.intp] | None = None,
    ) -> None:
        order = power_of_two(workers)
        blocks = integer("data_blocks", data_blocks, 1, order)
        seed = integer("seed", seed, 0, None)
        if epsilon is None:
            epsilon = (order - blocks) / order or 0.5 / order  # with s = N every slot carries data
        epsilon = real("epsilon", epsilon)
        if not 0 < epsilon < 1:
            raise InvalidCode(f"epsilon must lie strictly between 0 and 1, got {epsilon}")
        if slots is None:
            slots = data_slots(order, blocks, epsilon)
        super().__init__(order, blocks, seed, slots)
        self._epsilon = epsilon
        self._signs = random_signs(order, seed)

    @cached_property
    def _rounds(self) -> Rounds:
        return Rounds(self._signs[None])

    @cached_property
    def _syndrome(self) -> SyndromeDecoder:
        return SyndromeDecoder(self._rounds, self.slots, np.arange(self.workers))

    @property
    def epsilon(self) -> float:
        """The share of missing answers that the slots were chosen for."""
        return self._epsilon

    @property
    def signs(self) -> NDArray[np.int8]:
        """The diagonal of D, shape (N,), +1 or -1; read only."""
        return self._signs

    @property
    def row_weight(self) -> int:
        """s: every coefficient is +1 or -1."""
        return self.data_blocks

    def arrivals(
        self, *, answer_error: float = ANSWER_ERROR, tolerance: float = TOLERANCE
    ) -> PolarArrivals:
        """Return an empty arrivals state: O(log N) for each arrival while e > f."""
        return PolarArrivals(self.slots, self._syndrome.arrivals(answer_error, tolerance))

    def decodable(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> bool:
        """Return whether either decoder is ready: O(N log N), then O(e^2 f) if e <= f."""
        workers = worker_indices(S, self.workers)
        if self._pattern_decodable(self._erased(workers)):
            return True
        return self._syndrome.predicted_error(workers, answer_error) <= tolerance

    def plan(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> DecodingPlan:
        """Return the sequential decoder's plan where that reaches every slot, it is the cheaper.

        Otherwise the syndrome decoder's, ready some arrivals earlier; ``plan.method`` says which.
        Raises NotDecodable, with the workers that complete the set for the syndrome decoder.
        """
        workers = worker_indices(S, self.workers)
        erased = self._erased(workers)
        if not self._pattern_decodable(erased):
            return self._syndrome.plan(workers, answer_error, tolerance)
        is_data = np.zeros(self.workers, bool)
        is_data[self.slots] = True
        operations = compile_operations(is_data, erased)
        return SequentialPlan(workers, operations, self.slots, self._signs[self.slots])

    def predicted_error(self, m: int) -> float:
        """Return sqrt((s-1)(N-m) / (m(N-1))), the paper's estimator over a uniform S."""
        arrived = integer("m", m, 0, self.workers)
        return math.sqrt(mean_square_error(self.workers, self.data_blocks, arrived))

    def to_manifest(self) -> dict[str, Any]:
        """Return the code as pure JSON, slots and signs written out."""
        return {
            "name": self.name,
            "version": 1,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "seed": self.seed,
            "epsilon": self.epsilon,
            "slots": self.slots.tolist(),
            "signs": self._signs.tolist(),
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> PolarCode:
        """Rebuild the code from its explicit slots and signs, whatever made them."""
        fields = Fields(
            manifest, cls.name, ("workers", "data_blocks", "seed", "epsilon", "slots", "signs")
        )
        with fields.as_invalid_manifest():
            code = cls(
                manifest["workers"],
                manifest["data_blocks"],
                manifest["seed"],
                epsilon=real("epsilon", manifest["epsilon"]),
            )
        code._slots = fields.distinct_indices("slots", code.data_blocks, code.workers)
        code._signs = fields.signs("signs", code.workers)
        return code

    def _erased(self, workers: NDArray[np.intp]) -> NDArray[np.bool_]:
        erased = np.ones(self.workers, bool)
        erased[workers] = False
        return erased

    def _pattern_decodable(self, erased: NDArray[np.bool_]) -> bool:
        return not bool(erased_inputs(erased)[self.slots].any())

    def _encode(self, blocks: NDArray[Any], out: NDArray[Any]) -> None:
        self._rounds.apply(blocks, out, at=self.slots)

    def _encode_inplace(self, buffer: NDArray[Any]) -> None:
        self._rounds.apply(buffer, buffer)

    def _encode_rows(self, blocks: NDArray[Any], workers: NDArray[np.intp]) -> NDArray[Any]:
        out = np.empty((workers.size, blocks.shape[1]), blocks.dtype)
        self._rounds.apply(blocks, out, at=self.slots, take=workers)
        return out

    def _adjoint(self, answers: NDArray[Any], workers: NDArray[np.intp]) -> NDArray[Any]:
        return self._back(answers, workers, 1.0)

    def _back(
        self, answers: NDArray[Any], workers: NDArray[np.intp], factor: float
    ) -> NDArray[Any]:
        out = np.empty((self.data_blocks, answers.shape[1]), answers.dtype)
        self._rounds.adjoint(answers, out, at=workers, take=self.slots, factor=factor)
        return out

    def _estimate(self, workers: NDArray[np.intp], answers: NDArray[Any]) -> Estimate:
        """The paper's anytime estimator T = (1/m) sum z_i y_i^T, unbiased over the signs."""
        relative = self.predicted_error(workers.size)
        return Estimate(
            value=self._back(answers, workers, 1.0 / max(workers.size, 1)),
            relative_error=relative,
            relative_error_upper=max(
                relative, upper_relative_error(self.workers, self.slots, workers)
            ),
            absolute_error=relative * math.sqrt(mean_square(answers)) if workers.size else math.inf,
            method="sketch",
        )


def power_of_two(workers: object) -> int:
    """Return ``workers``, or raise InvalidCode naming the nearest powers of two."""
    order = integer("workers", workers, 2, 1 << 20, hint="; this class needs a power of two")
    if order & (order - 1):
        below = 1 << (order.bit_length() - 1)
        raise InvalidCode(
            f"workers must be a power of two for a polar code, got {order}: take {below} or "
            f"{2 * below}"
        )
    return order
