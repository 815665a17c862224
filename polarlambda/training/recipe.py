"""From what was asked to what descends: checks of arguments, objective, rules, gradient source."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polarlambda.errors import BadInput
from polarlambda.training.advance import make_advance
from polarlambda.training.anytime_gram import ESTIMATES, AnytimeGram
from polarlambda.training.anytime_samples import AnytimeSamples
from polarlambda.training.centred import Centred
from polarlambda.training.gradients import GradientSource, LineSource
from polarlambda.training.gram import GramGradient, Moments
from polarlambda.training.loop import Descent
from polarlambda.training.models import Array, make_model
from polarlambda.training.objective import Objective
from polarlambda.training.products import Product
from polarlambda.training.samples import Multiply, SampleGradient
from polarlambda.training.stopping import Stop
from polarlambda.training.tolerance import Tolerance

if TYPE_CHECKING:
    from blockstore.training_records import TrainingSpec
    from polarcodes import ErasureCode
    from polarlambda.training.labels import Targets

GRADIENT_NORM = 1e-4  # of the first one: where a training ends that was given no other goal
ITERATIONS = 1000  # at most, where no limit is given

__all__ = ["centres", "check_recipe", "make_descent", "make_objective", "make_stop"]


def check_recipe(
    model: str,
    l2: float,
    step: float | str,
    momentum: str | None,
    beta: float,
    tolerance: float,
    tighten: float,
    anytime: bool = False,
) -> None:
    """Raise `BadInput` for a model, a penalty or a rule that cannot be."""
    make_model(model)
    if not (math.isfinite(l2) and l2 >= 0):
        raise BadInput(f"l2 must be a number of at least 0, got {l2!r}")
    if model == "ridge" and l2 == 0:
        raise BadInput("ridge needs a penalty: give l2 (--l2 1e-3), or use least-squares")
    if model == "least-squares" and l2 > 0:
        raise BadInput(f"least-squares has no penalty, got l2 = {l2:g}: use ridge")
    Tolerance(tolerance, tighten)
    make_advance(step, momentum, beta, exact=tolerance == 0)
    if anytime:
        _check_anytime(step, momentum, tolerance)


def _check_anytime(step: float | str, momentum: str | None, tolerance: float) -> None:
    if step == "line" or momentum not in (None, "none"):
        raise BadInput(
            "anytime steps need a fixed step without momentum: give step (--step A), at most one "
            "over c times the largest eigenvalue of X^T X / n, plus l2 (c = 1, logistic 1/4, "
            "multinomial 1/2); lengths that a line search takes are in the history of --step line "
            "--iterations 5"
        )
    if tolerance:
        raise BadInput(
            f"anytime steps choose by themselves how exact a product is: leave out the tolerance "
            f"of {tolerance:g}"
        )


def make_stop(asked: Mapping[str, Any]) -> tuple[Stop, bool]:
    """(when to stop, whether a limit that ends the training leaves something unmet).

    Where no goal is given, the training ends when the gradient is down to 1e-4 of the first one; a
    limit that was asked for is then an end as good as that one. Without any limit there are at most
    1000 iterations. Raises `BadInput`.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    stop = Stop(**given)
    limited = any(given.get(name) is not None for name in ("iterations", "seconds", "dollars"))
    if not stop.has_goal:
        given["gradient_norm"] = GRADIENT_NORM
    if not limited:
        given["iterations"] = ITERATIONS
    return Stop(**given), stop.has_goal or not limited


def make_objective(spec: TrainingSpec, targets: Targets) -> Objective:
    """The objective that a spec and the labels say."""
    return Objective(make_model(spec.model), targets.values, l2=spec.l2, intercept=spec.intercept)


def centres(spec: TrainingSpec) -> bool:
    """Whether a training descends in centred coordinates: with a line search, exact gradients and
    an intercept. A fixed step is meant for the coordinates of theta."""
    return spec.intercept and spec.step == "line" and spec.tolerance == 0


def make_descent(
    spec: TrainingSpec,
    objective: Objective,
    stop: Stop,
    product: Multiply,
    transposed: Multiply | None,
    moments: Array | None,
    clock: Callable[[], float],
    codes: Sequence[ErasureCode] = (),
) -> Descent:
    """What descends: for a spec, products with its matrices, and the sums that it needs (`moments`,
    (d, m): X^T [Y, 1] of a Gram form, X^T 1 where coordinates are centred). `codes` are those of
    the matrix and of its transpose, from which anytime steps know how good estimates are."""
    sums = None
    if spec.form == "gram" and moments is not None:
        sums = Moments(np.asarray(moments[:, :-1]), np.asarray(moments[:, -1:]))
    elif transposed is None:
        raise BadInput("gradients need the transpose, or X^T Y and the Gram matrix")
    if spec.anytime:
        estimates = _make_anytime(spec, objective, sums, product, transposed, codes)
        advance = make_advance(spec.step, spec.momentum, spec.beta, exact=False)
        return Descent(estimates, advance, stop, Tolerance(ESTIMATES), clock)
    source: LineSource
    if sums is not None:
        source = GramGradient(product, sums, objective)
    elif transposed is not None:
        source = SampleGradient(spec.features, product, transposed, objective)
    if moments is not None and centres(spec):
        source = Centred(source, np.asarray(moments[:, -1:]) / spec.samples)
    exact = spec.tolerance == 0
    advance = make_advance(spec.step, spec.momentum, spec.beta, exact=exact)
    return Descent(source, advance, stop, Tolerance(spec.tolerance, spec.tighten), clock)


def _make_anytime(
    spec: TrainingSpec,
    objective: Objective,
    sums: Moments | None,
    product: Multiply,
    transposed: Multiply | None,
    codes: Sequence[ErasureCode],
) -> GradientSource:
    if not (isinstance(product, Product) and codes):
        raise BadInput("anytime steps need runs of a coded matrix, and its code")
    if sums is not None:
        return AnytimeGram(product, codes[0], GramGradient(product, sums, objective))
    if not (isinstance(transposed, Product) and len(codes) == 2 and not isinstance(spec.step, str)):
        raise BadInput("anytime steps by two products need the transpose, and a fixed step")
    products, both = (product, transposed), (codes[0], codes[1])
    return AnytimeSamples(products, both, spec.features, objective, spec.step)
