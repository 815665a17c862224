"""A worker with several tasks: one after the other, each answer on its way the moment it is done.

The stop marker is looked for before every task (not in the first second after the invocation), so
that nothing is computed after it but the task in hand. What was put before a stop, a failure or a
crash stays and counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from blockstore.errors import CorruptObject
from blockstore.runs import RunStore
from blockstore.tasks import WorkerTask
from functions import log
from functions.worker import report
from functions.worker.faults import TileMissing
from functions.worker.product import STORED, Inputs, Product, multiply

ONE_BLOCK = (TileMissing, CorruptObject)  # the other blocks may still be multiplied


def work(
    store: RunStore,
    task: WorkerTask,
    time_left: Callable[[], float],
    cold: bool,
    inputs: Inputs = STORED,
    polls: int = 0,
) -> dict[str, Any]:
    """Do the tasks that `task` names, in order. Returns {state: answered | late, ...}.

    Raises what `functions.worker.product.multiply` raises: at once, or, for a tile of one block
    that is missing or damaged, when the other blocks are done.
    """
    inputs = replace(inputs, x=cache(inputs.x))  # once for all tasks
    put, lost, began = 0, None, time.monotonic()
    for first, last in task.objects:
        try:
            products = [
                multiply(store, task, time_left, subtask=subtask, inputs=inputs)
                for subtask in range(first, last + 1)
            ]
        except ONE_BLOCK as exc:
            lost = lost or exc
            continue
        done = time.monotonic()
        figures = report.metadata(task, _together(products), cold, done - began, polls)
        metadata = figures.to_metadata()
        values = products[0].value
        if len(products) > 1:
            values = np.concatenate([product.value for product in products])
        new = store.put_part(task.worker, first, last, values, metadata)
        began, put, polls = done, put + new, 0
        log.line("answered", first=new, tasks=[first, last], **metadata | report.bound(task))
    if lost is not None:
        raise lost
    state = "answered" if put else "late"
    return {"state": state, "worker": task.worker, "run": task.run, "objects": put}


def _together(products: list[Product]) -> Product:
    """Times added up, scales as one block of all rows would have them."""
    return Product(
        value=products[0].value,
        seconds_read=sum(product.seconds_read for product in products),
        seconds_multiply=sum(product.seconds_multiply for product in products),
        scale=float(np.sqrt(np.mean([product.scale**2 for product in products]))),
        looks=sum(product.looks for product in products),
    )
