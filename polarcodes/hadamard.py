"""Hadamard codes with random slots: exact from any s answers in practice, at polar cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE
from polarcodes.checks import integer, worker_indices
from polarcodes.errors import InvalidCode
from polarcodes.estimate import Estimate, mean_square
from polarcodes.manifest import Fields
from polarcodes.randomness import random_angles, random_signs, random_subset
from polarcodes.rounds import Rounds
from polarcodes.rounds_error_bar import error_factor, upper_relative_error
from polarcodes.syndrome import SyndromeDecoder
from polarcodes.syndrome_arrivals import SyndromeArrivals
from polarcodes.syndrome_plan import SyndromePlan
from polarcodes.transform_code import TransformCode

ROTATION = 0.6
"""Angles of rotated stages are uniform in pi/4 +- this many radians."""

_ATTEMPTS = 64
_PUNCTURED_TOLERANCE = 1e-5  # predicted error with all N answers: 300 times their own


class HadamardCode(TransformCode):
    """Coded block i is sum_k G[i, slots[k]] U_k with G one or two randomised Hadamard rounds.

    With two rotated rounds, the default, the first s answers decoded for 30,990 of 31,000 codes and
    orders at N = 8 to 1,024 and redundancy 1/16 to 1/2, and the first s + 1 for the others
    (benchmarks/thresholds.py): one random square matrix in thousands is that close to singular. Two
    plain rounds do so from N = 128 on. One round alone keeps integers exact; it needs about 1.4
    answers more than 56 at N = 64, 0.4 more than 224 at N = 256 and none at N = 1024. Decodable
    means that the predicted error of the product meets the tolerance. Encoding costs one plain
    transform per round; decoding two, and e f multiplications per column.

    Coded blocks that were computed in float32 carry a relative error of 0.8e-7 to 1.9e-7 (N = 8 to
    4,096, two rounds), five times that of rounding alone: pass it as ``answer_error`` where the
    predicted error matters.

    Parameters
    ----------
    workers : int
        N of at least 2. Unless it is a power of two the transform has the next one's order N' and
        N random rows of it are kept (puncturing), drawn again until all N decode: the others count
        as answers that never come.
    data_blocks : int
        s, in 1..N.
    seed : int
        Non-negative; gives slots, signs, angles and kept rows, independently of who straggles.
    rounds : int
        1 or 2.
    rotated : bool, optional
        Whether stages have random angles (:mod:`polarcodes.rounds`); only with two rounds, where
        it is the default.

    References
    ----------
    The transform, its randomisation and the estimator: Bartan and Pilanci, arXiv 2309.00682; the
    syndrome decoder, second round and rotated stage are this project's own.

    >>> code = HadamardCode(8, 5, seed=1)
    >>> U = np.arange(10.0).reshape(5, 2)
    >>> S = [6, 0, 3, 7, 2]
    >>> np.allclose(code.plan(S).apply(code.encode(U)[S]), U)
    True
    """

    name = "hadamard"

    def __init__(
        self,
        workers: int,
        data_blocks: int,
        seed: int = 0,
        *,
        rounds: int = 2,
        rotated: bool | None = None,
    ) -> None:
        count = integer("workers", workers, 2, 1 << 20)
        blocks = integer("data_blocks", data_blocks, 1, count)
        seed = integer("seed", seed, 0, None)
        rounds = integer("rounds", rounds, 1, 2)
        if rotated is None:
            rotated = rounds == 2
        _check_rotated(rotated, rounds)
        order = 1 << (count - 1).bit_length()
        for attempt in range(_ATTEMPTS):
            # Four streams of the seed each time: signs, slots, angles, kept rows.
            stream = 4 * attempt
            inputs = random_subset(order, blocks, seed, stream=stream + 1)
            shape = Rounds.angle_shape(order)
            angles = random_angles(shape, ROTATION, seed, stream=stream + 2) if rotated else None
            signs = random_signs(rounds * order, seed, stream=stream).reshape(rounds, order)
            positions = random_subset(order, count, seed, stream=stream + 3)
            drawn = Rounds(signs, angles)
            if order == count or _decodes_all(drawn, inputs, positions):
                self._assemble(seed, inputs, drawn, positions)
                return
        raise InvalidCode(
            f"no code of {count} workers, {blocks} data blocks and {rounds} rounds that decodes "
            f"all its answers was found in {_ATTEMPTS} draws: take another seed, fewer data "
            f"blocks or {order} workers"
        )

    def _assemble(
        self,
        seed: int,
        inputs: NDArray[np.intp],
        rounds: Rounds,
        positions: NDArray[np.intp],
    ) -> None:
        super().__init__(seed, rounds, inputs, positions)
        self._rounds = rounds

    @cached_property
    def _syndrome(self) -> SyndromeDecoder:
        return SyndromeDecoder(self._rounds, self._inputs, self._positions)

    @property
    def rounds(self) -> Rounds:
        """The transform G, of order N' >= N, with its signs and angles."""
        return self._rounds

    @property
    def row_weight(self) -> int:
        """A bound on sum |G_ik|: s for one round, sqrt(s N') rounded up for two."""
        if self._rounds.plain:
            return self.data_blocks
        return math.isqrt(self.data_blocks * self._rounds.order) + 1

    def arrivals(
        self, *, answer_error: float = ANSWER_ERROR, tolerance: float = TOLERANCE
    ) -> SyndromeArrivals:
        """Return an empty arrivals state: O(1) for each of the first s - 1 arrivals."""
        return self._syndrome.arrivals(answer_error, tolerance)

    def decodable(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> bool:
        """Return whether the product decoded from S meets the tolerance. O(e^2 f) if e <= f."""
        workers = worker_indices(S, self.workers)
        return self._syndrome.predicted_error(workers, answer_error) <= tolerance

    def plan(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> SyndromePlan:
        """Return the syndrome decoder's plan; raises NotDecodable."""
        return self._syndrome.plan(worker_indices(S, self.workers), answer_error, tolerance)

    def predicted_error(self, m: int) -> float:
        """Return sqrt(c (N'-m) / (m (N'-1))), the mean over codes and sets of size m.

        c is s - 1 for one round, s + 1 - 2 s / N' for two and nearly that for rotated ones:
        :func:`~polarcodes.rounds_error_bar.error_factor`.
        """
        arrived = integer("m", m, 0, self.workers)
        if arrived in (0, self.workers):
            return 0.0 if arrived else math.inf
        order = self._rounds.order
        factor = error_factor(self._rounds, self.data_blocks, ROTATION)
        return math.sqrt(factor * (order - arrived) / (arrived * (order - 1)))

    def to_manifest(self) -> dict[str, Any]:
        """Return the code as pure JSON: slots, signs, angles and kept rows written out."""
        angles = self._rounds.angles
        return {
            "name": self.name,
            "version": 1,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "seed": self.seed,
            "rounds": len(self._rounds.signs),
            "rotated": angles is not None,
            "inputs": self._inputs.tolist(),
            "signs": self._rounds.signs.tolist(),
            "angles": [] if angles is None else angles.tolist(),
            "positions": self._positions.tolist(),
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> HadamardCode:
        """Rebuild the code from its explicit slots, signs, angles and rows, whatever made them."""
        explicit = ("rounds", "rotated", "inputs", "signs", "angles", "positions")
        fields = Fields(manifest, cls.name, ("workers", "data_blocks", "seed", *explicit))
        rotated = manifest["rotated"]
        with fields.as_invalid_manifest():
            count = integer("workers", manifest["workers"], 2, 1 << 20)
            blocks = integer("data_blocks", manifest["data_blocks"], 1, count)
            seed = integer("seed", manifest["seed"], 0, None)
            rounds = integer("rounds", manifest["rounds"], 1, 2)
            _check_rotated(rotated, rounds)
        order = 1 << (count - 1).bit_length()
        code = cls.__new__(cls)
        code._assemble(
            seed,
            fields.distinct_indices("inputs", blocks, order),
            Rounds(
                fields.sign_rows("signs", (rounds, order)),
                fields.numbers("angles", Rounds.angle_shape(order) if rotated else (0, 0)),
            ),
            fields.distinct_indices("positions", count, order),
        )
        return code

    def _estimate(self, workers: NDArray[np.intp], answers: NDArray[Any]) -> Estimate:
        """T = (1/m) sum z_i y_i^T of arXiv 2309.00682: unbiased over signs and angles.

        A punctured code decodes when everybody has answered: T would not be exact even then.
        """
        relative = self.predicted_error(workers.size)
        if workers.size == self.workers < self._rounds.order:
            return Estimate(self.plan(workers).apply(answers), 0.0, 0.0, 0.0, "syndrome")
        bar = upper_relative_error(self._rounds, self._inputs, self._positions[workers])
        return Estimate(
            value=self._back(answers, workers, 1.0 / max(workers.size, 1)),
            relative_error=relative,
            relative_error_upper=max(relative, bar),
            absolute_error=relative * math.sqrt(mean_square(answers)) if workers.size else math.inf,
            method="sketch",
        )


def _decodes_all(rounds: Rounds, inputs: NDArray[np.intp], positions: NDArray[np.intp]) -> bool:
    """Whether all N answers of a punctured code determine the product well."""
    decoder = SyndromeDecoder(rounds, inputs, positions)
    error = decoder.predicted_error(np.arange(positions.size), ANSWER_ERROR)
    return error <= _PUNCTURED_TOLERANCE


def _check_rotated(rotated: object, rounds: int) -> None:
    if not isinstance(rotated, bool):
        raise InvalidCode(f"rotated must be True or False, got {rotated!r}")
    if rotated and rounds == 1:
        raise InvalidCode(
            "rotated=True needs rounds=2: one round is kept plain because it is then exact in "
            "integers, and one rotated round would not be"
        )
