"""The difference form: A x from A (x - x_ref) and the exact A x_ref of an earlier run.

An estimate of A (x - x_ref) is off by a share of ||A (x - x_ref)||, which shrinks as iterates come
closer together; an estimate of A x is off by that share of ||A x||, which does not. The reference
has to be exact: with an estimate in its place the errors of all products since the last exact one
add up, and steps that go to zero leave an error that does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore import decode_keys
from blockstore.arrays import array_digest
from blockstore.bucket import Bucket
from blockstore.errors import CorruptObject, ObjectMissing
from blockstore.manifest import Manifest
from blockstore.products import StoredProduct
from blockstore.records import RunSpec, RunStatus
from blockstore.runs import RunStore
from coordinator.decode import Decoding
from coordinator.estimate import ProductEstimate
from coordinator.inputs import InputRefused
from polarcodes.estimate import Estimate
from polarcodes.estimators import from_reference

__all__ = ["DTYPE", "Reference", "check_reference", "load_reference"]

DTYPE = np.dtype(np.float64)
"""Of the difference that is sent, and so of the answers: no digit of a small step is lost."""


@dataclass(frozen=True)
class Reference:
    """x (d,) or (d, k) and product A x, both float64, of the exact run `run`.

    rounding: predicted relative rms error of that product by rounding; verified: left-over
    equations held.
    """

    run: str
    x: NDArray[np.float64]
    product: NDArray[np.float64]
    rounding: float
    verified: bool

    def difference(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """x - x_ref, both in float64: what the workers multiply by.

        Raises `InputRefused` where that is beyond float64. Rounded by 1.1e-16 of itself at most.
        """
        with np.errstate(over="ignore"):
            difference = x.astype(DTYPE) - self.x
        if not np.isfinite(difference).all():
            raise InputRefused(
                f"x minus that of reference {self.run} overflows float64: leave the reference out"
            )
        return difference

    def shift(self, change: ProductEstimate) -> ProductEstimate:
        """The estimate of A x from one of A (x - x_ref).

        Same absolute error; the relative ones are over the norm of the new value, so that
        `error=X` means what it means without a reference.
        """
        if change.value is None:
            raise ValueError("an estimate with a reference is made in memory, to be added to")
        part = Estimate(
            change.value, change.error, change.error_upper, change.absolute, change.method
        )
        whole = from_reference(part, self.product)
        return ProductEstimate(
            whole.value,
            whole.relative_error,
            whole.relative_error_upper,
            whole.absolute_error,
            whole.method,
        )

    def complete(self, change: Decoding) -> Decoding:
        """The exact A x from the exact A (x - x_ref).

        Its rounding error is at most the sum of both, here over ||A x||: over a chain of exact
        references it grows by one product's rounding for each link.
        """
        if change.value is None:
            raise ValueError("a product with a reference is decoded in memory, to be added to")
        value = change.value + self.product
        sizes = [float(np.linalg.norm(part)) for part in (change.value, self.product, value)]
        rounding = change.error * sizes[0] + self.rounding * sizes[1]
        verification = change.verification
        if change.verified and not self.verified:
            verification += f"; but the product of reference {self.run} was not verified"
        return replace(
            change,
            value=value,
            verified=change.verified and self.verified,
            verification=verification,
            method=f"{change.method} from reference",
            error=rounding / sizes[2] if sizes[2] else rounding,
        )


def check_reference(
    bucket: Bucket, run: str, manifest: Manifest, x_shape: tuple[int, ...]
) -> tuple[RunSpec, RunStatus]:
    """What was asked of an exact run on the matrix that `manifest` describes, and how it ended.

    Raises `InputRefused`: no such run, not exact, on another matrix or encoding, or x of another
    shape. Cost: two GETs.
    """
    store = RunStore(bucket, run)
    try:
        spec = store.load_spec()
    except ObjectMissing as exc:
        raise InputRefused(f"reference: {exc}") from exc
    if spec.manifest_digest != manifest.digest:
        whose = f"matrix {spec.matrix!r}"
        if spec.matrix == manifest.name:
            whose = f"an earlier encoding of {spec.matrix!r}"
        raise InputRefused(
            f"reference {run} was a product of {whose}, and this is one of {manifest.name!r}: "
            "refer to a run on the same encoded matrix"
        )
    if spec.right is not None:
        raise InputRefused(
            f"reference {run} was a product of two encoded matrices: there is no x to differ from"
        )
    if spec.x_shape != tuple(x_shape):
        raise InputRefused(
            f"reference {run} multiplied x of shape {spec.x_shape}, but this x has shape "
            f"{tuple(x_shape)}: the shapes must be the same"
        )
    try:
        status = store.get_status()
    except ObjectMissing as exc:
        raise InputRefused(f"reference {run} has not ended: wait for it to be exact") from exc
    if not status.exact:
        raise InputRefused(
            f"reference {run} is {status.state}, not exact: errors of estimates would add up over "
            "the iterations. Refer to an exact run"
        )
    return spec, status


def load_reference(
    bucket: Bucket, run: str, manifest: Manifest, x_shape: tuple[int, ...]
) -> Reference:
    """Check an exact run and read its x and its product.

    Raises `InputRefused` as `check_reference` does, and for objects that are gone or damaged.
    Cost: four GETs, and some more for a product in parts.
    """
    spec, status = check_reference(bucket, run, manifest, x_shape)
    store = RunStore(bucket, run)
    try:
        read = store.load_x if spec.reference is None else store.load_asked
        x = read(shape=spec.x_shape)
        key = decode_keys.product_key(run, spec.result)
        product = StoredProduct.open(bucket, key).load()
    except (ObjectMissing, CorruptObject) as exc:
        raise InputRefused(f"reference {run} is not whole any more: {exc}") from exc
    if spec.reference is None and array_digest(x) != spec.x_digest:
        raise InputRefused(f"reference {run}: its x.npy is not the x that it multiplied")
    shape = (manifest.rows, *spec.x_shape[1:])
    if product.shape != shape:
        raise InputRefused(
            f"reference {run}: its result has shape {product.shape}, and A x has {shape}"
        )
    rounding = status.rounding if status.rounding is not None else 0.0
    return Reference(run, x.astype(DTYPE), product.astype(DTYPE), rounding, status.verified)
