"""One iteration: a round of evaluations along directions, a gradient, a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import array_digest
from blockstore.bucket import Bucket
from blockstore.evaluations import EvaluationTask, Round
from blockstore.rounds import RoundStore
from coordinator.cost import Usage
from coordinator.evaluation_round import Evaluator, RoundOutcome, RoundRules, collect_round
from coordinator.ports import Clock
from coordinator.wait import Wait, parse_wait
from polarcodes.directions import Directions, make_directions
from polarlambda.optimization.blocks import block_places, derived_seed
from polarlambda.optimization.options import Options
from polarlambda.optimization.result import FinalScore
from polarlambda.optimization.state import Figures, State
from polarlambda.optimization.steps import Stepper, bounded, next_radius

__all__ = ["Place", "final_scores", "iterate"]

FINAL_ROUNDS = 500_000  # numbers of the rounds that evaluate a theta itself begin here


@dataclass(frozen=True)
class Place:
    """Where evaluations happen: bucket, who invokes, the clock, the function's limits, and what
    turns usage into dollars.

    `evaluators` makes a new one for each round: what an earlier round's invocations come to is
    nothing to a later one, and those that have not begun when it ends are dropped.
    """

    bucket: Bucket
    evaluators: Callable[[], Evaluator]
    clock: Clock
    timeout: float
    memory_mb: int
    bill: Callable[[Usage], float]


def iterate(
    place: Place, optimization: str, objective: str, options: Options, state: State
) -> State:
    """The state after the next iteration; raises what `collect_round` raises.

    The round's number, directions and seeds are functions of the options and the iteration: a
    coordinator that takes over does the same iteration again with the answers that are there.
    """
    number, parameters = state.figures.iteration, state.theta.size
    places = block_places(parameters, options.block_size(parameters), options.seed, number)
    directions = make_directions(
        options.directions,
        parameters=places.size,
        count=options.count(parameters),
        seed=derived_seed(options.seed, "directions", number),
        **options.direction_options,
    )
    vectors = directions.vectors(range(directions.count))
    reach = float(np.abs(vectors).max())
    sigma = state.domain.sigma(options.sigma, reach)
    theta = state.domain.inside(state.theta, sigma * reach)
    outcome = evaluate_round(
        place,
        optimization,
        objective,
        Round(
            number=number,
            workers=directions.count,
            parameters=parameters,
            directions=directions.to_manifest(),
            coordinates=None if places.size == parameters else tuple(map(int, places)),
            seed=derived_seed(options.seed, "evaluations", number),
            seeds=options.seeds,
            point_digest="",
            arguments=options.arguments,
        ),
        np.stack([theta, sigma * state.domain.scale]),
        parse_wait(options.wait),
        directions,
    )
    return _step(place, options, state, places, directions, sigma, theta, outcome)


def evaluate_round(
    place: Place,
    optimization: str,
    objective: str,
    described: Round,
    point: NDArray[np.float64],
    wait: Wait,
    directions: Directions | None,
) -> RoundOutcome:
    """Write the round, evaluate it, and tell those that have not begun not to begin."""
    described = replace(described, point_digest=array_digest(point))
    store = RoundStore(place.bucket, optimization, described.number)
    store.save(described, point)
    tasks = [
        EvaluationTask(
            optimization=optimization,
            round=described.number,
            worker=worker,
            workers=described.workers,
            objective=objective,
        )
        for worker in range(described.workers)
    ]
    enough: Callable[[Sequence[int]], bool] = lambda S: len(S) == described.workers  # noqa: E731
    if directions is not None:
        enough = directions.decodable
    values = 1 if directions is None else 2
    rules = RoundRules(wait, place.timeout, values)
    with closing(place.evaluators()) as evaluator:
        outcome = collect_round(store, tasks, evaluator, rules, place.clock, enough)
    if outcome.silent:
        store.stop(described)
    return outcome


def _step(
    place: Place,
    options: Options,
    state: State,
    places: NDArray[np.intp],
    directions: Directions,
    sigma: float,
    theta: NDArray[np.float64],
    outcome: RoundOutcome,
) -> State:
    arrived = outcome.arrived
    values = np.array([outcome.answers[worker].values for worker in arrived])
    middles = values.mean(axis=1)
    score = float(middles.mean())
    error = float(middles.std(ddof=1) / math.sqrt(len(arrived))) if len(arrived) > 1 else 0.0
    slopes = (values[:, 0] - values[:, 1]) / (2 * sigma)
    found = directions.gradient(arrived, slopes, estimator=options.estimator)
    downhill = -found.value if options.maximize else found.value
    stepper = Stepper(options.optimizer, options.rate, options.momentum)
    step, memory = stepper.step(state.memory, downhill, places)
    radius = _radius(options, state.figures, score, error)
    if options.control == "trust":
        step = bounded(step, radius)
    moved = theta.copy()
    moved[places] += step * state.domain.scale[places]
    before = state.figures
    improved = before.best_score is None or _gain(options, score, before.best_score) > 0
    used = _usage(outcome, directions.count, place)
    figures = Figures(
        iteration=before.iteration + 1,
        score=score,
        score_error=error,
        best_score=score if improved else before.best_score,
        evaluations=before.evaluations + 2 * len(arrived),
        failed_evaluations=before.failed_evaluations + len(outcome.failures),
        arrivals=len(arrived),
        failures=len(outcome.failures),
        silent=len(outcome.silent),
        exact=found.exact,
        radius=radius,
        sigma=sigma,
        seconds=before.seconds + outcome.seconds,
        dollars=before.dollars + place.bill(used),
        failure=_common(outcome),
    )
    return State(
        theta=state.domain.inside(moved, 0.0),
        best=theta if improved else state.best,
        memory=memory,
        domain=state.domain,
        figures=figures,
    )


def _gain(options: Options, score: float, than: float) -> float:
    return score - than if options.maximize else than - score


def _radius(options: Options, before: Figures, score: float, error: float) -> float:
    if options.control != "trust":
        return math.inf
    if before.score is None or not math.isfinite(before.radius):
        return options.rate
    spread = math.hypot(error, before.score_error or 0.0)
    return next_radius(before.radius, options.rate, _gain(options, score, before.score), spread)


def _usage(outcome: RoundOutcome, workers: int, place: Place) -> Usage:
    """What a round is billed for: evaluations that answered for the time they say, the others for
    the time that was waited at most."""
    said = sum(answer.seconds for answer in outcome.answers.values())
    others = (workers - len(outcome.answers)) * min(outcome.seconds, place.timeout)
    return Usage(
        puts=workers + 5,
        gets=2 * workers + len(outcome.answers) + len(outcome.failures),
        lists=outcome.listings,
        invokes=workers,
        worker_gb_seconds=(said + others) * place.memory_mb / 1024,
    )


def _common(outcome: RoundOutcome) -> str:
    """The failure that most evaluations had."""
    texts: dict[str, int] = {}
    for failure in outcome.failures.values():
        text = f"{failure.type}: {failure.message}"
        texts[text] = texts.get(text, 0) + 1
    return max(texts, key=lambda text: texts[text]) if texts else ""


def final_scores(
    place: Place,
    optimization: str,
    objective: str,
    options: Options,
    theta: NDArray[np.float64],
    number: int,
) -> FinalScore:
    """f at `theta` over `options.final` seeds of their own, the same for every theta."""
    described = Round(
        number=FINAL_ROUNDS + number,
        workers=options.final,
        parameters=theta.size,
        directions=None,
        coordinates=None,
        seed=derived_seed(options.seed, "evaluations", FINAL_ROUNDS),
        seeds="fresh",
        point_digest="",
        arguments=options.arguments,
    )
    point: Any = np.stack([theta, np.zeros_like(theta)])
    outcome = evaluate_round(place, optimization, objective, described, point, Wait("all"), None)
    values = np.array([outcome.answers[worker].values[0] for worker in outcome.arrived])
    error = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else 0.0
    used = _usage(outcome, options.final, place)
    return FinalScore(float(values.mean()), error, int(values.size), place.bill(used))
