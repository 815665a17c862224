"""A coded and an uncoded copy of one matrix on a warm local stack, for benchmarks of whole runs."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polarlambda import CodedMatrix, encode
from polarlambda.local.stack import LocalStack

WORKERS = 64
TOLERANCE = 1e-5


RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Pair:
    """The same matrix encoded with N = 64, s = `data_blocks`, and cut into s blocks uncoded."""

    stack: LocalStack
    coded: CodedMatrix
    uncoded: CodedMatrix
    x: np.ndarray
    expected: np.ndarray
    folder: Path

    def run(self, kind: str, delays: np.ndarray | None = None) -> float:
        """Wall seconds of one product, from the call to the result in hand; sleeping workers are
        woken after it.

        `delays` (64,) seconds by worker. RuntimeError when the result is not exact or differs from
        NumPy's.
        """
        if delays is None:
            self.stack.set_chaos()
        else:
            table = self.folder / "round.csv"
            # The service takes the row's minimum off: an extra, unused column of 0 keeps the
            # values.
            np.savetxt(table, np.append(delays, 0.0)[None, :], delimiter=",")
            self.stack.set_chaos(delays=table)
        matrix = self.coded if kind == "coded" else self.uncoded
        begin = time.perf_counter()
        result = matrix.multiply(self.x)
        seconds = time.perf_counter() - begin
        self.stack.drain()
        difference = np.linalg.norm(result.value - self.expected) / np.linalg.norm(self.expected)
        if not result.exact or not difference <= TOLERANCE:
            raise RuntimeError(f"the {kind} run is {result.state}, {difference:.1e} from NumPy's")
        return seconds


def save(name: str, results: dict[str, Any]) -> None:
    """Write benchmarks/results/NAME.json."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(results, indent=1, allow_nan=False) + "\n")


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
                    pair.run(kind)  # connections and caches
                yield pair
        finally:
            os.environ.clear()
            os.environ.update(before)
