"""The cost of Hadamard codes and of the syndrome decoder, over transforms and other decoders."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.harness import Ratio, main, require_close, seconds, time_pairs
from polarcodes import make_code
from polarcodes.erasures import erased_inputs
from polarcodes.transform import transform_inplace

VARIANTS = {
    "1 round": ({"rounds": 1}, 1.1),
    "2 rounds": ({"rotated": False}, 2.2),
    "rotated": ({}, 2.5),
}


def encoding(workers: int, columns: int, pairs: int, judge: bool) -> list[Ratio]:
    """Encoding in place over the plain transform of the same float32 buffer."""
    buffer = np.zeros((workers, columns), np.float32)
    rows = []
    for variant, (options, target) in VARIANTS.items():
        code = make_code("hadamard", workers=workers, data_blocks=workers * 15 // 16, **options)
        rows.append(
            time_pairs(
                f"encode {variant}, N={workers} L={columns} / transform",
                partial(code.encode_inplace, buffer),
                partial(transform_inplace, buffer),
                pairs=pairs,
                target=target if judge else None,
            )
        )
    return rows


def decoding(workers: int, columns: int, pairs: int, judge: bool) -> list[Ratio]:
    """Redundancy 1/16, 5 % of the answers missing: against the sequential decoder and a solve."""
    blocks, missing = workers * 15 // 16, workers // 20
    polar = make_code("polar", workers=workers, data_blocks=blocks)
    rng = np.random.default_rng(0)
    # In random order, workers go missing as long as the sequential decoder can do without them.
    erased = np.zeros(workers, bool)
    for worker in rng.permutation(workers).tolist():
        erased[worker] = erased.sum() < missing
        if erased[worker] and erased_inputs(erased)[polar.slots].any():
            erased[worker] = False
    S = np.flatnonzero(~erased)
    U = rng.standard_normal((blocks, columns))
    Y = polar.encode(U)[S]
    sequential = polar.plan(S)
    check = make_code("hadamard", workers=workers, data_blocks=blocks, rounds=1)
    rotated = make_code("hadamard", workers=workers, data_blocks=blocks)
    rows = []
    for name, code in (("1 round", check), ("rotated", rotated)):
        answers = code.encode(U)[S]
        plan = code.plan(S)
        require_close(f"decoding {code!r}", plan.apply(answers), U, 1e-8)
        rows.append(
            time_pairs(
                f"syndrome {name}, N={workers} m={S.size} L={columns} / sequential",
                partial(plan.apply, answers),
                partial(sequential.apply, Y),
                pairs=pairs,
                target=3.0 if judge else None,
            )
        )
    dense = rotated.rows(S)
    rows.append(
        time_pairs(
            f"dense solve, N={workers} / syndrome plan and apply",
            lambda: rotated.plan(S).apply(answers),
            lambda: np.linalg.solve(dense.T @ dense, dense.T @ answers),
            pairs=max(1, pairs // 3),
            target=5.0 if judge else None,
            faster=True,
        )
    )
    whole = rng.standard_normal((S.size, 64 * columns))
    parts = np.split(whole, 64, axis=1)
    plan = rotated.plan(S)
    rows.append(
        time_pairs(
            f"64 chunks of {columns} columns, N={workers} / one of the same size",
            lambda: [plan.apply(part) for part in parts],
            lambda: plan.apply(whole),
            pairs=pairs,
            target=1.2 if judge else None,
        )
    )
    return rows


def feeding(workers: int, judge: bool) -> list[Ratio]:
    """All arrivals one by one, asked after each, at redundancy 1/16, over one second."""
    rows = []
    for name in ("polar", "hadamard"):
        code = make_code(name, workers=workers, data_blocks=workers * 15 // 16)
        order = np.random.default_rng(0).permutation(workers).tolist()

        def feed(code=code, order=order) -> None:
            state = code.arrivals()
            for worker in order:
                state.add(worker)
                _ = state.decodable

        taken = seconds(feed)
        target = 1.0 if judge else None
        rows.append(Ratio(f"feed {workers} arrivals, {name} / 1 s", taken, taken, 1.0, "s", target))
    return rows


def run(small: bool) -> Sequence[Ratio]:
    """All rows."""
    if small:
        return [*encoding(64, 512, 3, False), *decoding(256, 64, 3, False), *feeding(256, False)]
    rows: list[Ratio] = []
    for workers in (64, 256, 1024, 4096):
        rows += encoding(workers, (1 << 25) // workers, 7, True)
    return [
        *rows,
        *decoding(1024, 2000, 7, True),
        *decoding(4096, 500, 7, True),
        *feeding(4096, True),
    ]


if __name__ == "__main__":
    raise SystemExit(main("syndrome", __doc__ or "", run))
