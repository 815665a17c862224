"""Decodable to the tolerance of the run's precision, and the same asked in any way."""

from __future__ import annotations

import numpy as np
import pytest

from coordinator.judge import DOUBLE, SINGLE, Judge, answer_error, tolerance
from polarcodes import CODE_NAMES, make_code
from tests.planning.test_waiting import SIZES


class Precision:
    """Answers of float32 or float64, as far as a judge looks at them."""

    def __init__(self, dtype: str) -> None:
        self.epsilon = float(np.finfo(dtype).eps)


def judge(name: str, dtype: str = "f4", **options) -> Judge:
    workers, blocks = SIZES[name]
    code = make_code(name, workers=workers, data_blocks=blocks, **options)
    return Judge(code, Precision(dtype), "best")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", CODE_NAMES)
def test_arrivals_one_by_one_and_whole_sets_agree(name: str, dtype: str) -> None:
    one_by_one, asked = judge(name, dtype), judge(name, dtype)
    order = np.random.default_rng(3).permutation(one_by_one.workers).tolist()
    told = []
    for count in range(1, len(order) + 1):
        one_by_one.add(order[count - 1 : count])
        told.append(one_by_one.decodable(order[:count]))
        assert told[-1] == asked.decodable(order[:count])
    assert told == sorted(told) and told[-1], "once decodable, always; and all of them decode"


def test_the_tolerance_follows_the_precision() -> None:
    assert tolerance(Precision("f4")) == SINGLE and tolerance(Precision("f8")) == DOUBLE
    assert 1.8e-7 < answer_error(Precision("f4")) < 2e-7


def test_single_precision_waits_where_double_does_not() -> None:
    """Neighbours that are missing make Chebyshev rows nearly dependent."""
    code = make_code("mds", workers=24, data_blocks=16, basis="chebyshev")
    S = range(6, 24)
    assert not Judge(code, Precision("f4")).decodable(S)
    assert Judge(code, Precision("f8")).decodable(S)


@pytest.mark.parametrize("name", CODE_NAMES)
def test_the_error_of_a_set_is_what_its_size_lets_expect(name: str) -> None:
    told = judge(name)
    S = np.random.default_rng(0).permutation(told.workers)[: told.data_blocks // 2].tolist()
    expected = told.predicted_error(len(S))
    assert told.estimate_error(S) == pytest.approx(expected, rel=0.3)
