"""Gradient descent on the local stack with replayed delays: wall time to the same loss.

Least squares by W = X^T X: one product an iteration, on 20 workers, with a fixed step, so that all
schemes make the same iterations and differ in time alone. The delays of iteration t are row t for
every scheme. Each scheme is trained in a session of invocations, and the two extremes with resident
workers too. Target: the best coded scheme takes at most 0.6 of the time of no coding.

    python -m benchmarks.training_local [--data FOLDER] [--small] [--iterations 20] [--scale 1.0]

FOLDER (or POLARLAMBDA_DELAYS) holds the measured profiles, of which short-sydney-rare-long-tail is
replayed; without it, and with --small, rounds come from the model lambda-rare-tail that the project
ships.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Ratio, WrongResult, require_close, save, table
from benchmarks.subtasks_local import PROFILE, UNDELAYED_EVERY, modelled_rounds
from polarcodes.delays import from_table
from polarlambda import CodedMatrix, encode
from polarlambda.local.stack import LocalStack
from polarlambda.session import Mode
