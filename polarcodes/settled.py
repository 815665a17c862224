"""What a sequential decoder that is stopped half way has fixed already.

The recursion on erasures (:mod:`polarcodes.erasures`) says which inputs are reached once those
before them are known, which is all that matters to decode everything. Here those before them may
be missing. At a stage with kernel K and l outputs y = K u of a position, input c is had from all l
outputs, or from l - c of them where u_0, ..., u_{c-1} are known; an input's codeword is completed
once its whole subtree is settled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


def settled_inputs(sizes: Sequence[int], known: Flags, is_data: Flags) -> Flags:
    """Return which inputs the outputs ``known`` (N',) settle; inputs that are no data are zero.

    ``sizes`` are those of the kernels, outermost first. O(N' sum l_j) in subtrees that are neither
    known nor frozen as a whole.
    """
    settled = ~is_data
    _settle(sizes, known, settled)
    return settled


def _settle(sizes: Sequence[int], known: Flags, settled: Flags) -> bool:
    """Settle the inputs of one subtree in place; return whether its codeword is complete."""
    if known.all() or settled.all():
        settled[:] = True
        return True
    if not known.any():
        return False
    if not sizes:
        settled |= known
        return bool(settled.all())
    size = sizes[0]
    outputs, inputs = known.reshape(size, -1), settled.reshape(size, -1)
    arrived = outputs.sum(axis=0)
    before = np.ones(arrived.size, bool)  # all earlier inputs of the position are known
    complete = True
    for c in range(size):
        there = (arrived == size) | (before & (arrived >= size - c))
        if _settle(sizes[1:], there, inputs[c]):
            there = np.ones_like(there)
        else:
            complete = False
        before &= there
    return complete
