"""Polynomial codes over the reals beside grids of Hadamard codes: what decoding costs in digits.

For grids of N = n x n workers with (n - 2) x (n - 2) data blocks the codes get random answers until
they decode at all (rank), the error of a decoded product is measured against the truth in float64,
and the condition number of the answers' generator rows is computed. Storage: blocks kept of A and
of B, in units of the matrices.

    python -m benchmarks.polynomial [--small]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.harness import save
from polarcodes import ErasureCode, make_code
from polarcodes.any_erasures import sturdy_code
from polarcodes.grid import GridCode
from polarcodes.polynomial import PolynomialCode

SIDES = (4, 5, 6, 8, 12, 16)
TRIALS = 20
COLUMNS = 8


@dataclass(frozen=True)
class Row:
    """Medians and worst over the trials; `answers`: how many were needed on average."""

    code: str
    workers: int
    data_blocks: int
    storage: float
    answers: float
    condition: float
    worst_condition: float
    error: float
    worst_error: float


def main() -> int:
    """Print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.polynomial")
    parser.add_argument("--small", action="store_true", help="a few seconds: does it still run?")
    small = parser.parse_args().small
    sides, trials = (SIDES[:2], 3) if small else (SIDES, TRIALS)
    rows = [row for side in sides for row in compare(side, trials)]
    print(table(rows))
    path = save("polynomial", {"small": small, "rows": [asdict(row) for row in rows]})
    print(f"written to {path}")
    return 0


def compare(side: int, trials: int) -> list[Row]:
    """One row for each code of side^2 workers."""
    s = side - 2
    line = sturdy_code(
        lambda seed: make_code("hadamard", workers=side, data_blocks=s, seed=seed), 0, 2
    ) or make_code("hadamard", workers=side, data_blocks=s)
    codes: list[tuple[str, ErasureCode, float]] = [
        ("grid of Hadamard codes", GridCode(line, line), 2 * side / s),
    ]
    for basis in ("chebyshev", "monomial"):
        code = PolynomialCode(side * side, (s, s), basis=basis)
        codes.append((f"polynomial, {basis}", code, 2 * side * side / s))
    return [measure(name, code, storage, trials) for name, code, storage in codes]


def measure(name: str, code: ErasureCode, storage: float, trials: int) -> Row:
    """Decode random answers by least squares in float64, as well as the code can."""
    rng = np.random.default_rng(0)
    conditions, errors, counts = [], [], []
    for _ in range(trials):
        order = rng.permutation(code.workers)
        count = needed(code, order)
        X = rng.standard_normal((code.data_blocks, COLUMNS))
        S = order[:count]
        rows = code.rows(S)
        answers = code.encode(X)[S]
        if isinstance(code, GridCode):
            decoded = code.plan(S, tolerance=np.inf).apply(answers)
        else:
            decoded = np.linalg.lstsq(rows, answers, rcond=None)[0]
        conditions.append(float(np.linalg.cond(rows)))
        errors.append(float(np.linalg.norm(decoded - X) / np.linalg.norm(X)))
        counts.append(count)
    return Row(
        name,
        code.workers,
        code.data_blocks,
        storage,
        float(np.mean(counts)),
        float(np.median(conditions)),
        float(np.max(conditions)),
        float(np.median(errors)),
        float(np.max(errors)),
    )


def needed(code: ErasureCode, order: np.ndarray) -> int:
    """Answers in this order until the set decodes; s of them for a polynomial code, in theory."""
    if not isinstance(code, GridCode):
        return code.data_blocks
    state = code.arrivals(tolerance=1e6)
    for count, worker in enumerate(order.tolist(), 1):
        state.add(worker)
        if state.decodable:
            return count
    return code.workers


def table(rows: list[Row]) -> str:
    """The rows as aligned text."""
    head = (
        f"{'':<24} {'N':>4} {'s':>4} {'stored':>7} {'answers':>8} {'condition':>10} {'worst':>8} "
    )
    lines = [head + f"{'error':>8} {'worst':>8}"]
    for row in rows:
        lines.append(
            f"{row.code:<24} {row.workers:>4} {row.data_blocks:>4} {row.storage:>7.1f} "
            f"{row.answers:>8.1f} {row.condition:>10.1e} {row.worst_condition:>8.1e} "
            f"{row.error:>8.1e} {row.worst_error:>8.1e}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
