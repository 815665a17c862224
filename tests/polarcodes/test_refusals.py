"""What every code refuses, with an error that names the argument."""

from __future__ import annotations

import numpy as np
import pytest

from polarcodes import InvalidAnswers, InvalidBlocks, InvalidWorkers
from tests.polarcodes.cases import CASES, build


@pytest.fixture(params=CASES, ids=lambda case: "-".join(map(str, case)))
def code(request):
    return build(request.param, seed=7)


def test_refusals_name_the_argument(code):
    for S in ([0, 0], [code.N], [-1], [0.0], [True], [[0]], ["a"]):
        for ask in (code.decodable, code.plan, code.rows):
            with pytest.raises(InvalidWorkers, match="S must"):
                ask(S)
        with pytest.raises(InvalidWorkers, match="S must"):
            code.estimate(S, np.zeros((len(S), 1)))
    for worker in (code.N, -1):
        with pytest.raises(InvalidWorkers):
            code.arrivals().add(worker)
    everybody = range(code.N)
    plan = code.plan(everybody)
    good = np.zeros((code.N, 2))
    wrong = [good[:-1], good[:, 0], good.astype(complex), good.astype(object), good.astype("S1")]
    for value in (np.nan, np.inf):
        broken = good.copy()
        broken[-1, 1] = value
        wrong.append(broken)
    for Y in wrong:
        with pytest.raises(InvalidAnswers, match="Y must"):
            plan.apply(Y)
        with pytest.raises(InvalidAnswers, match="Y must"):
            code.estimate(everybody, Y)
    data = np.zeros((code.s, 2))
    for U in (np.zeros((code.s + 1, 2)), data[:, 0], data.astype(complex), data + np.nan):
        with pytest.raises(InvalidBlocks, match="U must"):
            code.encode(U)
    for buffer in (
        np.zeros((code.N + 1, 2)),
        np.zeros((code.N, 2), np.float16),
        np.zeros((code.N, 4))[:, ::2],
        np.zeros((code.N, 2), ">f8"),
    ):
        with pytest.raises(InvalidBlocks, match="buffer must"):
            code.encode_inplace(buffer)
