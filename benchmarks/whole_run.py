"""What coding costs when nobody is late: a whole coded run beside the uncoded one.

N = 64, s = 56, local stack, warm environments, no delays. Wall time from `multiply` to the result
in hand; the uncoded run has the same 56 blocks on 56 workers.

    python -m benchmarks.whole_run [--small]
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness import Ratio, main, time_pairs
from benchmarks.local_runs import WORKERS, warm_pair

DATA_BLOCKS = 56
TARGET = 1.5
SHAPE, PAIRS = (16_384, 12_288), 7  # 201 MB of uint8, the row length of ImageNet-64
SMALL_SHAPE, SMALL_PAIRS = (2_048, 1_024), 1


def run(small: bool) -> Sequence[Ratio]:
    """The one row."""
    shape = SMALL_SHAPE if small else SHAPE
    with warm_pair(*shape, DATA_BLOCKS) as pair:
        return [
            time_pairs(
                f"{shape[0]} x {shape[1]} uint8, N = {WORKERS}, s = {DATA_BLOCKS}: coded / uncoded",
                lambda: pair.multiply("coded"),
                lambda: pair.multiply("uncoded"),
                pairs=SMALL_PAIRS if small else PAIRS,
                prepare=pair.stack.drain,
                target=None if small else TARGET,
            )
        ]


if __name__ == "__main__":
    raise SystemExit(main("whole_run", __doc__ or "", run))
