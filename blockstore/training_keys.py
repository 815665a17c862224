"""Keys of a training.

trainings/<training>/spec.json, labels.npy, moments.npy, status.json, theta.npy, report.json
trainings/<training>/checkpoints/<iteration, 6 digits>.npy
"""

from __future__ import annotations

import re

from blockstore.errors import NameRefused
from blockstore.keys import is_run

TRAININGS = "trainings/"

_CHECKPOINT = re.compile(r"trainings/[^/]+/checkpoints/(\d{6,})\.npy")


def validate_training(training: str) -> str:
    """Return `training` if it is a training's id, made like a run's, else raise `NameRefused`."""
    if not is_run(str(training)):
        raise NameRefused(
            f"training id {training!r}: must be the 26 characters that `train` printed; "
            "`polarlambda trainings list` shows them"
        )
    return training


def training_prefix(training: str) -> str:
    """Prefix of everything of a training."""
    return f"{TRAININGS}{training}/"


def training_key(training: str) -> str:
    """Key of what was asked of a training."""
    return f"{TRAININGS}{training}/spec.json"


def labels_key(training: str) -> str:
    """Key of a training's labels."""
    return f"{TRAININGS}{training}/labels.npy"


def moments_key(training: str) -> str:
    """Key of sums over X that a training computes once."""
    return f"{TRAININGS}{training}/moments.npy"


def training_status_key(training: str) -> str:
    """Key of how a training is going."""
    return f"{TRAININGS}{training}/status.json"


def theta_key(training: str) -> str:
    """Key of the parameters a training ended with."""
    return f"{TRAININGS}{training}/theta.npy"


def training_report_key(training: str) -> str:
    """Key of a training's report."""
    return f"{TRAININGS}{training}/report.json"


def checkpoints_prefix(training: str) -> str:
    """Prefix of a training's checkpoints."""
    return f"{TRAININGS}{training}/checkpoints/"


def checkpoint_key(training: str, iteration: int) -> str:
    """Key of the checkpoint of an iteration."""
    return f"{TRAININGS}{training}/checkpoints/{iteration:06d}.npy"


def parse_checkpoint_key(key: str) -> int:
    """The iteration of a checkpoint; ValueError if it is not the key of one."""
    match = _CHECKPOINT.fullmatch(key)
    if match is None:
        raise ValueError(f"{key!r} is not the key of a checkpoint")
    return int(match[1])
