"""Both factors coded: the tensor code, alternating decoding, and the estimate with its bar."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarcodes import InvalidCode, NotDecodable, code_from_manifest, estimate_product, make_code
from polarcodes.any_erasures import survived_by_any
from polarcodes.grid import GridCode
from polarcodes.polynomial import PolynomialCode


def hadamard(workers, blocks, seed=0):
    return make_code("hadamard", workers=workers, data_blocks=blocks, seed=seed)


def grid(n1, s1, n2, s2, seed=0):
    return GridCode(hadamard(n1, s1, seed), hadamard(n2, s2, seed + 1))


def peels(code: GridCode, known: np.ndarray) -> bool:
    """Alternating decoding as in the design notes: columns, then rows, until nothing moves."""
    known = known.copy()
    while True:
        before = known.sum()
        for column in range(known.shape[1]):
            if code.left.decodable(np.flatnonzero(known[:, column])):
                known[:, column] = True
        for row in range(known.shape[0]):
            if code.right.decodable(np.flatnonzero(known[row])):
                known[row] = True
        if known.all() or known.sum() == before:
            return bool(known.all())


def test_the_generator_is_the_kronecker_product():
    code = grid(4, 3, 8, 5)
    wanted = np.kron(code.left.generator(), code.right.generator())
    np.testing.assert_allclose(code.generator(), wanted, atol=1e-12)


def test_workers_multiply_coded_blocks_and_the_decoder_gives_the_blocks_of_the_product():
    rng = np.random.default_rng(0)
    code = grid(6, 4, 5, 3)
    A, B = rng.standard_normal((4, 2, 7)), rng.standard_normal((3, 5, 7))  # blocks of A and of B^T
    left = code.left.encode(A.reshape(4, -1)).reshape(6, 2, 7)
    right = code.right.encode(B.reshape(3, -1)).reshape(5, 5, 7)
    answers = np.array([(a @ b.T).ravel() for a in left for b in right])
    S = [w for w in range(30) if w not in (3, 8, 9, 20)]
    product = code.plan(S).apply(answers[S]).reshape(4, 3, 2, 5)
    for k in range(4):
        for l in range(3):  # noqa: E741 - the name of the index in the formula
            np.testing.assert_allclose(product[k, l], A[k] @ B[l].T, atol=1e-9)


@given(st.sets(st.integers(0, 35), max_size=20), st.integers(0, 3))
def test_decodable_is_what_alternating_decoding_reaches(missing, seed):
    code = grid(6, 4, 6, 5, seed)
    S = sorted(set(range(36)) - missing)
    known = np.zeros(36, bool)
    known[S] = True
    assert code.decodable(S) == peels(code, known.reshape(6, 6))


def test_a_stopping_set_is_not_decodable_and_one_more_answer_of_it_helps():
    code = grid(4, 3, 4, 3)
    square = {0, 1, 4, 5}
    S = sorted(set(range(16)) - square)
    with pytest.raises(NotDecodable) as caught:
        code.plan(S)
    assert set(caught.value.helpful) <= square
    assert all(code.decodable([*S, one]) for one in square)


def hardest_fours(rows: int, columns: int, count: int = 20) -> list[list[int]]:
    """Squares, lines, and lines with a corner: what alternating decoding minds most."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(count):
        i, j = rng.permutation(rows)[:4], rng.permutation(columns)[:4]
        cells = [
            [(i[0], j[0]), (i[0], j[1]), (i[1], j[0]), (i[1], j[1])],
            [(i[0], column) for column in j],
            [(row, j[0]) for row in i],
            [(i[0], j[0]), (i[0], j[1]), (i[0], j[2]), (i[1], j[0])],
            [(i[0], j[0]), (i[1], j[0]), (i[2], j[0]), (i[0], j[1])],
        ]
        found += [[int(row * columns + column) for row, column in four] for four in cells]
    return found


@pytest.mark.parametrize("name,options", [("hadamard", {}), ("mds", {"basis": "integer"})])
def test_two_lost_answers_of_a_row_and_one_of_a_column_survive_any_four_workers(name, options):
    def line(workers, blocks, erased):
        for seed in range(64):
            code = make_code(name, workers=workers, data_blocks=blocks, seed=seed, **options)
            if survived_by_any(code, erased, 1e3) >= erased:
                return code
        raise AssertionError("no such code")

    code = GridCode(line(3, 2, 1), line(4, 2, 2))
    everybody = set(range(12))
    for dead in combinations(range(12), 4):
        assert code.decodable(sorted(everybody - set(dead))), dead
    large = GridCode(line(16, 15, 1), line(16, 14, 2))
    for dead in hardest_fours(16, 16):
        assert large.decodable(sorted(set(range(256)) - set(dead))), dead


def test_survived_by_any_is_what_every_set_says():
    for name, workers, blocks in [("polar", 8, 5), ("hadamard", 7, 5), ("replication", 6, 2)]:
        code = make_code(name, workers=workers, data_blocks=blocks, seed=1)
        counted = survived_by_any(code, 4, 1e9)
        everybody = set(range(workers))

        def all_decode(erased, code=code, everybody=everybody):
            return all(
                code.decodable(sorted(everybody - set(gone)), tolerance=1e3)
                for gone in combinations(sorted(everybody), erased)
            )

        assert all_decode(counted)
        assert counted == 4 or not all_decode(counted + 1)


def test_integer_parities_are_exact_and_any_lost_answers_up_to_their_number_decode():
    code = make_code("mds", workers=8, data_blocks=6, basis="integer")
    U = np.random.default_rng(0).integers(0, 256, (6, 20)).astype(np.uint8)
    coded = code.encode(U)
    assert coded.dtype == np.int16
    assert np.array_equal(coded[:6], U)
    for gone in combinations(range(8), 2):
        S = [w for w in range(8) if w not in gone]
        np.testing.assert_allclose(code.plan(S).apply(coded[S].astype(float)), U, atol=1e-9)
    more = make_code("mds", workers=7, data_blocks=4, basis="integer")
    assert survived_by_any(more, 3, 1e9) == 3
    assert code_from_manifest(code.to_manifest()) == code


@pytest.mark.parametrize("name", ["polar", "hadamard"])
def test_the_predicted_error_is_the_mean_over_sets_and_signs(name):
    """250 codes, each with its own set: within 12 % (six standard errors of their mean)."""
    rng = np.random.default_rng(1)
    squares, m = [], 40
    Y = rng.standard_normal((12, 15)) * rng.uniform(0.2, 2, (12, 1))
    for seed in range(250):
        left = make_code(name, workers=8, data_blocks=4, seed=2 * seed)
        right = make_code(name, workers=8, data_blocks=3, seed=2 * seed + 1)
        code = GridCode(left, right)
        S = rng.permutation(64)[:m]
        value = code.estimate(S, code.encode(Y)[S]).value
        squares.append(np.sum((value - Y) ** 2) / np.sum(Y**2))
    assert np.mean(squares) == pytest.approx(code.predicted_error(m) ** 2, rel=0.12)
    if name == "polar":
        assert code.predicted_error(m) ** 2 == pytest.approx(11 * 24 / (m * 63))


@pytest.mark.parametrize("shape", ["spread", "row", "one", "column of x", "rank one"])
def test_the_upper_bound_holds_for_nineteen_products_in_twenty(shape):
    """120 codes: at most 12 outside (5 % allowed, two and a half standard errors more)."""
    rng = np.random.default_rng(2)
    outside = 0
    for seed in range(120):
        code = grid(8, 6, 8, 5, seed=2 * seed)
        Y = np.zeros((6, 5, 4))
        if shape == "spread":
            Y[...] = rng.standard_normal(Y.shape)
        elif shape == "row":
            Y[2, :, 0] = 1.0
        elif shape == "one":
            Y[3, 1, 0] = 1.0
        elif shape == "column of x":
            Y[..., 0] = rng.standard_normal((6, 5))
        else:
            Y[..., 0] = np.outer(np.ones(6), np.ones(5))
        S = rng.permutation(64)[:45]
        X = Y.reshape(30, 4)
        found = code.estimate(S, code.encode(X)[S])
        outside += np.linalg.norm(found.value - X) > found.relative_error_upper * np.linalg.norm(X)
    assert outside <= 12


def test_the_best_estimate_is_nearer_than_the_unbiased_one_and_exact_when_decodable():
    rng = np.random.default_rng(3)
    code = grid(8, 6, 8, 6)
    X = rng.standard_normal((36, 5))
    Y = code.encode(X)
    S = rng.permutation(64)[:30]
    paper = estimate_product(code, S, Y[S], method="sketch")
    best = estimate_product(code, S, Y[S])
    assert best.method == "least-squares"
    assert np.linalg.norm(best.value - X) < np.linalg.norm(paper.value - X)
    shrunk = estimate_product(code, S, Y[S], method="shrinkage")
    assert shrunk.relative_error < paper.relative_error <= paper.relative_error_upper
    S = np.delete(np.arange(64), [3, 17])
    exact = estimate_product(code, S, Y[S])
    assert exact.method == "alternating"
    np.testing.assert_allclose(exact.value, X, atol=1e-9)
    with pytest.raises(InvalidCode, match="inner"):
        estimate_product(code, S[:20], Y[S[:20]], metric="inner")


def test_what_is_no_line_of_a_grid_is_refused():
    line = hadamard(4, 3)
    with pytest.raises(InvalidCode, match="left"):
        GridCode(make_code("berrut", workers=4, data_blocks=3), line)
    with pytest.raises(InvalidCode, match="right"):
        GridCode(line, GridCode(line, line))


@pytest.mark.parametrize("basis", ["chebyshev", "monomial"])
def test_polynomial_codes_decode_any_set_of_as_many_answers_as_blocks(basis):
    code = PolynomialCode(8, (2, 3), basis=basis)
    rng = np.random.default_rng(4)
    A, B = rng.standard_normal((2, 3, 5)), rng.standard_normal((3, 4, 5))
    first, second = code.factors
    left, right = np.tensordot(first, A, 1), np.tensordot(second, B, 1)
    answers = np.einsum("nid,njd->nij", left, right).reshape(8, -1)
    wanted = np.einsum("kid,ljd->klij", A, B).reshape(6, -1)
    for S in combinations(range(8), 6):
        np.testing.assert_allclose(code.plan(S).apply(answers[list(S)]), wanted, atol=1e-8)
    assert code.generator().shape == (8, 6)


def test_polynomial_codes_lose_their_digits_and_chebyshev_nodes_lose_them_later():
    conditions = {
        basis: np.linalg.cond(PolynomialCode(36, (5, 5), basis=basis).generator())
        for basis in ("chebyshev", "monomial")
    }
    assert conditions["chebyshev"] < 20
    assert conditions["monomial"] > 1e7
    again = PolynomialCode.from_manifest(PolynomialCode(6, (2, 2)).to_manifest())
    assert again == PolynomialCode(6, (2, 2))
    for bad in ({"workers": 3}, {"data_blocks": 5}, {"basis": "x"}, {"data_grid": [2]}):
        with pytest.raises(ValueError, match=r".+"):
            PolynomialCode.from_manifest({**PolynomialCode(6, (2, 2)).to_manifest(), **bad})
