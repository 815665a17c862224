"""LT codes: sums of random data blocks with the robust soliton distribution of degrees."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE
from polarcodes.checks import integer, real, worker_indices
from polarcodes.errors import InvalidCode, InvalidManifest
from polarcodes.lt_plan import PeelingPlan
from polarcodes.manifest import Fields
from polarcodes.peeling import Peeling, Sums, peel
from polarcodes.randomness import words
from polarcodes.searched import SearchedCode

Ids = NDArray[np.intp]

DECODERS = ("inactivation", "peeling")
_ATTEMPTS = 500
_COLUMNS = 2048


class LtCode(SearchedCode):
    """Worker i holds the sum of d_i random data blocks; redrawn until all N answers decode.

    Peeling decodes with an addition per edge but needs many more answers than s at the lengths of
    one job; inactivation (the default) also solves what peeling leaves by a small dense system and
    needs as many answers as the rank does. Integers stay exact. Decodable means that the decoder
    gets through, with a well-conditioned dense system; the tolerance is not looked at.

    Parameters
    ----------
    workers, data_blocks, seed : int
        N, s in 1..N, and where the sums come from.
    decoder : str
        ``"inactivation"`` or ``"peeling"``; the code is redrawn until this one takes N answers.
    c, delta : float
        Of the robust soliton distribution: R = c ln(s / delta) sqrt(s) sums of degree one.

    References
    ----------
    Luby, "LT Codes" (FOCS 2002); Mallick, Chaudhari and Joshi, "Rateless Codes for Near-Perfect
    Load Balancing in Distributed Matrix-Vector Multiplication", arXiv 1804.10331.

    >>> code = LtCode(12, 6, seed=0)
    >>> U = np.arange(12.0).reshape(6, 2)
    >>> np.allclose(code.plan(range(12)).apply(code.encode(U)), U)
    True
    """

    name = "lt"

    def __init__(
        self,
        workers: int,
        data_blocks: int,
        seed: int = 0,
        *,
        decoder: str = "inactivation",
        c: float = 0.1,
        delta: float = 0.5,
    ) -> None:
        count = integer("workers", workers, 1, 1 << 16)
        blocks = integer("data_blocks", data_blocks, 1, count)
        seed = integer("seed", seed, 0, None)
        _check_decoder(decoder)
        shares = np.cumsum(robust_soliton(blocks, real("c", c), real("delta", delta)))
        for attempt in range(_ATTEMPTS):
            sums = _draw(count, blocks, shares, seed, attempt)
            if peel(sums, blocks, inactivate=decoder == "inactivation") is not None:
                self._assemble(blocks, seed, decoder, sums)
                return
        raise InvalidCode(
            f"none of {_ATTEMPTS} LT codes of {blocks} data blocks and {count} workers decodes all "
            "its answers: take fewer data blocks, decoder='inactivation' or another seed"
        )

    def _assemble(self, data_blocks: int, seed: int, decoder: str, sums: Sums) -> None:
        super().__init__(len(sums), data_blocks, seed, np.arange(data_blocks))
        self._decoder = decoder
        self._sums = sums

    @property
    def decoder(self) -> str:
        """Which decoder says what is decodable: inactivation or peeling."""
        return self._decoder

    @property
    def row_weight(self) -> int:
        """The largest degree: every coefficient is one."""
        return int(np.diff(self._sums.starts).max())

    def plan(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> PeelingPlan:
        """Return the order of peeling for S; raises NotDecodable."""
        workers = worker_indices(S, self.workers)
        received = self._sums.take(np.sort(workers))
        peeling = self._peel(received) if workers.size >= self.data_blocks else None
        if peeling is None:
            raise self._refusal(workers, answer_error, tolerance)
        return PeelingPlan(workers, received, peeling, self.data_blocks)

    def to_manifest(self) -> dict[str, Any]:
        """Return the code as pure JSON: the blocks of every sum written out."""
        return {
            "name": self.name,
            "version": 1,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "seed": self.seed,
            "decoder": self.decoder,
            "sums": [self._sums.row(index) for index in range(self.workers)],
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> LtCode:
        """Rebuild the code from its explicit sums; raises InvalidManifest."""
        fields = Fields(manifest, cls.name, ("workers", "data_blocks", "seed", "decoder", "sums"))
        with fields.as_invalid_manifest():
            count = integer("workers", manifest["workers"], 1, 1 << 16)
            blocks = integer("data_blocks", manifest["data_blocks"], 1, count)
            seed = integer("seed", manifest["seed"], 0, None)
            _check_decoder(manifest["decoder"])
        rows = manifest["sums"]
        if not isinstance(rows, list) or len(rows) != count:
            raise InvalidManifest(f"sums must be {count} lists of data blocks")
        for row in rows:
            whole = isinstance(row, list) and all(type(block) is int for block in row)
            if not whole or not row or len(set(row)) != len(row):
                raise InvalidManifest("sums must be lists of distinct data blocks, none empty")
            if min(row) < 0 or max(row) >= blocks:
                raise InvalidManifest(f"sums must hold data blocks in 0..{blocks - 1}")
        starts = np.cumsum([0, *(len(row) for row in rows)])
        code = cls.__new__(cls)
        chosen = np.array([block for row in rows for block in row], np.intp)
        code._assemble(blocks, seed, manifest["decoder"], Sums(starts, chosen))
        return code

    def _peel(self, received: Sums) -> Peeling | None:
        return peel(received, self.data_blocks, inactivate=self._decoder == "inactivation")

    def _decodes(self, workers: Ids, answer_error: float, tolerance: float) -> bool:
        return self._peel(self._sums.take(np.sort(workers))) is not None

    def _row_energy(self, workers: Ids) -> float:
        return float(np.diff(self._sums.starts)[workers].sum())

    def _encode(self, blocks: NDArray[Any], out: NDArray[Any]) -> None:
        self._add_up(blocks, np.arange(self.workers), out)

    def _encode_inplace(self, buffer: NDArray[Any]) -> None:
        self._encode(buffer[: self.data_blocks], buffer)

    def _encode_rows(self, blocks: NDArray[Any], workers: Ids) -> NDArray[Any]:
        out = np.empty((workers.size, blocks.shape[1]), blocks.dtype)
        self._add_up(blocks, workers, out)
        return out

    def _add_up(self, blocks: NDArray[Any], workers: Ids, out: NDArray[Any]) -> None:
        rows = [self._sums.row(worker) for worker in workers.tolist()]
        for start in range(0, blocks.shape[1], _COLUMNS):
            part = blocks[:, start : start + _COLUMNS].astype(out.dtype)  # a copy: out may alias
            for target, row in zip(out[:, start : start + _COLUMNS], rows, strict=True):
                target[...] = part[row[0]]
                for block in row[1:]:
                    target += part[block]

    def _adjoint(self, answers: NDArray[Any], workers: Ids) -> NDArray[Any]:
        out = np.zeros((self.data_blocks, answers.shape[1]), answers.dtype)
        for answer, worker in zip(answers, workers.tolist(), strict=True):
            for block in self._sums.row(worker):
                out[block] += answer
        return out


def robust_soliton(blocks: int, c: float, delta: float) -> NDArray[np.float64]:
    """Return the probabilities of degrees 1..s (Luby 2002, definition 11).

    >>> robust_soliton(4, 0.1, 0.5).round(3).tolist()
    [0.297, 0.464, 0.169, 0.07]
    """
    if not (c > 0 and 0 < delta < 1):
        raise InvalidCode(f"c must be positive and delta within (0, 1), got {c} and {delta}")
    degrees = np.arange(1, blocks + 1)
    ideal = np.append(1.0 / blocks, 1.0 / (degrees[1:] * (degrees[1:] - 1.0)))
    spread = c * math.log(blocks / delta) * math.sqrt(blocks)
    spike = min(max(round(blocks / spread), 1), blocks)
    extra = np.zeros(blocks)
    extra[: spike - 1] = spread / (degrees[: spike - 1] * blocks)
    extra[spike - 1] = spread * math.log(max(spread / delta, 1.0)) / blocks
    total = ideal + extra
    return np.asarray(total / total.sum())


def _draw(count: int, blocks: int, shares: NDArray[np.float64], seed: int, attempt: int) -> Sums:
    raw = words(count * (blocks + 1), seed, stream=attempt).reshape(count, blocks + 1)
    units = (raw[:, 0] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    degrees = np.minimum(np.searchsorted(shares, units, side="right") + 1, blocks)
    order = np.argsort(raw[:, 1:], axis=1, kind="stable")
    chosen = [np.sort(row[:degree]) for row, degree in zip(order, degrees, strict=True)]
    return Sums(np.cumsum([0, *degrees.tolist()]), np.concatenate(chosen))


def _check_decoder(decoder: object) -> None:
    if decoder not in DECODERS:
        raise InvalidCode(f"decoder must be one of {', '.join(DECODERS)}, got {decoder!r}")
