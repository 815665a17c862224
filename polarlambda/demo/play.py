"""The demo from beginning to end: matrix, two encodings, two runs, the check, the picture."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polarlambda.demo.photographs import (
    FULL,
    PATCH,
    SMALL,
    Grid,
    first_component,
    open_image,
    product_in_numpy,
    write_patches,
)
from polarlambda.demo.stage import Stage, open_stage
from polarlambda.demo.story import Story, relative_error, tell
from polarlambda.errors import BadInput, PlatformError
from polarlambda.sizes import format_size

if TYPE_CHECKING:
    import numpy as np

    from coordinator.events import Event

    Array = np.ndarray[Any, Any]

WORKERS, DATA_BLOCKS = 64, 48
CODED, UNCODED = "demo-polar", "demo-uncoded"
TOLERANCE = 1e-5
SAMPLE = 400  # rows whose first principal component is the filter
Say = Callable[[str], None]


@dataclass(frozen=True)
class Problem:
    """The product of the demo: the matrix on disk, x, A x by NumPy in float64, and the grids."""

    path: Path
    x: Array
    truth: Array
    grids: list[Grid]


def play(*, output: Path, small: bool, delays: str, scale: float, seed: int, say: Say) -> Path:
    """Run the demo; returns the path of its picture.

    ``delays`` is a delay model or a CSV file (its first row), multiplied by ``scale``. Raises
    `PlatformError` when a product is not NumPy's to 1e-5, or a run did not end exact.
    Takes below a minute on two cores, 1 GB of memory and 2 GB of temporary disk; cleans up.
    """
    seconds = draw_delays(delays, scale, seed)
    say(f"The product A x of an image matrix and a filter, on {WORKERS} workers that straggle.")
    with tempfile.TemporaryDirectory(prefix="polarlambda-demo-") as folder:
        problem = make_problem(Path(folder), small, seed, say)
        with open_stage(Path(folder), seconds, say) as stage:
            if stage.delayed:
                say(f"Delays: {delays} x {scale:g}, seed {seed}; the slowest of {WORKERS} workers "
                    f"waits {seconds.max():.1f} s.")  # fmt: skip
            else:
                say("Using the AWS endpoints that are set; delays are whatever happens there.")
            try:
                encode_both(problem.path, seed, say)
                say("Warming the workers up with one product that nobody times.")
                warm_up(stage, problem)
                say(f"\nCoded: {WORKERS} workers, any decodable set of answers will do.")
                coded = run(stage, CODED, problem, say)
                say(f"\nUncoded: {DATA_BLOCKS} workers, same delays, every answer is needed.")
                uncoded = run(stage, UNCODED, problem, say)
            finally:
                clean_up()
    compare(coded, uncoded, say)
    return paint(output, coded, uncoded, problem)


def draw_delays(delays: str, scale: float, seed: int) -> Array:
    """Seconds (64,) that the workers wait, drawn from a model or read from a CSV file."""
    import numpy as np

    from polarcodes.delays import DELAY_NAMES, from_table, make_delays

    if not (math.isfinite(scale) and scale >= 0):
        raise BadInput(f"scale must be a finite factor, at least 0, got {scale}")
    if delays in DELAY_NAMES:
        model = make_delays(delays)
    elif Path(delays).is_file():
        model = from_table(np.loadtxt(delays, delimiter=",", ndmin=2)[:1])
    else:
        raise BadInput(f"delays must be {', '.join(DELAY_NAMES)} or a CSV file, got {delays!r}")
    drawn: Array = model.sample(np.random.default_rng(seed), 1, WORKERS)[0] * scale
    drawn -= drawn.min()
    return drawn


def make_problem(folder: Path, small: bool, seed: int, say: Say) -> Problem:
    """Cut the photographs into the matrix, find the filter, and multiply by NumPy."""
    import numpy as np

    photographs = SMALL if small else FULL
    path = folder / "photographs.npy"
    grids = write_patches(path, photographs, seed=seed)
    matrix = np.load(path, mmap_mode="r")
    titles = ", ".join(photograph.title for photograph in photographs)
    rows, columns = matrix.shape
    say(
        f"A: {rows} x {columns} {matrix.dtype}, {format_size(matrix.nbytes)}: overlapping "
        f"{PATCH} x {PATCH} x 3 patches of photographs ({titles}), shuffled."
    )
    x = first_component(matrix, sample=SAMPLE, seed=seed)
    say(f"x: the first principal component of {SAMPLE} rows, {x.dtype}.")
    return Problem(path, x, product_in_numpy(matrix, x), grids)


def encode_both(path: Path, seed: int, say: Say) -> None:
    """Encode the matrix with the polar code, and cut it into as many blocks without a code."""
    import numpy as np

    from polarlambda.encoding import encode

    for name, code, workers in ((CODED, "polar", WORKERS), (UNCODED, "uncoded", DATA_BLOCKS)):
        began = time.monotonic()
        manifest = encode(
            path,
            name,
            workers=workers,
            data_blocks=DATA_BLOCKS,
            code=code,
            seed=seed,
            memory="512MB",
            replace=True,
        )
        dtype, seconds = np.dtype(manifest.dtype), time.monotonic() - began
        say(
            f"Encoded {name}: {workers} blocks of {manifest.block_rows} rows, {dtype}, "
            f"{seconds:.1f} s."
        )


def warm_up(stage: Stage, problem: Problem) -> None:
    """One product that nobody times."""
    from polarlambda.matrix import CodedMatrix

    stage.warm(WORKERS)
    with CodedMatrix.open(CODED) as matrix:
        matrix.multiply(problem.x)


def run(stage: Stage, name: str, problem: Problem, say: Say) -> Story:
    """Multiply, and print the estimate's error beside its bar as the answers arrive."""
    from coordinator import events
    from polarlambda.matrix import CodedMatrix

    arrived: list[tuple[float, int]] = []

    def hear(event: Event) -> None:
        head = f"{event.t:6.2f} s  {event.arrivals:3} of {event.workers} answers"
        match event:
            case events.Arrived(worker=worker):
                arrived.append((event.t, worker))
            case events.Estimated(value=value, error_upper=upper):
                error = relative_error(value, problem.truth)
                say(f"{head}  true error {error:7.1%}, predicted {event.error:7.1%}, "
                    f"95 % bar {upper:7.1%}")  # fmt: skip
            case events.Decodable():
                say(f"{head}  decodable: stop the others, decode")
            case events.Decoded(seconds=seconds):
                say(f"{head}  exact, decoded in {seconds * 1000:.0f} ms")
            case events.Failed(worker=worker, kind=kind, message=message):
                say(f"{head}  worker {worker} failed: {kind}: {message}")

    stage.reset()
    with CodedMatrix.open(name) as matrix:
        # The picture draws the paper's estimate; without a code there is but one.
        estimator = "paper" if name == CODED else "best"
        result = matrix.multiply(problem.x, estimator=estimator, on_event=hear)
    if not result.exact or result.value is None:
        raise PlatformError(f"run {result.run} of {name} ended as {result.state}: {result.message}")
    error = relative_error(result.value, problem.truth)
    if not error <= TOLERANCE:
        raise PlatformError(
            f"the product of {name} differs from NumPy's by {error:.1e}, more than {TOLERANCE:g}"
        )
    say(f"Check against NumPy: relative error {error:.1e}, at most {TOLERANCE:g} allowed.")
    return tell(name, result, arrived, problem.truth)


def clean_up() -> None:
    """Delete both matrices and their runs from the bucket."""
    from polarlambda.matrices import delete_matrix, list_matrices
    from polarlambda.runs import cancel_run, delete_run, list_runs

    for spec, _ in list_runs():
        if spec.matrix in (CODED, UNCODED):
            cancel_run(spec.run)  # one that did not end
            delete_run(spec.run)
    for manifest in list_matrices():
        if manifest.name in (CODED, UNCODED):
            delete_matrix(manifest.name)


def compare(coded: Story, uncoded: Story, say: Say) -> None:
    """Print both runs side by side."""
    both = (coded, uncoded)
    lines = (
        ("", ["coded", "uncoded"]),
        ("workers", [str(story.workers) for story in both]),
        ("exact after", [f"{story.end.seconds:.2f} s" for story in both]),
        ("answers needed", [str(story.result.arrivals) for story in both]),
        ("error against NumPy", [f"{story.end.error:.1e}" for story in both]),
        ("would cost on AWS", [f"${story.result.cost or 0:.5f}" for story in both]),
    )
    say("")
    for name, (left, right) in lines:
        say(f"{name:<20}{left:>12}{right:>12}")
    faster = uncoded.end.seconds / coded.end.seconds
    say(f"\nThe coded run was {faster:.1f} times as fast as the uncoded one on these delays.")


def paint(output: Path, coded: Story, uncoded: Story, problem: Problem) -> Path:
    """Write the picture of the first photograph's response map."""
    import numpy as np

    from polarlambda.demo.picture import draw

    output.mkdir(parents=True, exist_ok=True)
    path = output / "estimate.png"
    grid = problem.grids[0]
    draw(
        path,
        coded=coded,
        uncoded=uncoded,
        truth=problem.truth,
        fold=grid.fold,
        photograph=np.asarray(open_image(grid.photograph)),
        kernel=problem.x.reshape(PATCH, PATCH, 3),
    )
    return path
