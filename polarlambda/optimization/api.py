"""Begin, resume, watch and delete optimisations."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from blockstore.bucket import Bucket
from blockstore.errors import ObjectMissing
from blockstore.keys import new_run_id, validate_run
from blockstore.optimizations import OptimizationStore
from blockstore.optimizations import delete_optimization as _delete
from blockstore.optimizations import list_optimizations as _list
from coordinator.cost import Usage, cost
from coordinator.invoker import LambdaInvoker, lambda_client
from coordinator.journal import timestamp
from coordinator.ports import SystemClock
from polarlambda.connect import Place as Where
from polarlambda.connect import open_bucket, worker_limits
from polarlambda.errors import BadInput
from polarlambda.optimization.domain import make_domain, read_start
from polarlambda.optimization.iteration import Place
from polarlambda.optimization.options import Options
from polarlambda.optimization.result import OptimizationResult
from polarlambda.optimization.run import OptimizationRun
from polarlambda.optimization.state import Figures, State
from polarlambda.optimization.steps import Stepper
from polarlambda.settings import objective_function

__all__ = [
    "cancel_optimization",
    "delete_optimization",
    "list_optimizations",
    "optimize",
    "resume_optimization",
    "show_optimization",
    "watch_optimization",
]

INVOKE_THREADS = 32
OnIteration = Callable[[Figures], None]


def optimize(
    objective: str,
    start: Any,
    *,
    bounds: Any = None,
    scale: Any = None,
    options: Options | None = None,
    function: str | None = None,
    objective_stack: str | None = None,
    on_begin: Callable[[str], None] | None = None,
    on_iteration: OnIteration | None = None,
    stack: str | None = None,
    bucket: str | None = None,
    **given: Any,
) -> OptimizationResult:
    """Minimise (or ``maximize=True``) a function that can only be evaluated.

    Parameters
    ----------
    objective : "module:function", the callable (theta (p,) float64, seed) -> float that the
        objective's Lambda function was built with (`scripts/new_objective.py`)
    start : (p,) finite numbers
    bounds : (low, high), or one such pair a parameter; scale : size of each parameter, a number or
        (p,), by default its box, else the rms of the start, else 1
    options, given : an `Options`, or its fields by name
    function, objective_stack : the Lambda function, or the CloudFormation stack that names it;
        else POLARLAMBDA_OBJECTIVE. stack, bucket: see `polarlambda.connect.Place`
    on_begin : gets the optimisation's id; on_iteration : `Figures` after each iteration

    Raises, before anything is written or invoked: `BadInput`, `InvalidCode`, `WaitRefused`,
    `SettingMissing`, `FunctionMissing`, `StoreError`. An iteration costs N invocations, about 5 N
    S3 requests, and N p^2 arithmetic where least squares find the gradient.
    """
    if options is None:
        unknown = sorted(set(given) - set(Options.__dataclass_fields__))
        if unknown:
            raise BadInput(f"optimize has no option {unknown[0]!r}")
        options = Options(**given)
    elif given:
        raise BadInput(f"give options or its fields, not both ({', '.join(sorted(given))})")
    _check_name(objective)
    theta = read_start(start)
    domain = make_domain(theta, bounds, scale)
    options.check(theta.size)
    opened = open_bucket(Where(stack=stack, bucket=bucket).settings())
    name = objective_function(function, objective_stack)
    place = _place(opened, name)
    now = time.time()
    optimization = new_run_id(int(now * 1000), os.urandom(10))
    stepper = Stepper(options.optimizer, options.rate, options.momentum)
    state = State(theta, theta, stepper.start(theta.size), domain, Figures())
    store = OptimizationStore(opened, optimization)
    writer = os.urandom(8).hex()
    store.put_checkpoint(0, state.to_array(), state.figures.to_metadata(), writer)
    store.create(
        {
            "version": 1,
            "optimization": optimization,
            "created": timestamp(now),
            "objective": objective,
            "function": name,
            "parameters": int(theta.size),
            "options": options.to_json(),
        }
    )
    if on_begin is not None:
        on_begin(optimization)
    return OptimizationRun(store, place, objective, options, state, on_iteration=on_iteration).run()


def resume_optimization(
    optimization: str,
    *,
    iterations: int | None = None,
    function: str | None = None,
    objective_stack: str | None = None,
    on_iteration: OnIteration | None = None,
    stack: str | None = None,
    bucket: str | None = None,
) -> OptimizationResult:
    """Go on from the newest checkpoint, with the answers of the iteration that was under way.

    ``iterations`` replaces the limit, so that one that has finished can go further. Raises
    `ObjectMissing` for no such optimisation, and what `optimize` raises.
    """
    validate_run(optimization)
    if iterations is not None and iterations < 1:
        raise BadInput(f"iterations must be at least 1, got {iterations}")
    opened = open_bucket(Where(stack=stack, bucket=bucket).settings())
    store = OptimizationStore(opened, optimization)
    spec = store.load_spec()
    options = Options.from_json(
        spec["options"] | ({} if iterations is None else {"iterations": iterations})
    )
    done = store.latest_checkpoint()
    if done is None:
        raise ObjectMissing(f"optimisation {optimization} has no checkpoint: begin another one")
    array, metadata = store.load_checkpoint(done)
    state = State.from_array(array, Figures.from_metadata(metadata))
    named = function or objective_stack
    name = objective_function(function, objective_stack) if named else str(spec["function"])
    place = _place(opened, name)
    store.withdraw_cancel()
    history = [_figures(store, number) for number in range(1, done + 1)]
    run = OptimizationRun(
        store, place, str(spec["objective"]), options, state, history, on_iteration
    )
    return run.run()


def list_optimizations(**where: str | None) -> list[str]:
    """The ids of all optimisations, oldest first."""
    return list(_list(_bucket(where)))


def show_optimization(optimization: str, **where: str | None) -> dict[str, Any]:
    """What was asked, and how far it is: {"spec": ..., "status": ... or None}.

    Raises `ObjectMissing`.
    """
    store = OptimizationStore(_bucket(where), optimization)
    spec = store.load_spec()
    try:
        return {"spec": spec, "status": store.get_status()}
    except ObjectMissing:
        return {"spec": spec, "status": None}


def watch_optimization(
    optimization: str, *, every: float = 1.0, **where: str | None
) -> Iterator[Figures]:
    """Yield the figures of each iteration as it ends, until the optimisation has ended."""
    store = OptimizationStore(_bucket(where), optimization)
    store.load_spec()
    seen = 0
    while True:
        try:
            status = store.get_status()
        except ObjectMissing:
            status = {"state": "running", "history": []}
        for figures in status["history"][seen:]:
            yield Figures.from_json(figures)
        seen = max(seen, len(status["history"]))
        if status["state"] != "running":
            return
        time.sleep(every)


def cancel_optimization(optimization: str, **where: str | None) -> None:
    """Have it end after the iteration it is in. Raises `ObjectMissing`."""
    store = OptimizationStore(_bucket(where), optimization)
    store.load_spec()
    store.cancel()


def delete_optimization(optimization: str, **where: str | None) -> int:
    """Delete everything of it; the number of objects. Raises `ObjectMissing`."""
    return _delete(_bucket(where), optimization)


def _bucket(where: dict[str, str | None]) -> Bucket:
    return open_bucket(Where(**where).settings())


def _figures(store: OptimizationStore, number: int) -> Figures:
    return Figures.from_metadata(store.load_checkpoint(number)[1])


def _check_name(objective: str) -> None:
    module, separator, function = objective.partition(":")
    parts = [*module.split("."), function]
    if not separator or not all(part.isidentifier() for part in parts):
        raise BadInput(f"objective must be module:function, got {objective!r}")


def _place(bucket: Bucket, function: str) -> Place:
    """The function, checked to be there, and what it costs."""
    client = lambda_client(pool=INVOKE_THREADS)
    LambdaInvoker(client, function).check()
    limits = worker_limits(client, function)
    prices = limits.prices

    def evaluator() -> LambdaInvoker:
        return LambdaInvoker(client, function, threads=INVOKE_THREADS)

    def bill(usage: Usage) -> float:
        return cost(usage, prices).total

    return Place(bucket, evaluator, SystemClock(), limits.timeout, limits.memory_mb, bill)
