"""Schedules as erasure codes: the table is the generator, in every respect."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest

from polarcodes import NotDecodable, code_from_manifest
from polarcodes.errors import InvalidCode, InvalidManifest
from polarcodes.schedules import ScheduleCode, make_schedule

SCHEDULES = [("cpgc", 4, 2), ("cpgc", 8, 3), ("rcsc", 7, 3), ("uc-mmc", 5, 2), ("mcc", 6, 2)]


@pytest.fixture(params=SCHEDULES, ids=lambda p: f"{p[0]}-{p[1]}-{p[2]}")
def code(request) -> ScheduleCode:
    name, workers, load = request.param
    return ScheduleCode(make_schedule(name, workers, load))


def test_block_k_r_plus_t_is_workers_k_codeword_t(code):
    schedule = code.schedule
    U = np.random.default_rng(0).standard_normal((code.data_blocks, 3))
    Y = code.encode(U)
    for worker in range(schedule.workers):
        for row in range(schedule.load):
            expected = schedule.coefficients[row, worker] @ U
            np.testing.assert_allclose(Y[worker * schedule.load + row], expected, atol=1e-12)
    buffer = np.zeros((code.workers, 3))
    buffer[code.slots] = U
    code.encode_inplace(buffer)
    np.testing.assert_allclose(buffer, Y, atol=1e-12)


def test_a_set_decodes_when_its_rows_have_full_rank(code):
    rng = np.random.default_rng(1)
    U = rng.standard_normal((code.data_blocks, 2))
    Y, G = code.encode(U), code.generator()
    seen = set()
    for _ in range(40):
        S = rng.permutation(code.workers)[: rng.integers(code.data_blocks, code.workers + 1)]
        full = np.linalg.matrix_rank(G[S]) == code.data_blocks
        seen.add(full)
        assert code.decodable(S) == full
        if full:
            np.testing.assert_allclose(code.plan(S).apply(Y[S]), U, atol=1e-9)
        else:
            with pytest.raises(NotDecodable):
                code.plan(S)
    assert True in seen


def test_the_manifest_gives_the_code_back(code):
    document = json.loads(json.dumps(code.to_manifest()))
    assert code_from_manifest(document) == code
    with pytest.raises(InvalidManifest, match="workers"):
        code_from_manifest({**document, "workers": document["workers"] + 1})


def test_the_example_counts_the_score_vectors_of_the_paper():
    code = ScheduleCode(make_schedule("cpgc", 4, 2))
    first_of_all = [0, 2, 4, 6]  # N2, N1, N0 = 0, 4, 0: one vector, complete
    assert code.decodable(first_of_all)
    without = [
        p for p in combinations(range(4), 2)
    ]  # 2, 0, 2: two workers did both, two did nothing
    complete = [p for p in without if code.decodable([2 * w + t for w in p for t in (0, 1)])]
    assert len(complete) == 6


def test_what_recovers_only_the_sum_is_refused():
    with pytest.raises(InvalidCode, match="sum of all tasks"):
        ScheduleCode(make_schedule("gradient", 6, 2))
