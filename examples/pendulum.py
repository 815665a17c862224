"""Swing a pendulum up: gymnasium's Pendulum-v1 with a small network of 33 weights.

The score is the mean return of two episodes of 200 steps: 0 would be upright without effort all
along, about -1,200 is what a limp policy gets. Gymnasium has no threshold for it. Maximise it.
"""

from __future__ import annotations

import gymnasium
import numpy as np

OBJECTIVE = "score"
REQUIREMENTS = ["gymnasium==1.4.0"]
HIDDEN = 8
START = "zeros:33"
EPISODES = 2
SCALES = np.array([1.0, 1.0, 0.125])  # of cos, sin and angular speed


def score(theta: np.ndarray, seed: int) -> float:
    """Mean return of a policy with one hidden layer of eight tanh units."""
    inner = theta[: 3 * HIDDEN].reshape(HIDDEN, 3) + FIRST
    outer = theta[3 * HIDDEN : 4 * HIDDEN]
    bias = theta[-1]
    environment = gymnasium.make("Pendulum-v1")
    total = 0.0
    for episode in range(EPISODES):
        observation, _ = environment.reset(seed=seed + episode)
        ended = False
        while not ended:
            hidden = np.tanh(inner @ (observation * SCALES))
            torque = 2.0 * np.tanh(outer @ hidden + bias)
            observation, reward, terminated, truncated, _ = environment.step(np.array([torque]))
            total += float(reward)
            ended = terminated or truncated
    environment.close()
    return total / EPISODES


FIRST = np.random.Generator(np.random.Philox(7)).standard_normal((HIDDEN, 3))
"""Where the hidden layer begins: at zero its units would all stay equal."""
