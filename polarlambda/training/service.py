"""Start a training, or go on with one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from polarlambda.errors import BadInput
from polarlambda.training.defaults import ANYTIME, STEP, TOLERANCE

if TYPE_CHECKING:
    from coordinator.events import Event
    from polarlambda.encoding import MatrixSource
    from polarlambda.training.iterate import Iterate
    from polarlambda.training.labels import Labels
    from polarlambda.training.trained import Trained

    Mode = Literal["auto", "resident", "invoke"]

__all__ = ["resume_training", "train"]


def train(
    name: str,
    labels: Labels | None = None,
    *,
    model: str = "least-squares",
    l2: float = 0.0,
    intercept: bool = True,
    classes: int | None = None,
    step: float | str = STEP,
    momentum: str | None = None,
    beta: float = 0.9,
    tolerance: float = TOLERANCE,
    tighten: float = 1.0,
    anytime: bool = ANYTIME,
    gradient_norm: float | None = None,
    loss: float | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    dollars: float | None = None,
    transpose: str | None = None,
    data: MatrixSource | None = None,
    deadline: float | None = None,
    mode: Mode = "auto",
    on_start: Callable[[str, tuple[str, ...]], None] | None = None,
    on_iterate: Callable[[Iterate], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
    **place: str | None,
) -> Trained:
    """Train a model on the encoded matrix ``name`` by gradient descent on coded products.

    f(theta) = (1 / n) sum_i loss(x_i w + b, y_i) + (l2 / 2) ||w||^2

    Parameters
    ----------
    name : of X (n, d), whose transpose is encoded, too (``encode(..., derive="transpose")``), or of
        X^T X (``derive="gram"``), which serves least-squares and ridge by one product an iteration
    labels : array or path of an .npy file, see `polarlambda.training.labels.read_labels`;
        None: those that lie beside the matrix, as images bring them
    model : "least-squares", "ridge", "logistic" or "multinomial"; l2 : the penalty of the weights
    intercept : whether there is a bias b, which is not penalised; classes : K, if it is known
    step : "line" searches the best length along a direction, which costs no product, or a length
    momentum : "conjugate" (the default of a line search), "none", "heavy-ball", "nesterov" (fixed
        steps); beta : weight of the last two
    tolerance : share of a product's rows that may be missing from a gradient, in [0, 1), for
        matrices encoded with a schedule; what that does to a step is said in
        `polarlambda.training.samples` and `.gram`; tighten : its factor from one iteration to the
        next
    anytime : products stop at the error that their step can bear, as differences to the last exact
        one (docs/anytime.md); for fixed steps without momentum
    gradient_norm : goal, relative to the first gradient's (default 1e-4); loss : goal, a value of f
    iterations, seconds, dollars : limits
    transpose : name of the encoded transpose; found by its digest if not given
    data : X itself (path, s3:// URL or array), from which X^T y is computed when ``name`` is a Gram
        matrix and no transpose is encoded
    deadline : seconds for each product, see `CodedMatrix.multiply`
    mode : "resident" workers stay between products, with "invoke" every product invokes them anew
        (see `CodedMatrix.session`); "auto": what is planned to be cheaper
    on_start : told the training's id and notes on the data; on_iterate : told of every iterate;
        on_event : of the coordinator's events
    place : stack=, bucket=, worker=: see `polarlambda.connect.Place`

    Every iteration leaves a checkpoint in the bucket: `resume_training` goes on from the last one.
    Ctrl-C ends the training in state "stopped" with what there is.

    Raises, before anything is written: `BadInput`, `MatrixMissing`, `SettingMissing`,
    `FunctionMissing`, `PlanRefused`, `StoreError`. Later: `TrainingTaken`, `PlatformError`.
    Cost: one or two products an iteration, and two requests for its checkpoint.
    """
    from blockstore.keys import new_run_id
    from blockstore.training_records import TrainingSpec
    from blockstore.trainings import TrainingStore
    from coordinator.inputs import check_deadline
    from polarlambda.training.assemble import (
        check_dollars,
        compute_moments,
        make_carrier,
        open_products,
    )
    from polarlambda.training.data import open_data
    from polarlambda.training.data_facts import column_notes
    from polarlambda.training.labels import read_labels
    from polarlambda.training.recipe import centres, check_recipe, make_stop

    check_recipe(model, l2, step, momentum, beta, tolerance, tighten, anytime)
    check_deadline(deadline)
    asked = {
        "gradient_norm": gradient_norm,
        "loss": loss,
        "iterations": iterations,
        "seconds": seconds,
        "dollars": dollars,
    }
    make_stop(asked)
    with ExitStack() as stack:
        found = open_data(name, transpose, stack, place)
        if found.form == "gram" and model not in ("least-squares", "ridge"):
            raise BadInput(
                f"{name!r} is a Gram matrix, which trains least-squares and ridge, not {model}: "
                "encode the matrix itself, and its transpose"
            )
        given = found.own_labels() if labels is None else labels
        targets = read_labels(given, model, found.samples, classes=classes)
        outputs = targets.values.shape[1]
        check_dollars(found, outputs, dollars)
        products = open_products(found, outputs, mode, deadline, on_event, stack)
        now = time.time()
        training = new_run_id(int(now * 1000), os.urandom(10))
        spec = TrainingSpec(
            training=training,
            created=datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds"),
            form=found.form,
            matrix=name,
            matrix_digest=found.matrix.manifest.digest,
            transpose=found.transpose.manifest.name if found.transpose else None,
            transpose_digest=found.transpose.manifest.digest if found.transpose else None,
            source_digest=found.digest,
            labels_digest=targets.digest,
            samples=found.samples,
            features=found.features,
            outputs=outputs,
            model=model,
            classes=targets.classes,
            l2=float(l2),
            intercept=intercept,
            step=step,
            momentum=momentum,
            beta=beta,
            tolerance=tolerance,
            tighten=tighten,
            anytime=anytime,
            stop=asked,
            deadline=deadline,
            mode=mode,
            notes=column_notes(found.derived, l2=l2),
        )
        moments, spent = compute_moments(found, targets.values, data, products, centres(spec))
        store = TrainingStore(found.bucket, training)
        store.create(spec, targets.given, moments)
        if on_start is not None:
            on_start(training, spec.notes)
        codes = found.codes if anytime else ()
        carrier = make_carrier(store, spec, targets, products, moments, asked, on_iterate, codes)
        return carrier.run(spent)


def resume_training(
    training: str,
    *,
    name: str | None = None,
    labels: Labels | None = None,
    on_start: Callable[[str, tuple[str, ...]], None] | None = None,
    on_iterate: Callable[[Iterate], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
    stop: Mapping[str, Any] | None = None,
    **place: str | None,
) -> Trained:
    """Go on with a training whose process died, was stopped, or reached a limit.

    stop : goals and limits by name, instead of those it began with; name, labels : if given, they
    must be those it began with. Everything else is in the bucket.

    Raises `ObjectMissing` for no such training, `BadInput` if a matrix was encoded anew since or
    the data differ, and what `train` raises.
    """
    from blockstore.trainings import TrainingStore
    from polarlambda.connect import Place
    from polarlambda.training.assemble import make_carrier, open_products
    from polarlambda.training.data import open_data
    from polarlambda.training.labels import read_labels
    from polarlambda.training.recipe import centres

    with ExitStack() as stack:
        bucket = Place(**place).open_bucket()
        stack.callback(bucket.client.close)
        store = TrainingStore(bucket, training)
        spec = store.load_spec()
        _refuse(spec.training, "matrix", name, spec.matrix)
        found = open_data(spec.matrix, spec.transpose, stack, place)
        for what, matrix, digest in (
            (spec.matrix, found.matrix, spec.matrix_digest),
            (spec.transpose, found.transpose, spec.transpose_digest),
        ):
            if digest is not None and (matrix is None or matrix.manifest.digest != digest):
                raise BadInput(
                    f"matrix {what!r} was encoded again since training {training} began: start a "
                    "new training"
                )
        classes = len(spec.classes) if spec.classes else None
        targets = read_labels(store.load_labels(), spec.model, spec.samples, classes=classes)
        if labels is not None:
            given = read_labels(labels, spec.model, spec.samples, classes=classes)
            _refuse(spec.training, "labels", given.digest, spec.labels_digest)
        moments = store.load_moments() if spec.form == "gram" or centres(spec) else None
        products = open_products(found, spec.outputs, spec.mode, spec.deadline, on_event, stack)
        asked = {**spec.stop, **{k: v for k, v in (stop or {}).items() if v is not None}}
        codes = found.codes if spec.anytime else ()
        carrier = make_carrier(store, spec, targets, products, moments, asked, on_iterate, codes)
        if on_start is not None:
            on_start(training, spec.notes)
        return carrier.run()


def _refuse(training: str, what: str, given: str | None, began: str) -> None:
    if given is not None and given != began:
        raise BadInput(
            f"training {training} began with {what} {began}, not {given}: leave {what} out, it is "
            "known, or start a new training"
        )
