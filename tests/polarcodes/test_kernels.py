"""Kernels: the criterion against brute force, and the recursion against slow counterparts."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polarcodes import InvalidCode
from polarcodes.construction import data_slots, erasure_log_odds
from polarcodes.erasures import ErasureTree, erased_inputs
from polarcodes.kernels.kernel import (
    checked_kernel,
    dct_kernel,
    default_kernels,
    hadamard_kernel,
    next_order,
    polarises,
)
from polarcodes.kernels.recursion import (
    SettledTree,
    input_log_odds,
    input_times,
    reached_inputs,
)

SIZES = st.lists(st.integers(2, 4), min_size=1, max_size=3)


def determined(kernel: np.ndarray, rows: list[int], c: int) -> bool:
    """Whether the outputs ``rows`` fix input c when the inputs before it are known."""
    later = kernel[np.ix_(rows, range(c, len(kernel)))]
    unit = np.zeros((1, later.shape[1]))
    unit[0, 0] = 1
    rank = np.linalg.matrix_rank(later, tol=1e-9) if rows else 0
    return bool(np.linalg.matrix_rank(np.vstack([later, unit]), tol=1e-9) == rank)


def order_statistic(kernel: np.ndarray) -> bool:
    """By brute force: any order of arrivals gives input c at the (l - c)-th, not earlier."""
    size = len(kernel)
    for order in permutations(range(size)):
        for c in range(size):
            first = next(
                (m for m in range(size + 1) if determined(kernel, list(order[:m]), c)), None
            )
            if first != size - c:
                return False
    return True


def test_the_criterion_is_what_brute_force_finds_on_all_small_kernels():
    """Every 2 x 2 kernel of -1, 0, 1, 2 and every 3 x 3 kernel of -1, 0, 1 with a leading 1."""
    two = [np.array(entries, float).reshape(2, 2) for entries in product((-1, 0, 1, 2), repeat=4)]
    three = [
        np.array((1, *entries), float).reshape(3, 3)
        for entries in product((-1, 0, 1), repeat=8)
        if entries[1] and entries[4] and entries[7]  # without zeros in the last column
    ]
    found = {len(kernel): 0 for kernel in (two[0], three[0])}
    for kernel in two + three[::3]:
        wanted = order_statistic(kernel)
        assert polarises(kernel) == wanted, kernel
        found[len(kernel)] += wanted
    assert found[2] > 50
    assert found[3] > 50


@given(st.integers(2, 4), st.integers(0, 2**32))
@settings(max_examples=60)
def test_the_criterion_is_what_brute_force_finds_on_random_kernels(size, seed):
    kernel = np.random.default_rng(seed).integers(-2, 3, (size, size)).astype(float)
    assert polarises(kernel) == order_statistic(kernel)


def test_kernels_that_do_and_do_not():
    assert polarises(hadamard_kernel())
    assert not polarises(np.kron(hadamard_kernel(), hadamard_kernel()))  # H_4 as one kernel
    assert polarises(np.array([[1.0, 1.0], [0.0, 1.0]]))
    assert not polarises(np.array([[1.0, 0.0], [1.0, 1.0]]))
    for size in range(2, 13):
        kernel = dct_kernel(size)
        np.testing.assert_allclose(kernel.T @ kernel, size * np.eye(size), atol=1e-12)
        assert polarises(kernel)
    assert polarises(dct_kernel(3).T)  # the DCT-II as well


@pytest.mark.parametrize(
    "kernel",
    [
        None,
        3.0,
        "abc",
        [[1.0]],
        [[1.0, 1.0]],
        [[1, 1], [1, np.nan]],
        [[1, 1], [1, 1]],
        [[1, 0], [1, 1]],
        np.ones((17, 17)),
        np.kron(hadamard_kernel(), hadamard_kernel()),
    ],
)
def test_what_does_not_polarise_is_refused(kernel):
    with pytest.raises(InvalidCode, match=r"kernels\[2\]"):
        checked_kernel("kernels[2]", kernel)


@pytest.mark.parametrize("order,sizes", [(2, [2]), (12, [2, 2, 3]), (27, [3] * 3), (1, [])])
def test_default_kernels_multiply_to_the_order(order, sizes):
    assert [len(kernel) for kernel in default_kernels(order)] == sizes


def test_orders_with_other_factors_have_no_default_kernels():
    with pytest.raises(InvalidCode, match="2\\^a 3\\^b"):
        default_kernels(10)


def test_the_next_order_is_the_least_one():
    smooth = [2**a * 3**b for a in range(13) for b in range(9)]
    for workers in range(2, 4000, 7):
        assert next_order(workers, (2, 3)) == min(n for n in smooth if n >= workers)
        assert next_order(workers, (2,)) == 1 << (workers - 1).bit_length()


def slow_times(sizes, times):
    """Input c of an l x l kernel at the (l - c)-th smallest time, in plain Python."""
    if not sizes:
        return list(times)
    size, inner = sizes[0], len(times) // sizes[0]
    ranked = [sorted(times[r * inner + j] for r in range(size)) for j in range(inner)]
    result = []
    for c in range(size):
        result += slow_times(sizes[1:], [ranked[j][size - c - 1] for j in range(inner)])
    return result


@given(SIZES, st.integers(1, 3), st.integers(0, 2**32))
def test_times_flags_and_the_tree_agree_with_plain_python(sizes, leaf, seed):
    order = int(np.prod(sizes)) * leaf
    ranks = np.random.default_rng(seed).permutation(order)
    wanted = slow_times(sizes, ranks.tolist())
    assert input_times(sizes, ranks).tolist() == wanted
    for moment in (0, order // 3, order - 1):
        reached = reached_inputs(sizes, ranks <= moment)
        assert reached.tolist() == [time <= moment for time in wanted]
    tree = SettledTree(sizes, order)
    settled = [tree.settle(int(position)) for position in np.argsort(ranks)]
    assert settled == np.argsort(wanted).tolist()


def test_several_patterns_at_once():
    known = np.random.default_rng(0).random((24, 5)) < 0.7
    together = reached_inputs((2, 2, 3), known)
    for column in range(5):
        assert np.array_equal(together[:, column], reached_inputs((2, 2, 3), known[:, column]))


@given(st.integers(1, 5), st.integers(0, 2**32))
def test_kernels_of_two_are_the_usual_code(level, seed):
    order = 1 << level
    known = np.random.default_rng(seed).random(order) < 0.6
    assert np.array_equal(reached_inputs((2,) * level, known), ~erased_inputs(~known))
    ours, usual = SettledTree((2,) * level, order), ErasureTree(order)
    for position in np.random.default_rng(seed).permutation(order).tolist():
        assert ours.settle(position) == usual.settle(position)


def exact_probabilities(sizes, erasure):
    """The recursion in rational numbers, one position after the other."""
    if not sizes:
        return list(erasure)
    size, inner = sizes[0], len(erasure) // sizes[0]
    result = []
    for c in range(size):
        layer = []
        for j in range(inner):
            counts = [Fraction(1)]
            for r in range(size):
                z = erasure[r * inner + j]
                stay, move = [p * z for p in counts] + [0], [0] + [p * (1 - z) for p in counts]
                counts = [a + b for a, b in zip(stay, move, strict=True)]
            layer.append(sum(counts[: size - c]))
        result += exact_probabilities(sizes[1:], layer)
    return result


def test_golden_probabilities_of_a_kernel_of_three():
    """1-(1-z)^3, 3z^2-2z^3, z^3."""
    z = 0.3
    odds = np.exp(input_log_odds((3,), np.full(3, z)))
    wanted = [1 - (1 - z) ** 3, 3 * z**2 - 2 * z**3, z**3]
    np.testing.assert_allclose(odds / (1 + odds), wanted, rtol=1e-12)


@given(SIZES, st.integers(1, 2), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_log_odds_equal_rational_arithmetic(sizes, leaf, random):
    order = int(np.prod(sizes)) * leaf
    erasure = [Fraction(random.randint(0, 8), 8) for _ in range(order)]
    exact = exact_probabilities(sizes, erasure)
    odds = input_log_odds(sizes, np.array([float(z) for z in erasure]))
    for z, value in zip(exact, odds, strict=True):
        if z in (0, 1):
            assert value == (np.inf if z else -np.inf)
        else:
            assert value == pytest.approx(np.log(float(z / (1 - z))), abs=1e-9)


@pytest.mark.parametrize("order", [2, 64, 4096])
def test_equal_workers_give_the_slots_of_the_usual_recursion(order):
    sizes = (2,) * (order.bit_length() - 1)
    odds = input_log_odds(sizes, np.full(order, 0.25))
    np.testing.assert_allclose(odds, erasure_log_odds(order, 0.25), rtol=1e-9)
    best = np.lexsort((-np.arange(order), odds.round(9)))[: order * 3 // 4]
    assert np.array_equal(np.sort(best), data_slots(order, order * 3 // 4, 0.25))
