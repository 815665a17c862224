"""Keys of black-box optimisations: `optimizations/<id>/...`, ids being those of runs.

spec.json                                   what was asked
rounds/<6 digits>/round.json, point.npy     directions and point of one iteration
rounds/<6 digits>/answers/<worker>.json     f at the worker's points; the first valid answer wins
rounds/<6 digits>/failures/<worker>.<attempt>.json
checkpoints/<6 digits>.npy                  the state after so many iterations
status.json, report.json; cancel            asks the coordinator to end
"""

from __future__ import annotations

import re

from blockstore.keys import validate_run

OPTIMIZATIONS = "optimizations/"
_ANSWER = re.compile(r"(\d{5,})\.json")
_FAILURE = re.compile(r"(\d{5,})\.(\d+)\.json")
_CHECKPOINT = re.compile(r"(\d{6,})\.npy")


def optimization_prefix(optimization: str) -> str:
    """Prefix of everything of an optimisation."""
    return f"{OPTIMIZATIONS}{validate_run(optimization)}/"


def spec_key(optimization: str) -> str:
    """Key of what was asked."""
    return f"{optimization_prefix(optimization)}spec.json"


def status_key(optimization: str) -> str:
    """Key of how far it is."""
    return f"{optimization_prefix(optimization)}status.json"


def report_key(optimization: str) -> str:
    """Key of the report."""
    return f"{optimization_prefix(optimization)}report.json"


def cancel_key(optimization: str) -> str:
    """Key of the marker that asks the coordinator to end."""
    return f"{optimization_prefix(optimization)}cancel"


def round_prefix(optimization: str, number: int) -> str:
    """Prefix of the objects of one round."""
    return f"{optimization_prefix(optimization)}rounds/{number:06d}/"


def round_key(optimization: str, number: int) -> str:
    """Key of a round's directions."""
    return f"{round_prefix(optimization, number)}round.json"


def point_key(optimization: str, number: int) -> str:
    """Key of a round's point and steps."""
    return f"{round_prefix(optimization, number)}point.npy"


def answers_prefix(optimization: str, number: int) -> str:
    """Prefix of the answers of a round."""
    return f"{round_prefix(optimization, number)}answers/"


def answer_key(optimization: str, number: int, worker: int) -> str:
    """Key of a worker's answer."""
    return f"{answers_prefix(optimization, number)}{worker:05d}.json"


def failures_prefix(optimization: str, number: int) -> str:
    """Prefix of the failures of a round."""
    return f"{round_prefix(optimization, number)}failures/"


def failure_key(optimization: str, number: int, worker: int, attempt: int) -> str:
    """Key of the failure of a worker's attempt."""
    return f"{failures_prefix(optimization, number)}{worker:05d}.{attempt}.json"


def checkpoints_prefix(optimization: str) -> str:
    """Prefix of the checkpoints."""
    return f"{optimization_prefix(optimization)}checkpoints/"


def checkpoint_key(optimization: str, iterations: int) -> str:
    """Key of the state after so many iterations."""
    return f"{checkpoints_prefix(optimization)}{iterations:06d}.npy"


def parse_answer_key(key: str) -> int:
    """The worker of an answer's key; ValueError if it is none."""
    match = _ANSWER.fullmatch(key.rpartition("/")[2])
    if match is None:
        raise ValueError(f"{key!r} is not the key of an answer")
    return int(match[1])


def parse_failure_key(key: str) -> tuple[int, int]:
    """(worker, attempt) of a failure's key; ValueError if it is none."""
    match = _FAILURE.fullmatch(key.rpartition("/")[2])
    if match is None:
        raise ValueError(f"{key!r} is not the key of a failure")
    return int(match[1]), int(match[2])


def parse_checkpoint_key(key: str) -> int:
    """The number of iterations of a checkpoint's key; ValueError if it is none."""
    match = _CHECKPOINT.fullmatch(key.rpartition("/")[2])
    if match is None:
        raise ValueError(f"{key!r} is not the key of a checkpoint")
    return int(match[1])
