from __future__ import annotations

import numpy as np
import pytest

from polarcodes import InvalidAnswers, InvalidBlocks, make_code


@pytest.fixture
def case():
    code = make_code("polar", workers=64, data_blocks=48, seed=1)
    rng = np.random.default_rng(0)
    U = rng.standard_normal((48, 10))
    S = rng.permutation(64)[:58]
    assert code.decodable(S)
    return code, S, code.encode(U)[S]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_right_answers_are_verified(case, dtype):
    code, S, Y = case
    Y = Y.astype(dtype)
    residual = code.residual(S, Y, code.plan(S).apply(Y))
    assert residual.equations == 10
    assert residual.relative <= residual.worst < 0.1 * residual.tolerance
    assert residual.consistent
    assert residual.verified


@pytest.mark.parametrize("position", range(0, 58, 6))
def test_one_wrong_answer_is_noticed(case, position):
    code, S, Y = case
    wrong = Y.astype(np.float32)
    wrong[position] *= 1.1
    residual = code.residual(S, wrong, code.plan(S).apply(wrong))
    assert not residual.consistent
    assert not residual.verified
    assert residual.worst_worker in S


def test_without_left_over_equations_nothing_is_verified():
    code = make_code("polar", workers=16, data_blocks=16)
    Y = np.random.default_rng(2).standard_normal((16, 3))
    Y[4] += 100  # any answers at all fit some product
    residual = code.residual(range(16), Y, code.plan(range(16)).apply(Y))
    assert residual.equations == 0
    assert residual.consistent
    assert not residual.verified


def test_zero_answers(case):
    code, S, _ = case
    zeros = np.zeros((58, 2))
    nothing = code.residual(S, zeros, np.zeros((48, 2)))
    assert nothing.relative == 0
    assert nothing.consistent
    something = code.residual(S, zeros, np.ones((48, 2)))
    assert something.relative == something.worst == np.inf
    assert not something.consistent


def test_shapes_that_do_not_fit_are_refused(case):
    code, S, Y = case
    X = code.plan(S).apply(Y)
    with pytest.raises(InvalidAnswers, match="columns"):
        code.residual(S, Y, X[:, :-1])
    with pytest.raises(InvalidBlocks, match="shape"):
        code.residual(S, Y, X[:-1])
    with pytest.raises(InvalidAnswers, match="shape"):
        code.residual(S[:-1], Y, X)
