"""The encoded matrices of a training: which belong together, and what one iteration costs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from polarlambda.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blockstore.bucket import Bucket
    from blockstore.derived import Derived
    from blockstore.manifest import Manifest
    from polarcodes import ErasureCode
    from polarlambda.matrix import CodedMatrix

LABELS = "labels.npy"

Form = Literal["samples", "gram"]


@dataclass(frozen=True)
class TrainingData:
    """X (n, d) as it is encoded: X and X^T (form "samples"), or X^T X ("gram"; `transpose` may be
    there for X^T Y).

    bucket : where they lie; derived : what is known of X's columns; digest : of X.
    """

    form: Form
    matrix: CodedMatrix
    transpose: CodedMatrix | None
    bucket: Bucket

    @property
    def derived(self) -> Derived | None:
        """What was noticed of X's columns when it was transposed or multiplied with itself."""
        if self.form == "gram":
            return self.matrix.manifest.derived
        return self.transpose.manifest.derived if self.transpose is not None else None

    @property
    def digest(self) -> str:
        """Digest of X."""
        manifest = self.matrix.manifest
        return manifest.derived.source_digest if manifest.derived else manifest.source_digest

    @property
    def samples(self) -> int:
        """n."""
        manifest = self.matrix.manifest
        return manifest.derived.rows if manifest.derived else manifest.rows

    @property
    def features(self) -> int:
        """d."""
        return self.matrix.shape[1]

    @property
    def codes(self) -> tuple[ErasureCode, ...]:
        """Of the matrices that an iteration multiplies by."""
        both = self.form == "samples" and self.transpose is not None
        return (self.matrix.code, self.transpose.code) if both else (self.matrix.code,)

    def own_labels(self) -> NDArray[Any]:
        """The labels that lie beside the matrix, as images bring them; raises `BadInput`."""
        from blockstore.arrays import get_array
        from blockstore.keys import companion_key

        manifest = self.matrix.manifest
        if LABELS not in manifest.companions:
            raise BadInput(
                f"matrix {manifest.name!r} has no labels of its own: give them (--labels Y.npy)"
            )
        key = companion_key(manifest.name, manifest.encoding, LABELS)
        return get_array(self.bucket, key)

    def planned_cost(self, outputs: int) -> float:
        """Dollars that one iteration is planned to cost, for k outputs."""
        matrices = [self.matrix]
        if self.form == "samples" and self.transpose is not None:
            matrices.append(self.transpose)
        return sum(matrix.plan(x_columns=outputs).run_cost.total for matrix in matrices)


def open_data(
    name: str, transpose: str | None, stack: ExitStack, place: dict[str, Any]
) -> TrainingData:
    """Open the matrix `name` and what belongs to it; `stack` closes them.

    The transpose that is not named is found by the digest of X among the bucket's matrices (a
    listing and a GET for each). Raises `BadInput` when there is none or when it is of other data.
    """
    from polarlambda.connect import Place
    from polarlambda.matrix import CodedMatrix

    matrix = stack.enter_context(CodedMatrix.open(name, **place))
    bucket = Place(**place).open_bucket()
    stack.callback(bucket.client.close)
    derived = matrix.manifest.derived
    if derived is not None and derived.kind == "transpose":
        raise BadInput(
            f"{name!r} is the transpose of a matrix: name the matrix itself, its transpose is "
            "found by its digest (or give --transpose)"
        )
    form: Form = "samples" if derived is None else "gram"
    digest = matrix.manifest.source_digest if derived is None else derived.source_digest
    found = _named(bucket, transpose, name, digest) if transpose else _search(bucket, digest)
    if found is None and form == "samples":
        raise BadInput(
            f"no transpose of {name!r} is encoded, which gradients X^T r need: `polarlambda encode "
            f"{matrix.manifest.source} {name}.T --transpose` with the same file makes one"
        )
    other = stack.enter_context(CodedMatrix.open(found, **place)) if found else None
    return TrainingData(form, matrix, other, bucket)


def _named(bucket: Bucket, transpose: str, name: str, digest: str) -> str:
    from blockstore.manifest import load_manifest

    manifest = load_manifest(bucket, transpose)
    if manifest.derived is None or manifest.derived.kind != "transpose":
        raise BadInput(
            f"{transpose!r} was not encoded as a transpose: use `polarlambda encode FILE "
            f"{transpose} --transpose --replace`"
        )
    if manifest.derived.source_digest != digest:
        raise BadInput(
            f"{transpose!r} is the transpose of other data than {name!r} (their digests differ; "
            "the same numbers stored by rows and by columns differ, too): encode both from one file"
        )
    return transpose


def _search(bucket: Bucket, digest: str) -> str | None:
    from blockstore.manifest import list_matrices

    for manifest in list_matrices(bucket):
        if _is_transpose(manifest, digest):
            return manifest.name
    return None


def _is_transpose(manifest: Manifest, digest: str) -> bool:
    derived = manifest.derived
    return derived is not None and derived.kind == "transpose" and derived.source_digest == digest
