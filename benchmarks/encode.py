"""Encoding in memory, over a memory copy of the same array and over the dense product.

``encode`` and ``copy`` both allocate their result; ``encode_inplace`` and ``copyto`` do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.harness import Ratio, main, require_close, time_pairs
from polarcodes import ErasureCode, make_code

TARGETS = {256: 8.0, 1024: 12.0}
DENSE_TARGET = 3.0


def verify(code: ErasureCode, U: np.ndarray, coded: np.ndarray) -> None:
    """Compare some columns with the dense generator in float64."""
    columns = np.linspace(0, U.shape[1] - 1, 40).astype(int)
    wanted = code.generator() @ U[:, columns].astype(np.float64)
    require_close(repr(code), coded[:, columns], wanted, 1e-6)


def measure_inplace(
    name: str, code: ErasureCode, U: np.ndarray, pairs: int, target: float | None
) -> Ratio:
    """Encoding where nothing is allocated; the buffer is filled anew before each call."""
    buffer = np.empty((code.workers, U.shape[1]), np.float32)
    other = np.empty_like(buffer)

    def fill() -> None:
        buffer[...] = 0
        buffer[code.slots] = U

    fill()
    code.encode_inplace(buffer)
    verify(code, U, buffer)
    return time_pairs(
        f"{name} encode_inplace / copyto",
        partial(code.encode_inplace, buffer),
        partial(np.copyto, other, buffer),
        pairs=pairs,
        prepare=fill,
        target=target,
    )


def measure(
    workers: int, size: int, pairs: int, target: float | None, dense_target: float | None
) -> list[Ratio]:
    """Rows for one code length; ``size`` is the bytes of the float32 data."""
    code = make_code("polar", workers=workers, data_blocks=workers * 7 // 8)
    columns = size // 4 // code.s
    U = np.random.default_rng(0).standard_normal((code.s, columns), dtype=np.float32)
    verify(code, U, code.encode(U))
    name = f"N={workers} {U.nbytes / 1e9:.2f} GB"
    rows = [
        time_pairs(
            f"{name} encode / copy", partial(code.encode, U), U.copy, pairs=pairs, target=target
        )
    ]
    rows.append(measure_inplace(name, code, U, pairs, target))
    if workers == 1024:
        generator = code.generator().astype(np.float32)
        rows.append(
            time_pairs(
                f"{name} dense product / encode",
                partial(code.encode, U),
                partial(np.matmul, generator, U),
                pairs=max(1, pairs // 2),
                target=dense_target,
                faster=True,
            )
        )
    pixels = np.random.default_rng(1).integers(0, 256, U.shape, dtype=np.uint8)
    coded = code.encode(pixels[:, :1000])
    require_close(f"{code!r} of integers", coded, code.generator() @ pixels[:, :1000], 0.0)
    rows.append(
        time_pairs(
            f"{name} uint8 to {coded.dtype} / copy of float32",
            partial(code.encode, pixels),
            U.copy,
            pairs=max(1, pairs // 2),
        )
    )
    return rows


def run(small: bool) -> Sequence[Ratio]:
    """All rows."""
    if small:
        return [row for workers in TARGETS for row in measure(workers, 1 << 24, 3, None, None)]
    return [
        row
        for workers, target in TARGETS.items()
        for row in measure(workers, 1 << 30, 7, target, DENSE_TARGET)
    ]


if __name__ == "__main__":
    raise SystemExit(main("encode", __doc__ or "", run))
