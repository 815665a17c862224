"""C = A B with both factors coded: encode what is not encoded, multiply, clean up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from polarlambda.connect import DEPLOYED, Place, function_client, open_bucket
from polarlambda.errors import BadInput
from polarlambda.factors import FactorInput, check_factors, open_factor, open_input, parse_pair
from polarlambda.pair_run import read_pair_request, remove_temporary, run_deployed, run_here
from polarlambda.product import Listeners
from polarlambda.sizes import parse_size
from polarlambda.worker import DeployedWorker

if TYPE_CHECKING:
    from blockstore.bucket import Bucket
    from blockstore.pairs import MatrixPair
    from coordinator.choose_grid import GridChoice
    from coordinator.events import Event
    from encoder import EncodeProgress
    from polarcodes import ErasureCode
    from polarlambda.encoding import MatrixSource
    from polarlambda.result import Arrival, Result

__all__ = ["matmul"]

ENCODER_MEMORY = "1GB"

Progress = Callable[[str, "EncodeProgress"], None]


def matmul(
    A: MatrixSource,
    B: MatrixSource,
    *,
    grid: tuple[int, int] | str | None = None,
    data_blocks: tuple[int, int] | str | None = None,
    code: str = "auto",
    code_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    until: str = "exact",
    deadline: float | None = None,
    estimator: str = "best",
    relaunch: str | float | None = None,
    on: Literal["local", "lambda"] = "local",
    decode: Literal["local", "lambda"] = "local",
    result: Literal["npy", "zarr"] = "npy",
    memory: int | str | None = None,
    keep: str | None = None,
    on_choice: Callable[[GridChoice], None] | None = None,
    on_progress: Progress | None = None,
    on_arrival: Callable[[Arrival], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
    **place: str | None,
) -> Result:
    """Compute C = A B, shapes (n1, d) and (d, n2), on a grid of N1 x N2 workers.

    A is cut by rows into s1 blocks and coded into N1, B by columns into s2 and coded into N2;
    worker (i, j) multiplies coded block i of A by coded block j of B, and rows and columns of the
    grid are decoded alternately (arXiv 2309.00682, appendix; `polarcodes.grid`).

    Parameters
    ----------
    A, B : array, path of an .npy file, s3:// URL, or the name of a matrix encoded already (B with
        ``encode --transpose``); any real dtype; finite
    grid, data_blocks : (N1, N2) and (s1, s2), or "16x16". What is not given is chosen by expected
        time such that any 4 dead workers are survived
    code, code_options, seed : one of `polarcodes.CODE_NAMES` for both factors with its options, or
        two with a comma between ("hadamard,uncoded" codes A alone); "auto": Hadamard codes for
        floats, integer parities for integers
    until, deadline, estimator, relaunch, on, decode, result, on_arrival, on_event : as for
        `CodedMatrix.multiply`; not "tasks=X"
    memory : most bytes that encoding may hold, "1GB" by default, and if it is given the coordinator
        in this process, too
    keep : keep the encodings as KEEP-a and KEEP-b, to be used by name another time; else they are
        removed as soon as the product is what was asked for
    on_choice : told of the grid chosen; on_progress : told of ("A" or "B", encoding progress)

    Returns a `Result`; its value is (n1, n2), float64 for two matrices of integers (whose products
    never wrap). Raises, before anything is written or invoked: `BadInput`, `SourceRefused` (NaN,
    Inf, .npz, no matrix), `InputRefused`, `UntilRefused`, `PlanRefused`, `CodeError`,
    `MatrixMissing`, `SettingMissing`, `FunctionMissing`, `StoreError`. A run that ends otherwise
    can be gone on with (`resume_run`).
    """
    from blockstore.keys import new_run_id, validate_name

    request = read_pair_request(
        until=until,
        deadline=deadline,
        estimator=estimator,
        relaunch=relaunch,
        decode=decode,
        result=result,
    )
    if on not in ("local", "lambda"):
        raise BadInput(f'on must be "local" or "lambda", got {on!r}')
    sizes = {"grid": parse_pair("grid", grid), "data_grid": parse_pair("data_blocks", data_blocks)}
    if keep is not None:
        validate_name(f"{keep}-a")
    limit = parse_size(memory if memory is not None else ENCODER_MEMORY)
    settings = Place(**place).settings()
    bucket = open_bucket(settings, pool=64)
    left, right = (open_factor(side, given, bucket) for side, given in (("A", A), ("B", B)))
    check_factors(left, right)
    worker = DeployedWorker.find(settings) if on == "local" else None
    limits = worker.limits if worker is not None else DEPLOYED
    codes = _plan(left, right, sizes, code, code_options, seed, limits, estimator, on_choice)
    if on == "lambda":
        from polarlambda.deployed import check_coordinator

        check_coordinator(function_client(), settings.need("coordinator"))
    for factor in (left, right):
        _check_finite(factor, bucket, limit)
    run = new_run_id(int(time.time() * 1000), os.urandom(10))
    listeners = Listeners(on_arrival, on_event)
    try:
        pair = _encode(left, right, codes, bucket, run, keep, limit, on_progress)
    except BaseException:
        remove_temporary(bucket, run)
        raise
    if worker is not None:
        own = None if memory is None else limit
        return run_here(pair, bucket, settings, worker, run, request, listeners, own)
    return run_deployed(pair, bucket, settings, run, request, listeners)


def _plan(
    left: FactorInput,
    right: FactorInput,
    sizes: dict[str, Any],
    code: str,
    options: Mapping[str, Any] | None,
    seed: int,
    limits: Any,
    estimator: str,
    on_choice: Callable[[GridChoice], None] | None,
) -> tuple[ErasureCode, ErasureCode]:
    """The codes of both factors, once everything is known to fit."""
    from coordinator.choose_grid import choose_grid
    from coordinator.estimate import check_estimator
    from polarcodes.grid import GridCode

    choice = choose_grid(
        left.factor,
        right.factor,
        code=code,
        options=options,
        encoded=(left.code, right.code),
        worker_memory_mb=limits.memory_mb,
        worker_timeout=limits.timeout,
        **sizes,
    )
    codes = choice.make(seed)
    check_estimator(GridCode(*codes), estimator)
    if on_choice is not None:
        on_choice(choice)
    return codes


def _check_finite(factor: FactorInput, bucket: Bucket, memory: int) -> None:
    """Read a factor of floats once: nothing is written if either has NaN or Inf."""
    import numpy as np

    from encoder import SourceRefused
    from encoder.layout import piece_bytes
    from encoder.scan import scan_source

    if factor.source is None or np.dtype(factor.dtype).kind != "f":
        return
    with open_input(factor.source, bucket) as source:
        try:
            scan_source(source, piece_bytes(memory, source.parallel_reads), lambda _: None)
        except SourceRefused as error:
            raise SourceRefused(f"{factor.side}: {error}") from error


def _encode(
    left: FactorInput,
    right: FactorInput,
    codes: tuple[ErasureCode, ErasureCode],
    bucket: Bucket,
    run: str,
    keep: str | None,
    memory: int,
    on_progress: Progress | None,
) -> MatrixPair:
    from blockstore.keys import temporary_name
    from blockstore.pairs import MatrixPair
    from encoder import encode

    manifests = []
    for factor, code, side in ((left, codes[0], "a"), (right, codes[1], "b")):
        if factor.manifest is not None:
            manifests.append(factor.manifest)
            continue

        def told(now: EncodeProgress, which: str = factor.side) -> None:
            if on_progress is not None:
                on_progress(which, now)

        name = temporary_name(run, side) if keep is None else f"{keep}-{side}"
        derive = "transpose" if factor.side == "B" else None
        source: Any = factor.source
        manifests.append(
            encode(source, bucket, name, code, memory=memory, progress=told, derive=derive)
        )
    return MatrixPair(*manifests)
