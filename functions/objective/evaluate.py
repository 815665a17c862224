"""From an event to values of the objective."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import array_digest
from blockstore.errors import (
    AccessDenied,
    BucketMissing,
    CorruptObject,
    CredentialsMissing,
)
from blockstore.evaluations import Evaluation, EvaluationFailure, EvaluationTask, Round
from blockstore.rounds import RoundStore
from polarcodes.directions import directions_from_manifest
from polarcodes.randomness import words

__all__ = ["NoValue", "ObjectiveMissing", "RoundStopped", "evaluate", "failure", "load_objective"]

Objective = Callable[..., Any]
MAX_MESSAGE = 1000


class NoValue(Exception):
    """The objective returned something that is no finite number: an erasure."""


class RoundStopped(Exception):
    """The round has ended: not an error, nothing is to be done."""


class ObjectiveMissing(Exception):
    """This function was not built for the objective that it is asked about."""


def load_objective(name: str) -> Objective:
    """The callable ``module:function``; raises `ObjectiveMissing` that says what is there."""
    module, separator, attribute = name.partition(":")
    if not (separator and module and attribute):
        raise ObjectiveMissing(f"objective must be module:function, got {name!r}")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as exc:
        raise ObjectiveMissing(f"objective {name!r} cannot be imported: {exc}") from exc
    if not callable(found):
        raise ObjectiveMissing(f"objective {name!r} is a {type(found).__name__}, not a function")
    return found  # type: ignore[no-any-return]


def evaluate(store: RoundStore, task: EvaluationTask, objective: Objective) -> Evaluation:
    """f at theta + step v and theta - step v, or at theta in a round without directions.

    Both points of a pair have the same seed, so that the noise they share cancels. Raises
    `NoValue`, `RoundStopped`, and whatever the objective raises.
    """
    described = store.load()
    if described.stopped:
        raise RoundStopped(f"round {task.round} has ended")
    point = store.load_point(described.parameters)
    if array_digest(point) != described.point_digest:
        raise CorruptObject("point.npy is not the one that round.json was written for")
    seed = _seed(described, task.worker)
    began = time.monotonic()
    called = partial(objective, **described.arguments)
    values = tuple(_value(called, theta, seed) for theta in _points(described, point, task))
    return Evaluation(
        worker=task.worker,
        values=values,
        seed=seed,
        seconds=time.monotonic() - began,
        attempt=task.attempt,
    )


def failure(task: EvaluationTask, exc: BaseException) -> EvaluationFailure:
    """What is left in the store of an evaluation that raised; fatal if all others would, too."""
    fatal = isinstance(exc, ObjectiveMissing | AccessDenied | BucketMissing | CredentialsMissing)
    return EvaluationFailure(
        worker=task.worker,
        attempt=task.attempt,
        type=type(exc).__name__,
        message=str(exc)[:MAX_MESSAGE],
        fatal=fatal,
    )


def _points(
    described: Round, point: NDArray[Any], task: EvaluationTask
) -> tuple[NDArray[np.float64], ...]:
    theta, steps = point
    if described.directions is None:
        return (theta.copy(),)
    direction = directions_from_manifest(described.directions).vectors([task.worker])[0]
    places = slice(None) if described.coordinates is None else list(described.coordinates)
    move = np.zeros_like(theta)
    move[places] = direction * steps[places]
    return theta + move, theta - move


def _seed(described: Round, worker: int) -> int:
    if described.seeds == "common":
        return described.seed
    return int(words(1, described.seed, stream=worker)[0] >> np.uint64(33))


def _value(objective: Objective, theta: NDArray[np.float64], seed: int) -> float:
    returned = objective(theta, seed)
    if isinstance(returned, np.ndarray) and returned.size == 1:
        returned = returned.item()
    if isinstance(returned, bool) or not isinstance(returned, numbers.Real):
        raise NoValue(f"the objective returned {returned!r}: it must return a number")
    value = float(returned)
    if not math.isfinite(value):
        raise NoValue(f"the objective returned {value}: evaluations must be finite")
    return value
