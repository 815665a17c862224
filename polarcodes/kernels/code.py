"""Polar codes from any kernels, for any number of workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE
from polarcodes.checks import integer
from polarcodes.errors import InvalidCode
from polarcodes.estimate import Estimate
from polarcodes.kernels.arrivals import KernelArrivals
from polarcodes.kernels.error import EstimatorError
from polarcodes.kernels.kernel import checked_kernel
from polarcodes.kernels.plan import KernelPlan
from polarcodes.kernels.recursion import reached_inputs
from polarcodes.kernels.sequential import compile_sums
from polarcodes.kernels.transform import KernelTransform
from polarcodes.manifest import Fields
from polarcodes.plan import DecodingPlan
from polarcodes.sequential_code import SequentialCode, checked_epsilon

Ids = NDArray[np.intp]
Float = NDArray[np.float64]


class KernelPolarCode(SequentialCode):
    """Coded block i is sum_k G[p_i, u_k] d[u_k] U_k with G = K_1 (x) ... (x) K_t (x) I_q.

    S is decodable when the sequential decoder reaches every data input or, for orthogonal kernels,
    when the frozen inputs determine the missing answers. Encoding costs N' sum l_j multiplications
    a column, sequential decoding about twice that. Integers stay exact where all
    kernels are of integers. ``make_code("polar", ...)`` makes these codes wherever N is no power of
    two or kernels or stages are asked for: see :func:`polarcodes.kernels.make.make_polar`.

    Parameters
    ----------
    seed, epsilon : int, float
        For the record: where signs and positions came from, what the inputs were chosen for.
    kernels : polarising matrices, outermost first
    inputs : (s,) intp
        Inputs of G that carry data, the others are zero.
    positions : (N,) intp
        Outputs of G that the workers hold. The other N' - N are punctured: nobody computes them,
        and for the decoder they are answers that never come.
    signs : (N',) int8
        The diagonal of D.
    """

    name = "polar"

    def __init__(
        self,
        seed: int,
        epsilon: float,
        kernels: Sequence[Float],
        inputs: Ids,
        positions: Ids,
        signs: NDArray[np.int8],
    ) -> None:
        self._kernels = KernelTransform(kernels, signs)
        super().__init__(seed, epsilon, self._kernels, inputs, positions)
        if not self._reached(np.arange(self.workers)).all():
            raise InvalidCode("the inputs must be ones that all N answers together determine")

    @property
    def transform(self) -> KernelTransform:
        """G D, of order N' >= N."""
        return self._kernels

    @cached_property
    def row_weight(self) -> int:
        """The largest sum of |coefficients| over a row of G, rounded up."""
        return math.ceil(self._kernels.row_weight(self._inputs) - 1e-9)

    @cached_property
    def _error(self) -> EstimatorError:
        return EstimatorError(self._kernels, self._inputs)

    def arrivals(
        self, *, answer_error: float = ANSWER_ERROR, tolerance: float = TOLERANCE
    ) -> KernelArrivals:
        """Return an empty arrivals state: one step a stage for each arrival."""
        transform, decoder = self._kernels, self._syndrome
        syndrome = None if decoder is None else decoder.arrivals(answer_error, tolerance)
        return KernelArrivals(
            transform.sizes,
            transform.order,
            self._inputs,
            self._positions,
            answer_error,
            tolerance,
            syndrome,
        )

    def predicted_error(self, m: int) -> float:
        """Return the rms relative error of T over a uniform S and blocks of equal strength."""
        arrived = integer("m", m, 0, self.workers)
        return 0.0 if arrived == self.workers else math.sqrt(self._error.square(arrived))

    def to_manifest(self) -> dict[str, Any]:
        """Return the code as pure JSON: kernels, inputs, positions and signs written out."""
        return {
            "name": self.name,
            "version": 1,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "seed": self.seed,
            "epsilon": self._epsilon,
            "kernels": [kernel.tolist() for kernel in self._kernels.kernels],
            "inputs": self._inputs.tolist(),
            "positions": self._positions.tolist(),
            "signs": self._kernels.signs.tolist(),
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> KernelPolarCode:
        """Rebuild the code from what is written out; raises InvalidManifest."""
        explicit = ("epsilon", "kernels", "inputs", "positions", "signs")
        fields = Fields(manifest, cls.name, ("workers", "data_blocks", "seed", *explicit))
        with fields.as_invalid_manifest():
            workers = integer("workers", manifest["workers"], 2, 1 << 20)
            blocks = integer("data_blocks", manifest["data_blocks"], 1, workers)
            seed = integer("seed", manifest["seed"], 0, None)
            epsilon = checked_epsilon(manifest["epsilon"])
            kernels = checked_kernels(manifest["kernels"])
            signs = manifest["signs"]
            order = len(signs) if isinstance(signs, list) else 0
            if order < workers or order % math.prod(len(kernel) for kernel in kernels):
                raise InvalidCode(
                    f"signs must be at least {workers}, a multiple of the kernels' sizes"
                )
            inputs = fields.distinct_indices("inputs", blocks, order)
            positions = fields.distinct_indices("positions", workers, order)
            return cls(seed, epsilon, kernels, inputs, positions, fields.signs("signs", order))

    def _known(self, workers: Ids) -> NDArray[np.bool_]:
        known = np.zeros(self._kernels.order, bool)
        known[self._positions[workers]] = True
        return known

    @property
    def _sizes(self) -> Sequence[int]:
        return self._kernels.sizes

    def _reached(self, workers: Ids) -> NDArray[np.bool_]:
        return reached_inputs(self._kernels.sizes, self._known(workers))[self._inputs]

    def _sequential_plan(self, workers: Ids) -> DecodingPlan:
        is_data = np.zeros(self._kernels.order, bool)
        is_data[self._inputs] = True
        steps = compile_sums(self._kernels.kernels, is_data, self._known(workers))
        return KernelPlan(workers, self._positions[workers], steps, self._inputs, self._kernels)

    def _estimate(self, workers: Ids, answers: NDArray[Any]) -> Estimate:
        """T = (N'/m) sum w_i y_i^T: see :mod:`polarcodes.kernels.error`. Exact with all N."""
        transform, arrived = self._kernels, workers.size
        if arrived == self.workers < transform.order:
            return Estimate(self.plan(workers).apply(answers), 0.0, 0.0, 0.0, "decoded")
        rows = self._positions[workers]
        value = np.empty((self.data_blocks, answers.shape[1]), answers.dtype)
        factor = transform.order / max(arrived, 1)
        transform.solve(answers, value, at=rows, take=self._inputs, factor=factor)
        relative = self.predicted_error(arrived)
        absolute = math.inf
        if arrived:
            # E ||y_i||^2 = ||z_i||^2 ||X||^2 / s over the signs, for blocks of equal strength.
            energy = float(np.sum(answers.astype(np.float64) ** 2)) * self.data_blocks
            absolute = relative * math.sqrt(energy / self._error.row_energies[rows].sum())
        upper = max(relative, self._error.upper(rows))
        return Estimate(value, relative, upper, absolute, "sketch")


def checked_kernels(kernels: Any) -> list[Float]:
    """Return polarising kernels, or raise InvalidCode naming the first that is not."""
    if not isinstance(kernels, (list, tuple)) or not kernels:
        raise InvalidCode(
            f"kernels must be a list of square matrices, outermost first, got {kernels!r}"
        )
    return [checked_kernel(f"kernels[{i}]", kernel) for i, kernel in enumerate(kernels)]
