"""Erasure codes over the real numbers: encode blocks, decode or estimate from any answers.

>>> import numpy as np
>>> code = make_code("polar", workers=8, data_blocks=5, seed=0)
>>> U = np.arange(10.0).reshape(5, 2)
>>> Y_all = code.encode(U)
>>> state = code.arrivals()
>>> for worker in (6, 1, 7, 3, 0, 4, 2):
...     _ = state.add(worker)
>>> state.decodable, state.missing
(True, (5,))
>>> S = state.arrived
>>> np.allclose(code.plan(S).apply(Y_all[list(S)]), U)
True
>>> code.estimate(S[:4], Y_all[list(S[:4])]).relative_error.__round__(3)
0.756
"""

from polarcodes.arrivals import Arrivals
from polarcodes.code import ErasureCode
from polarcodes.errors import (
    CodeError,
    InvalidAnswers,
    InvalidBlocks,
    InvalidCode,
    InvalidManifest,
    InvalidPlan,
    InvalidWorkers,
    NotDecodable,
)
from polarcodes.estimate import Estimate
from polarcodes.estimators import estimate_product, fixed_blocks, from_reference
from polarcodes.plan import DecodingPlan
from polarcodes.registry import CODE_NAMES, code_from_manifest, make_code
from polarcodes.residual import Residual

__all__ = [
    "CODE_NAMES",
    "Arrivals",
    "CodeError",
    "DecodingPlan",
    "ErasureCode",
    "Estimate",
    "InvalidAnswers",
    "InvalidBlocks",
    "InvalidCode",
    "InvalidManifest",
    "InvalidPlan",
    "InvalidWorkers",
    "NotDecodable",
    "Residual",
    "code_from_manifest",
    "estimate_product",
    "fixed_blocks",
    "from_reference",
    "make_code",
]
