"""A transform rebuilt from the arrays of a stored decoding plan."""

from __future__ import annotations

from polarcodes.kernels.transform import KernelTransform
from polarcodes.plan import Arrays
from polarcodes.rounds import Rounds
from polarcodes.signed_transform import SignedTransform


def stored_transform(arrays: Arrays) -> SignedTransform:
    """Rebuild a transform from its arrays; raises InvalidPlan where they do not fit together."""
    return (KernelTransform if "kernel_sizes" in arrays else Rounds).from_arrays(arrays)
