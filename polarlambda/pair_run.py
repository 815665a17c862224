"""The run of a matrix product, here or by the deployed coordinator, and what is removed then."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from polarlambda.connect import function_client
from polarlambda.decoder import check_decoding_names, decode_options
from polarlambda.errors import BadInput
from polarlambda.product import Listeners, to_result
from polarlambda.settings import Settings
from polarlambda.worker import DeployedWorker

if TYPE_CHECKING:
    from blockstore.bucket import Bucket
    from blockstore.pairs import MatrixPair
    from polarlambda.result import Result

__all__ = ["PairRequest", "read_pair_request", "remove_temporary", "run_deployed", "run_here"]


@dataclass(frozen=True)
class PairRequest:
    """What is asked of a run, checked; see `polarlambda.matmul`."""

    until: str
    deadline: float | None
    estimator: str
    relaunch: str | None
    decode: str
    result: str


def read_pair_request(
    *,
    until: str,
    deadline: float | None,
    estimator: str,
    relaunch: str | float | None,
    decode: str,
    result: str,
) -> PairRequest:
    """Check what can be checked without the matrices.

    Raises `BadInput`, `InputRefused`, `UntilRefused`, `RelaunchRefused`.
    """
    from coordinator.inputs import check_deadline
    from coordinator.pair_run import check_pair_until
    from coordinator.relaunch import parse_relaunch

    check_decoding_names(decode, result)
    check_pair_until(until)
    policy = parse_relaunch(relaunch)
    return PairRequest(
        until=until,
        deadline=check_deadline(deadline),
        estimator=estimator,
        relaunch=None if policy is None else str(policy),
        decode=decode,
        result=result,
    )


def run_here(
    pair: MatrixPair,
    bucket: Bucket,
    settings: Settings,
    worker: DeployedWorker,
    run: str,
    request: PairRequest,
    listeners: Listeners,
    memory: int | None,
) -> Result:
    """Run the coordinator in this process; what never began leaves no encodings behind."""
    from blockstore.keys import run_key
    from coordinator.decode_options import decode_wish
    from coordinator.pair_run import start_pair

    try:
        options = decode_options(settings, request.decode, memory)
        wish = decode_wish(request.decode, request.result, options)
        outcome = start_pair(
            bucket,
            pair,
            invoker=worker.invoker(),
            on_event=listeners.hear,
            run=run,
            billing=worker.pair_billing(pair, wish),
            options=options,
            **asdict(request),
        )
    except BaseException:
        if bucket.head(run_key(run)) is None:
            remove_temporary(bucket, run)
        raise
    if outcome.met:
        remove_temporary(bucket, run)
    return to_result(outcome, bucket)


def run_deployed(
    pair: MatrixPair,
    bucket: Bucket,
    settings: Settings,
    run: str,
    request: PairRequest,
    listeners: Listeners,
) -> Result:
    """Have the deployed coordinator run the product."""
    from polarlambda.product_deployed import await_deployed

    names = {"version": 1, "matrix": pair.left.name, "right": pair.right.name, "run": run}
    event = {**names, **asdict(request)}
    function, client = settings.need("coordinator"), function_client()
    try:
        result = await_deployed(bucket, client, function, run, event, listeners)
    except BadInput:  # refused: it never began
        remove_temporary(bucket, run)
        raise
    if result.met:
        remove_temporary(bucket, run)
    return result


def remove_temporary(bucket: Bucket, run: str) -> None:
    """Delete the encodings that were made for a run alone, if there are any. Two listings."""
    from blockstore.keys import matrix_prefix, temporary_name

    for side in ("a", "b"):
        bucket.delete_prefix(matrix_prefix(temporary_name(run, side)))
