"""What coding costs when nobody is late: a whole coded run beside the uncoded one.

N = 64, s = 56, local stack, warm environments, no delays. Wall time from `multiply` to the result
in hand; the uncoded run has the same s = 56 blocks on 56 workers. Median of the ratios of
alternating pairs. Target: at most 1.5.

    python -m benchmarks.whole_run [--small]
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from benchmarks.local_runs import WORKERS, save, warm_pair

DATA_BLOCKS = 56
TARGET = 1.5
SHAPE, PAIRS = (16_384, 12_288), 7  # 201 MB of uint8, the row length of ImageNet-64
SMALL_SHAPE, SMALL_PAIRS = (2_048, 1_024), 3


def measure(shape: tuple[int, int], pairs: int) -> dict[str, Any]:
    """Seconds of every run, and the median ratio."""
    coded, uncoded = [], []
    with warm_pair(*shape, DATA_BLOCKS) as pair:
        for number in range(pairs):
            for kind in ("coded", "uncoded") if number % 2 == 0 else ("uncoded", "coded"):
                (coded if kind == "coded" else uncoded).append(pair.run(kind))
    return {
        "shape": list(shape),
        "workers": WORKERS,
        "data_blocks": DATA_BLOCKS,
        "coded_seconds": coded,
        "uncoded_seconds": uncoded,
        "ratio": float(np.median(np.divide(coded, uncoded))),
        "target": TARGET,
    }


def main(arguments: list[str]) -> int:
    """Print the table and write benchmarks/results/whole_run.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a 2 MB matrix and 3 pairs")
    small = parser.parse_args(arguments).small
    results = measure(SMALL_SHAPE if small else SHAPE, SMALL_PAIRS if small else PAIRS)
    print(f"matrix {results['shape']} of uint8, N = {WORKERS}, s = {DATA_BLOCKS}, no delays")
    print(f"{'pair':>5}{'coded s':>10}{'uncoded s':>11}{'ratio':>8}")
    for number, (c, u) in enumerate(
        zip(results["coded_seconds"], results["uncoded_seconds"], strict=True)
    ):
        print(f"{number:>5}{c:>10.2f}{u:>11.2f}{c / u:>8.2f}")
    print(f"median ratio {results['ratio']:.2f} (target: at most {TARGET})")
    save("whole_run", results)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
