"""A coded and an uncoded copy of one matrix on a warm local stack, for benchmarks of whole runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.harness import WrongResult, require_close, seconds
from polarlambda import CodedMatrix, encode
from polarlambda.local.stack import LocalStack

WORKERS = 64
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Pair:
    """The same matrix encoded with N = 64, s = `data_blocks`, and cut into s blocks uncoded."""

    stack: LocalStack
    coded: CodedMatrix
    uncoded: CodedMatrix
    x: np.ndarray
    expected: np.ndarray
    folder: Path

    def multiply(self, kind: str) -> None:
        """One product, "coded" or "uncoded"; WrongResult unless it is exact and that of NumPy."""
        result = (self.coded if kind == "coded" else self.uncoded).multiply(self.x)
        if not result.exact:
            raise WrongResult(f"the {kind} run ended as {result.state}: {result.message}")
        require_close(f"the {kind} run", result.value, self.expected, TOLERANCE)

    def wall_seconds(self, kind: str, delays: np.ndarray | None = None) -> float:
        """Wall time of one product, `delays` (64,) seconds by worker; then sleepers are woken."""
        if delays is None:
            self.stack.set_chaos()
        else:
            table = self.folder / "round.csv"
            # The service takes the row's minimum off: an extra, unused 0 keeps the values.
            np.savetxt(table, np.append(delays, 0.0)[None, :], delimiter=",")
            self.stack.set_chaos(delays=table)
        taken = seconds(lambda: self.multiply(kind))
        self.stack.drain()
        return taken


@contextmanager
def warm_pair(rows: int, columns: int, data_blocks: int) -> Iterator[Pair]:
    """Encode a random uint8 matrix of (rows, columns) both ways on a stack with 64 warm
    environments."""
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 256, (rows, columns), dtype=np.uint8)
    x = rng.standard_normal(columns, dtype=np.float32)
    expected = np.concatenate([part @ x.astype(np.float64) for part in np.array_split(matrix, 16)])
    before = dict(os.environ)
    with LocalStack(build="stale") as stack, tempfile.TemporaryDirectory() as folder:
        os.environ.update(stack.environment)  # the product finds this stack as it would find AWS
        try:
            encode(matrix, "coded", workers=WORKERS, data_blocks=data_blocks)
            encode(matrix, "uncoded", code="uncoded", workers=data_blocks)
            stack.warm("WorkerFunction", WORKERS)
            with CodedMatrix.open("coded") as coded, CodedMatrix.open("uncoded") as uncoded:
                pair = Pair(stack, coded, uncoded, x, expected, Path(folder))
                for kind in ("coded", "uncoded"):
                    pair.multiply(kind)  # connections and caches
                yield pair
        finally:
            os.environ.clear()
            os.environ.update(before)
