"""Balance a pole on a cart: gymnasium's CartPole-v1 with a linear policy of four weights.

The score is the mean return of three episodes, at most 500; gymnasium calls the problem solved at
475. Maximise it.
"""

from __future__ import annotations

import gymnasium
import numpy as np

OBJECTIVE = "score"
REQUIREMENTS = ["gymnasium==1.4.0"]
START = "zeros:4"
EPISODES = 3


def score(theta: np.ndarray, seed: int) -> float:
    """Mean return of the policy "push right where theta . observation > 0"."""
    environment = gymnasium.make("CartPole-v1")
    total = 0.0
    for episode in range(EPISODES):
        observation, _ = environment.reset(seed=seed + episode)
        ended = False
        while not ended:
            action = int(theta @ observation > 0)
            observation, reward, terminated, truncated, _ = environment.step(action)
            total += float(reward)
            ended = terminated or truncated
    environment.close()
    return total / EPISODES
