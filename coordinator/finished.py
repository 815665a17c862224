"""A run that is exact, read back as it ended."""

from __future__ import annotations

from blockstore import decode_keys
from blockstore.errors import ObjectMissing, RunRecordError
from blockstore.products import StoredProduct
from blockstore.records import ErrorRecord
from blockstore.runs import RunStore
from coordinator.outcome import Outcome

__all__ = ["load_finished"]


def load_finished(store: RunStore, memory: int | None = None) -> Outcome | None:
    """The outcome of a run whose status is exact; None if it is not, or not all of it is there.

    The value is left in the store if it takes more than half of `memory` bytes. Cost: four GETs.
    Nothing is written: times and dollars stay those of the run.
    """
    try:
        status = store.get_status()
        if not status.exact:
            return None
        spec, report = store.load_spec(), store.get_report()
        key = decode_keys.product_key(store.run, spec.result)
        product = StoredProduct.open(store.bucket, key)
        small = memory is None or 2 * product.data_bytes <= memory
        return Outcome(
            run=store.run,
            state=status.state,
            met=True,
            value=product.load() if small else None,
            exact=True,
            verified=status.verified,
            verification=str(report.get("verification", "")),
            error=0.0,
            error_upper=0.0,
            arrivals=status.arrivals,
            workers=status.workers,
            subtasks=status.subtasks,
            seconds=status.seconds,
            phases=dict(report.get("phases") or {}),
            cost=status.cost,
            message=status.message,
            method=status.method,
            metric=status.metric,
            rounding=status.rounding,
            reference=report.get("reference"),
            result_key=key,
            worker_errors=tuple(map(ErrorRecord.from_json, report.get("failures") or ())),
        )
    except (ObjectMissing, RunRecordError):
        return None
