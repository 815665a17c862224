"""The run of a matrix product, here or by the deployed coordinator, and what is removed then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polarlambda.connect import function_client
from polarlambda.errors import BadInput
from polarlambda.product import Listeners, to_result
from polarlambda.settings import Settings
from polarlambda.worker import DeployedWorker

if TYPE_CHECKING:
    from blockstore.bucket import Bucket
    from blockstore.pairs import MatrixPair
    from polarlambda.result import Result

__all__ = ["remove_temporary", "run_pair_deployed", "run_pair_here"]


def run_pair_here(
    pair: MatrixPair,
    bucket: Bucket,
    worker: DeployedWorker,
    run: str,
    listeners: Listeners,
    *,
    until: str,
    deadline: float | None,
    estimator: str,
    relaunch: str | None,
) -> Result:
    """Run the coordinator in this process; what never began leaves no encodings behind."""
    from blockstore.keys import run_key
    from coordinator.pair_run import start_pair

    try:
        outcome = start_pair(
            bucket,
            pair,
            until=until,
            deadline=deadline,
            estimator=estimator,
            relaunch=relaunch,
            invoker=worker.invoker(),
            on_event=listeners.hear,
            run=run,
            billing=worker.pair_billing(pair),
        )
    except BaseException:
        if bucket.head(run_key(run)) is None:
            remove_temporary(bucket, run)
        raise
    if outcome.met:
        remove_temporary(bucket, run)
    return to_result(outcome, bucket)


def run_pair_deployed(
    pair: MatrixPair,
    bucket: Bucket,
    settings: Settings,
    run: str,
    listeners: Listeners,
    *,
    until: str,
    deadline: float | None,
    estimator: str,
    relaunch: str | None,
) -> Result:
    """Have the deployed coordinator run the product."""
    from polarlambda.product_deployed import await_deployed

    event = {
        "version": 1,
        "matrix": pair.left.name,
        "right": pair.right.name,
        "until": until,
        "deadline": deadline,
        "estimator": estimator,
        "relaunch": relaunch,
        "run": run,
    }
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
