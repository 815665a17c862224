"""What is asked of a product, read and refused before anything is written or invoked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from polarlambda.decoder import check_decoding_names
from polarlambda.vectors import read_metric, read_vector, refer_to

if TYPE_CHECKING:
    import numpy as np

    from blockstore.manifest import Manifest
    from polarlambda.result import Result
    from polarlambda.vectors import Vector

    Metric: TypeAlias = Literal["vector", "inner"] | Vector


@dataclass(frozen=True)
class Request:
    """The checked arguments of `CodedMatrix.multiply`.

    x : an array; vectors : those of the inner products that are asked for, if any; the others as
    `coordinator.run.start_run` takes them.
    """

    x: np.ndarray[Any, Any]
    until: str
    deadline: float | None
    estimator: str
    metric: str
    relaunch: str | None
    reference: str | None
    vectors: np.ndarray[Any, Any] | None
    decode: str = "local"
    result: str = "npy"

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of `start_run`, also fields of the coordinator's event."""
        return {
            "until": self.until,
            "deadline": self.deadline,
            "estimator": self.estimator,
            "metric": self.metric,
            "relaunch": self.relaunch,
            "reference": self.reference,
            "decode": self.decode,
            "result": self.result,
        }

    @property
    def sent_dtype(self) -> np.dtype[Any]:
        """dtype of what the workers multiply by: x, or its difference to that of the reference."""
        from coordinator.reference import DTYPE

        return self.x.dtype if self.reference is None else DTYPE

    def completed(self, result: Result) -> Result:
        """The result with the inner products, where they are asked for."""
        return result if self.vectors is None else result.against(self.vectors)


def read_request(
    manifest: Manifest,
    x: Vector,
    *,
    until: str,
    deadline: float | None,
    estimator: str,
    metric: Metric,
    relaunch: str | float | None,
    reference: str | Result | None,
    decode: str = "local",
    result: str = "npy",
) -> Request:
    """Check everything that was asked; see `CodedMatrix.multiply`.

    Raises `BadInput`, `InputRefused`, `UntilRefused`, `RelaunchRefused`, `NameRefused`.
    """
    from coordinator.estimate import METRICS, check_estimator
    from coordinator.inputs import check_deadline
    from coordinator.relaunch import parse_relaunch
    from coordinator.until import parse_until
    from polarcodes import code_from_manifest

    check_decoding_names(decode, result)
    array = read_vector(x, manifest)
    parse_until(until)
    vectors, kind = None, metric
    if not (isinstance(metric, str) and metric in METRICS):
        vectors, kind = read_metric(metric, manifest), "inner"
    policy = parse_relaunch(relaunch)
    check_estimator(code_from_manifest(manifest.code), estimator, str(kind))
    return Request(
        x=array,
        until=until,
        deadline=check_deadline(deadline),
        estimator=estimator,
        metric=str(kind),
        relaunch=None if policy is None else str(policy),
        reference=refer_to(reference),
        vectors=vectors,
        decode=decode,
        result=result,
    )
