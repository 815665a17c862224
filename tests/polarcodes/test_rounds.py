from __future__ import annotations

import numpy as np
import pytest

from polarcodes.rounds import Rounds
from polarcodes.transform import hadamard

ORDERS = [2, 4, 8, 16, 32, 64, 256]
KINDS = ["one", "two", "rotated"]


def make_rounds(order: int, kind: str, seed: int = 0) -> Rounds:
    rng = np.random.default_rng(seed)
    signs = rng.choice(np.array([-1, 1], np.int8), (1 if kind == "one" else 2, order))
    if kind != "rotated":
        return Rounds(signs)
    return Rounds(signs, np.pi / 4 + rng.uniform(-0.6, 0.6, Rounds.angle_shape(order)))


def oracle(rounds: Rounds) -> np.ndarray:
    """G by the definition, stage by stage, from the outermost (rows far apart) to the last."""
    order = rounds.order
    matrix = np.eye(order)
    for index, signs in enumerate(rounds.signs):
        matrix = signs[:, None] * matrix
        rotated = []
        if rounds.angles is not None:
            rotated = list(rounds.angles[:1] if index == 0 else rounds.angles[1:])
        for bit in reversed(range(order.bit_length() - 1)):
            pairs = [(i, i | 1 << bit) for i in range(order) if not i >> bit & 1]
            stage = np.zeros((order, order))
            for number, (up, low) in enumerate(pairs):
                t = rotated[bit][number] if bit < len(rotated) else np.pi / 4
                stage[up, [up, low]] = np.cos(t), np.sin(t)
                stage[low, [up, low]] = np.sin(t), -np.cos(t)
            matrix = np.sqrt(2) * stage @ matrix
    return matrix / np.sqrt(order) ** (len(rounds.signs) - 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ORDERS)
def test_the_fast_transform_is_the_definition(order: int, kind: str) -> None:
    rounds = make_rounds(order, kind)
    dense = np.empty((order, order))
    rounds.apply(np.eye(order), dense)
    np.testing.assert_allclose(dense, oracle(rounds), atol=1e-12 * order)
    np.testing.assert_allclose(dense.T @ dense, order * np.eye(order), atol=1e-11 * order)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ORDERS)
def test_the_adjoint_is_the_transpose_on_chosen_rows(order: int, kind: str) -> None:
    rounds = make_rounds(order, kind, seed=1)
    rng = np.random.default_rng(2)
    at = rng.permutation(order)[: order // 2 + 1]
    take = rng.permutation(order)[: order // 2]
    u, v = rng.standard_normal((at.size, 3)), rng.standard_normal((take.size, 3))
    forward, back = np.empty((take.size, 3)), np.empty((at.size, 3))
    rounds.apply(u, forward, at=at, take=take)
    rounds.adjoint(v, back, at=take, take=at, factor=2.0)
    assert np.vdot(v, forward) * 2 == pytest.approx(np.vdot(back, u))


def test_one_round_is_exact_in_integers() -> None:
    rounds = make_rounds(64, "one")
    data = np.random.default_rng(0).integers(-255, 256, (64, 7)).astype(np.int16)
    coded = np.empty_like(data)
    rounds.apply(data, coded)
    assert np.array_equal(coded, (hadamard(64) * rounds.signs[0]) @ data)
