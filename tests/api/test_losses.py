"""Dead workers, over many draws: exact where what is left decodes, else an estimate whose error
keeps to its bar. No clock decides: a run ends when its last survivor has been heard."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import polarlambda
from blockstore.bucket import Bucket
from blockstore.connect import s3_client
from blockstore.runs import RunStore
from polarcodes.estimators import expected_error

WORKERS, DATA_BLOCKS = 64, 48


@pytest.fixture
def matrix(local_environment):
    A = np.random.default_rng(1).integers(0, 256, (96, 5), np.uint8)
    polarlambda.encode(A, "losses", workers=WORKERS, data_blocks=DATA_BLOCKS, replace=True)
    local_environment.warm("WorkerFunction", WORKERS)
    with polarlambda.CodedMatrix.open("losses") as opened:
        opened.A = A
        yield opened


def multiply_many(matrix, count, **options):
    """`count` runs, each with its own x and its own dead workers: (result, A x) of each."""
    xs = np.random.default_rng(2).standard_normal((count, matrix.shape[1]))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: matrix.multiply(x, **options), xs))
    return [(result, matrix.A.astype(float) @ x) for result, x in zip(results, xs, strict=True)]


def relative_error(value, truth):
    return np.linalg.norm(value - truth) / np.linalg.norm(truth)


@pytest.mark.slow
def test_eight_of_64_dead_is_exact_where_the_others_decode(matrix, local_stack):
    local_stack.set_chaos(fail=8, seed=5)
    code, bucket = matrix.code, Bucket(s3_client(), local_stack.bucket)

    def give_up(arrival):
        # Of a set that decodes no estimate is made, so this one has to wait for the dead.
        if arrival.arrivals == WORKERS - 8 and arrival.estimate is not None:
            polarlambda.cancel_run(arrival.run)

    exact = 0
    for result, truth in multiply_many(matrix, 20, on_arrival=give_up):
        assert result.met == result.exact
        if result.exact:
            exact += 1
            assert relative_error(result.value, truth) <= 1e-5
        else:
            survivors = sorted(RunStore(bucket, result.run).list_results())
            assert len(survivors) == WORKERS - 8
            assert not code.decodable(survivors)
            assert relative_error(result.value, truth) <= result.error_upper
    # 56 random answers of this code decode with probability 0.92: below 12 of 20 is 1 in 10^7.
    assert exact >= 12


@pytest.mark.slow
def test_the_error_with_40_of_64_dead_keeps_to_its_bar(matrix, local_stack):
    local_stack.set_chaos(fail=40, seed=6)
    within = 0
    last = f"error={1.001 * expected_error(matrix.code, 24)}"  # met by the last survivor
    for result, truth in multiply_many(matrix, 40, until=last):
        assert (result.state, result.met, result.exact) == ("estimated", True, False)
        assert result.arrivals == 24
        within += relative_error(result.value, truth) <= result.error_upper
    assert within >= 38  # 95 % of 40; the bar is on the safe side, and the seeds are fixed
