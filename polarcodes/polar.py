"""Randomised polar codes: the Hadamard transform with the worst slots frozen to zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE
from polarcodes.checks import integer
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
from polarcodes.sequential_code import SequentialCode, checked_epsilon
from polarcodes.sequential_plan import SequentialPlan
from polarcodes.syndrome import SyndromeDecoder


class PolarCode(SequentialCode):
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
        epsilon = checked_epsilon(epsilon)
        if slots is None:
            slots = data_slots(order, blocks, epsilon)
        self._assemble(seed, epsilon, slots, random_signs(order, seed))

    def _assemble(
        self, seed: int, epsilon: float, slots: NDArray[np.intp], signs: NDArray[np.int8]
    ) -> None:
        super().__init__(seed, epsilon, Rounds(signs[None]), slots, np.arange(signs.size))
        self._signs = signs

    @cached_property
    def _syndrome(self) -> SyndromeDecoder:
        return SyndromeDecoder(self._transform, self._inputs, self._positions)

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
            order = power_of_two(manifest["workers"])
            blocks = integer("data_blocks", manifest["data_blocks"], 1, order)
            seed = integer("seed", manifest["seed"], 0, None)
            epsilon = checked_epsilon(manifest["epsilon"])
        code = cls.__new__(cls)
        slots = fields.distinct_indices("slots", blocks, order)
        code._assemble(seed, epsilon, slots, fields.signs("signs", order))
        return code

    @property
    def _sizes(self) -> Sequence[int]:
        return (2,) * (self.workers.bit_length() - 1)

    def _reached(self, workers: NDArray[np.intp]) -> NDArray[np.bool_]:
        return np.asarray(~erased_inputs(self._erased(workers))[self.slots])

    def _sequential_plan(self, workers: NDArray[np.intp]) -> DecodingPlan:
        is_data = np.zeros(self.workers, bool)
        is_data[self.slots] = True
        operations = compile_operations(is_data, self._erased(workers))
        return SequentialPlan(workers, operations, self.slots, self._signs[self.slots])

    def _erased(self, workers: NDArray[np.intp]) -> NDArray[np.bool_]:
        erased = np.ones(self.workers, bool)
        erased[workers] = False
        return erased

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
