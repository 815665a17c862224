"""C = A B on the local stack: both factors coded, one of them, and none with re-launching.

8,192 x 4,096 by 4,096 x 8,192 float32 on 256 workers: a 16 x 16 grid with the default code, A alone
coded (256 blocks, all of B for everybody), and an uncoded 16 x 16 grid whose slow workers are
invoked once more. The same rounds of delays are replayed on each: a worker sleeps before it begins.
Every product is compared with NumPy's. Times are those of this machine, on which all workers share
the processors: they are comparable with each other, and what matters on a link is the bytes.

    python -m benchmarks.matmul [--data FOLDER] [--small] [--rounds 1]

FOLDER (or POLARLAMBDA_DELAYS) holds the measured profiles, of which short-sydney-rare-long-tail is
replayed; without it delays come from the model lambda-rare-tail, with --small a tenth of them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import polarlambda
from benchmarks.harness import WrongResult, require_close, save
from blockstore.connect import s3_client
from blockstore.memory import pair_memory
from blockstore.pair_tasks import PairTask
from blockstore.pairs import MatrixPair
from polarcodes.delays import from_table, make_delays
from polarlambda.local.stack import LocalStack

SHAPE, GRID = (8_192, 4_096, 8_192), (16, 16)
SMALL_SHAPE, SMALL_GRID = (200, 100, 240), (4, 4)
PROFILE = "short-sydney-rare-long-tail.csv"
CONCURRENCY = 24  # environments at a time: two processors serve no more, and memory is finite
WARM = 24
TOLERANCE = 1e-5
RELAUNCH = "share=0.75,times=2"


@dataclass
class Row:
    """One way to multiply: medians over the rounds. Bytes: read by workers and written by them."""

    way: str
    grid: str
    data_blocks: str
    encode_seconds: float
    stored_bytes: int
    seconds: float
    arrivals: float
    invocations: float
    read_bytes: float
    answer_bytes: float
    dollars: float
    peak_memory: int
    memory_bound: int


class Products:
    """Both factors, in one encoding for each way."""

    def __init__(self, stack: LocalStack, shape: tuple[int, int, int], grid: tuple[int, int]):
        rng = np.random.default_rng(0)
        n1, d, n2 = shape
        self.A = rng.standard_normal((n1, d), dtype=np.float32)
        self.B = rng.standard_normal((d, n2), dtype=np.float32)
        self.expected = self.A @ self.B
        self.stack, self.workers = stack, grid[0] * grid[1]
        self.ways: dict[str, dict[str, Any]] = {
            "both coded": {"grid": grid},
            "uncoded, re-launching": {
                "grid": grid,
                "data_blocks": grid,
                "code": "uncoded",
                "relaunch": RELAUNCH,
            },
            "A alone coded": {"grid": (self.workers, 1), "code": "hadamard,uncoded"},
        }

    def measure(self, way: str, rounds: np.ndarray, folder: Path) -> Row:
        """Encode once, multiply in every round of delays; WrongResult unless exact."""
        options = dict(self.ways[way])
        name = way.split(",")[0].replace(" ", "-")
        names = f"{name}-a", f"{name}-b"
        relaunch = {"relaunch": RELAUNCH} if "relaunch" in options else {}
        found: list[tuple[float, ...]] = []
        peak, encoding = 0, 0.0
        for number, delays in enumerate(rounds):
            table = folder / "round.csv"
            np.savetxt(table, np.append(delays, 0.0)[None, :], delimiter=",")
            self.stack.set_chaos(delays=table)
            begin = time.perf_counter()
            if number == 0:
                result = polarlambda.matmul(self.A, self.B, keep=name, deadline=3_000, **options)
                encoding = time.perf_counter() - begin - result.seconds
            else:
                result = polarlambda.matmul(*names, deadline=3_000, **relaunch)
            self._check(result)
            self.stack.drain()
            report = polarlambda.show_run(result.run)["report"]
            peak = max(peak, *(answer["peak_memory"] for answer in report["answers"]))
            cost = result.cost or 0.0
            found.append((result.seconds, result.arrivals, report["usage"]["invokes"], cost))
        left, right = (polarlambda.show_matrix(one) for one in names)
        task = PairTask.of(MatrixPair(left, right), run="", attempt=0, worker=0, x_digest="")
        taken, arrivals, invocations, dollars = np.median(np.array(found), axis=0).tolist()
        item = task.result_dtype.itemsize * task.left.rows * task.right.rows
        stored = sum(
            m.workers * m.block_rows * m.columns * np.dtype(m.dtype).itemsize for m in (left, right)
        )
        for one in names:
            polarlambda.delete_matrix(one)
        return Row(
            way,
            f"{left.workers}x{right.workers}",
            f"{left.data_blocks}x{right.data_blocks}",
            encoding,
            stored,
            taken,
            arrivals,
            invocations,
            invocations * task.bytes_read,
            arrivals * item,
            dollars,
            peak,
            pair_memory(task),
        )

    def _check(self, result: polarlambda.Result) -> None:
        if not result.exact:
            raise WrongResult(f"the run ended as {result.state}: {result.message}")
        require_close("product", result.value, self.expected, TOLERANCE)
        for info in (
            s3_client()
            .list_objects_v2(Bucket=self.stack.bucket, Prefix=f"runs/{result.run}/results/")
            .get("Contents", ())
        ):  # the local store keeps everything in memory or on disk
            s3_client().delete_object(Bucket=self.stack.bucket, Key=info["Key"])


def delays_of(folder: Path | None, rounds: int, workers: int) -> np.ndarray:
    """(rounds, N) seconds: measured rounds with most to wait for, or the model's median ones."""
    rng = np.random.default_rng(0)
    if folder is not None:
        excess = from_table(np.loadtxt(folder / PROFILE, delimiter=",")).excess
        chosen = np.argsort(excess.max(axis=1))[len(excess) // 2 :][:rounds]
        return np.array([rng.choice(excess[row], workers) for row in chosen])
    drawn = make_delays("lambda-rare-tail").sample(rng, 2_000, workers)
    ordered = drawn[np.argsort(drawn.max(axis=1))]
    return np.asarray(ordered[np.arange(rounds) * 2_000 // rounds + 1_000 // rounds])


def table(rows: list[Row]) -> str:
    """The rows as aligned text."""
    head = ("", "grid", "blocks", "stored", "time", "answers", "invoked", "read", "written")
    cells = [(*head, "bill", "peak", "bound")]
    for row in rows:
        cells.append(
            (
                row.way,
                row.grid,
                row.data_blocks,
                f"{row.stored_bytes / 1e6:.0f} MB",
                f"{row.seconds:.1f} s",
                f"{row.arrivals:.0f}",
                f"{row.invocations:.0f}",
                f"{row.read_bytes / 1e9:.2f} GB",
                f"{row.answer_bytes / 1e9:.2f} GB",
                f"${row.dollars:.5f}",
                f"{row.peak_memory / 1e6:.0f} MB",
                f"{row.memory_bound / 1e6:.0f} MB",
            )
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in cells
    )


def main() -> int:
    """Measure, print the table, write the JSON; 1 if a product was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.matmul")
    parser.add_argument("--data", type=Path, default=os.environ.get("POLARLAMBDA_DELAYS"))
    parser.add_argument("--small", action="store_true", help="a few seconds: does it still run?")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    shape, grid = (SMALL_SHAPE, SMALL_GRID) if options.small else (SHAPE, GRID)
    folder = None if options.small or options.data is None else Path(options.data)
    rounds = delays_of(folder, options.rounds, grid[0] * grid[1]) * (0.1 if options.small else 1.0)
    with LocalStack(build="stale", account_concurrency=CONCURRENCY) as stack:
        os.environ.update(stack.environment)
        stack.warm("WorkerFunction", 4 if options.small else WARM)
        products = Products(stack, shape, grid)
        try:
            with tempfile.TemporaryDirectory() as temporary:
                rows = [products.measure(w, rounds, Path(temporary)) for w in products.ways]
        except WrongResult as error:
            print(f"WRONG RESULT: {error}")
            return 1
    print(table(rows))
    delays = "lambda-rare-tail" if folder is None else PROFILE
    figures = {"small": options.small, "shape": shape, "delays": delays}
    path = save("matmul", {**figures, "rows": [asdict(row) for row in rows]})
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
