"""Sequential decoding: time over a memory copy of the answers, memory, and a dense solve."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.harness import Ratio, main, require_close, time_pairs
from polarcodes import DecodingPlan, ErasureCode, make_code

COLUMNS = 2000
TIME_TARGET, MEMORY_TARGET, DENSE_TARGET = 60.0, 3.0, 10.0


def decodable_set(code: ErasureCode, seed: int) -> list[int]:
    """Workers in random order until the sequential decoder is ready: its steps are the most."""
    state = code.arrivals()
    arrived: list[int] = []
    for worker in np.random.default_rng(seed).permutation(code.workers).tolist():
        state.add(worker)
        arrived.append(worker)
        if state.method == "sequential":
            break
    return arrived


def peak_bytes(plan: DecodingPlan, Y: np.ndarray) -> int:
    """Bytes of the answers plus the most that NumPy held at once while decoding them."""
    tracemalloc.start()
    try:
        plan.apply(Y)
        return tracemalloc.get_traced_memory()[1] + Y.nbytes
    finally:
        tracemalloc.stop()


def measure(
    workers: int, blocks: int, pairs: int, target: float | None, memory_target: float | None
) -> list[Ratio]:
    """Rows for one code."""
    code = make_code("polar", workers=workers, data_blocks=blocks)
    S = decodable_set(code, seed=1)
    U = np.random.default_rng(0).standard_normal((blocks, COLUMNS), dtype=np.float32)
    Y = code.encode(U)[S]
    plan = code.plan(S)
    require_close(f"decoding {code!r}", plan.apply(Y), U, 8e-5)
    name = f"N={workers} s={blocks} m={len(S)} L={COLUMNS}"
    peak = peak_bytes(plan, Y)
    return [
        time_pairs(
            f"{name} apply / copy", partial(plan.apply, Y), Y.copy, pairs=pairs, target=target
        ),
        time_pairs(f"{name} plan / copy", partial(code.plan, S), Y.copy, pairs=pairs),
        Ratio(
            f"{name} memory / answers",
            peak / Y.nbytes,
            peak / 1e6,
            Y.nbytes / 1e6,
            "MB",
            memory_target,
        ),
    ]


def against_dense(workers: int, blocks: int, pairs: int, target: float | None) -> Ratio:
    """Planning and decoding, against solving the normal equations of the received rows."""
    code = make_code("polar", workers=workers, data_blocks=blocks)
    S = decodable_set(code, seed=2)
    U = np.random.default_rng(0).standard_normal((blocks, COLUMNS))
    Y = code.encode(U)[S]
    rows = code.rows(S)

    def sequential() -> np.ndarray:
        return code.plan(S).apply(Y)

    def dense() -> np.ndarray:
        return np.linalg.solve(rows.T @ rows, rows.T @ Y)

    require_close(f"decoding {code!r}", sequential(), U, 1e-9)
    return time_pairs(
        f"N={workers} s={blocks} dense solve / plan and apply",
        sequential,
        dense,
        pairs=pairs,
        target=target,
        faster=True,
    )


def run(small: bool) -> Sequence[Ratio]:
    """All rows."""
    if small:
        return [*measure(256, 224, 3, None, None), against_dense(256, 224, 1, None)]
    return [
        *measure(1024, 896, 21, TIME_TARGET, MEMORY_TARGET),
        *measure(256, 224, 21, None, None),
        *measure(4096, 3584, 7, None, None),
        against_dense(4096, 3584, 1, DENSE_TARGET),
    ]


if __name__ == "__main__":
    raise SystemExit(main("decode", __doc__ or "", run))
