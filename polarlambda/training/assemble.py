"""Put a training together: sessions of products, X^T Y, what an iteration costs, who carries it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from blockstore.training_records import TrainingSpec
from blockstore.trainings import TrainingStore
from polarlambda.errors import BadInput, PlatformError
from polarlambda.training.carry import Carrier
from polarlambda.training.data import TrainingData
from polarlambda.training.gradients import NOTHING, ProductFailed, Spent
from polarlambda.training.iterate import Iterate
from polarlambda.training.labels import Targets
from polarlambda.training.models import Array
from polarlambda.training.moments import sums_of_data
from polarlambda.training.products import Product
from polarlambda.training.recipe import make_descent, make_objective, make_stop

if TYPE_CHECKING:
    from coordinator.events import Event
    from polarcodes import ErasureCode
    from polarlambda.encoding import MatrixSource
    from polarlambda.matrix import CodedMatrix

COORDINATION_SECONDS = 0.3  # from the last answer to the next announcement

Products = tuple[Product, Product | None]

__all__ = ["check_dollars", "compute_moments", "make_carrier", "open_products"]


def check_dollars(found: TrainingData, outputs: int, dollars: float | None) -> None:
    """Raise `BadInput` for a limit below what one iteration is planned to cost."""
    if dollars is None:
        return
    planned = found.planned_cost(outputs)
    if planned > dollars:
        raise BadInput(
            f"one iteration is planned to cost ${planned:.6f}, more than the limit of "
            f"${dollars:g}: raise --dollars, or encode with fewer workers"
        )


def open_products(
    found: TrainingData,
    outputs: int,
    mode: str,
    deadline: float | None,
    on_event: Callable[[Event], None] | None,
    stack: ExitStack,
) -> Products:
    """Products with X (or X^T X) and with X^T, in sessions that `stack` closes.

    mode : "resident", "invoke", or "auto": for each matrix the one that is planned to be cheaper
    when its products follow each other at the pace of the iterations; residents, which are the
    faster ones, wait while the other matrix is multiplied, and waiting is paid for. Raises
    `BadInput` for another mode, and what `CodedMatrix.session` raises.
    """
    matrices = [found.matrix]
    if found.form == "samples" and found.transpose is not None:
        matrices.append(found.transpose)
    if mode == "auto":
        modes = _cheaper(matrices, outputs)
    elif mode in ("resident", "invoke"):
        modes = [mode] * len(matrices)
    else:
        raise BadInput(f'mode must be "auto", "resident" or "invoke", got {mode!r}')
    products = []
    for matrix, chosen in zip(matrices, modes, strict=True):
        session = stack.enter_context(matrix.session(chosen))  # type: ignore[arg-type]
        products.append(Product(session, deadline=deadline, on_event=on_event))
    return products[0], products[1] if len(products) > 1 else None


def _cheaper(matrices: list[CodedMatrix], outputs: int) -> list[str]:
    plans = []
    for matrix in matrices:
        with matrix.session() as session:
            plans.append(session.plan(x_columns=outputs))
    pace = sum(plan.resident_seconds + COORDINATION_SECONDS for plan in plans)
    return [plan.cheaper(pace) for plan in plans]


def compute_moments(
    found: TrainingData,
    targets: Array,
    data: MatrixSource | None,
    products: Products,
    centred: bool,
) -> tuple[Array | None, Spent]:
    """The sums that are computed once: X^T [Y, 1] (d, k + 1) for a Gram matrix, from the data or by
    one product with X^T; X^T 1 (d, 1) where coordinates are centred; else None.

    Raises `BadInput` for a Gram matrix with neither data nor transpose, `PlatformError` when the
    product fails, `KeyboardInterrupt` when Ctrl-C ended it.
    """
    try:
        return _moments(found, targets, data, products, centred)
    except ProductFailed as failure:
        if failure.state == "stopped":
            raise KeyboardInterrupt from failure
        raise PlatformError(f"the sums over the data could not be computed: {failure}") from failure


def _moments(
    found: TrainingData,
    targets: Array,
    data: MatrixSource | None,
    products: Products,
    centred: bool,
) -> tuple[Array | None, Spent]:
    ones = np.ones((found.samples, 1))
    if found.form == "samples":
        if not centred or products[1] is None:
            return None, NOTHING
        sums = products[1](ones)
        return sums.value, sums.spent
    both = np.hstack([targets, ones])
    if data is not None:
        return sums_of_data(data, both, found.digest, found.bucket.client), NOTHING
    if found.transpose is not None:
        sums = Product(found.transpose)(both)
        return sums.value, sums.spent
    raise BadInput(
        f"{found.matrix.manifest.name!r} is a Gram matrix: give the data it was made from (--data "
        "X.npy), from which X^T y is computed in one pass, or encode the transpose"
    )


def make_carrier(
    store: TrainingStore,
    spec: TrainingSpec,
    targets: Targets,
    products: Products,
    moments: Array | None,
    asked: Mapping[str, Any],
    on_iterate: Callable[[Iterate], None] | None,
    codes: Sequence[ErasureCode] = (),
) -> Carrier:
    """The training of a spec, ready to run. asked : goals and limits by name; codes : of its
    matrices, needed for anytime steps."""
    stop, wanted = make_stop(asked)
    objective = make_objective(spec, targets)
    descent = make_descent(spec, objective, stop, *products, moments, time.monotonic, codes)
    if on_iterate is None:
        return Carrier(store, spec, targets, descent, wanted)
    return Carrier(store, spec, targets, descent, wanted, on_iterate)
