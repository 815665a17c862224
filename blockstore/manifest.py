"""The manifest: what makes coded tiles a matrix. Written last, deleted first.

While there is no manifest there is no matrix, whatever tiles lie in the bucket.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from blockstore import documents, keys
from blockstore.arrays import check_dtype
from blockstore.bucket import Bucket
from blockstore.derived import Derived
from blockstore.documents import Fields
from blockstore.errors import ArrayRefused, ManifestError, MatrixMissing, NameRefused, ObjectMissing
from blockstore.subtasks import Subtasks
from blockstore.tiling import Tiling

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Description of an encoded matrix of `rows` x `columns` (n x d).

    name : the matrix's name; created : ISO 8601 time, UTC; source_dtype : dtype of the source,
    little endian; block_rows : rows b = ceil(n / s) of a data block (the last ones are padded with
    zeros); dtype : dtype of the coded blocks; tiling : how a block is cut; code : the code's own
    manifest (explicit slots and signs), rebuilt by `polarcodes.code_from_manifest`; encoding : id
    of (source, code, dtype, tiling), part of every tile's key; source_digest : of dtype, shape,
    order and values; source : where the matrix came from, for people; subtasks : how the code's
    blocks are shared out when a worker has several, None when it has one; derived : from
    which matrix this one was made, and how, None for a matrix as it was given; companions : names
    of files that belong to its rows (`keys.companion_key`).
    """

    name: str
    created: str
    rows: int
    columns: int
    source_dtype: str
    block_rows: int
    dtype: str
    tiling: Tiling
    code: dict[str, Any]
    encoding: str
    source_digest: str
    source: str
    subtasks: Subtasks | None = None
    companions: tuple[str, ...] = ()
    derived: Derived | None = None
    version: int = VERSION

    def __post_init__(self) -> None:
        for name in ("source_dtype", "dtype"):
            try:
                check_dtype(np.dtype(getattr(self, name)))
            except (ArrayRefused, TypeError) as exc:
                raise ManifestError(f"manifest: {name} {getattr(self, name)!r}: {exc}") from exc
        try:
            keys.validate_name(self.name)
            keys.validate_encoding(self.encoding)
        except NameRefused as exc:
            raise ManifestError(f"manifest: {exc}") from exc
        code = Fields(self.code, "manifest's code", ManifestError)
        blocks = code.integer("workers", low=1)
        data_blocks = code.integer("data_blocks", low=1, high=blocks)
        if self.subtasks is not None and self.subtasks.count != blocks:
            raise ManifestError(
                f"manifest: {self.subtasks.workers} workers with {self.subtasks.per_worker} tasks "
                f"each cannot have the {blocks} blocks of the code"
            )
        if self.block_rows != -(-self.rows // data_blocks):
            raise ManifestError(
                f"manifest: {self.rows} rows in {data_blocks} blocks make "
                f"{-(-self.rows // data_blocks)} rows a block, not {self.block_rows}"
            )
        if (self.tiling.rows, self.tiling.columns) != (self.block_rows, self.columns):
            raise ManifestError(
                f"manifest: the tiling covers {self.tiling.rows} x {self.tiling.columns}, a block "
                f"has {self.block_rows} x {self.columns}"
            )

    @property
    def blocks(self) -> int:
        """Number of coded blocks: N, or N r where every worker has r of them."""
        return int(self.code["workers"])

    @cached_property
    def shares(self) -> Subtasks:
        """Which blocks each worker has; one each unless the manifest says otherwise."""
        return self.subtasks or Subtasks.single(self.blocks)

    @property
    def workers(self) -> int:
        """Number N of workers."""
        return self.shares.workers

    @property
    def data_blocks(self) -> int:
        """Number of data blocks: s, or s r."""
        return int(self.code["data_blocks"])

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d) of the matrix."""
        return self.rows, self.columns

    @cached_property
    def digest(self) -> str:
        """ "sha256:..." of the manifest: two equal ones describe the same coded bytes."""
        return "sha256:" + hashlib.sha256(self.to_json()).hexdigest()

    def to_json(self) -> bytes:
        """The manifest as it lies in the bucket."""
        shares = {} if self.subtasks is None else {"subtasks": self.subtasks.to_json()}
        beside = {"companions": list(self.companions)} if self.companions else {}
        derived = {} if self.derived is None else {"derived": self.derived.to_json()}
        return documents.dump(
            {
                "version": self.version,
                "name": self.name,
                "created": self.created,
                "rows": self.rows,
                "columns": self.columns,
                "source_dtype": self.source_dtype,
                "block_rows": self.block_rows,
                "dtype": self.dtype,
                "tiling": self.tiling.to_json(),
                "code": self.code,
                "encoding": self.encoding,
                "source_digest": self.source_digest,
                "source": self.source,
                **shares,
                **beside,
                **derived,
            }
        )

    @classmethod
    def from_json(cls, body: bytes | Mapping[str, Any]) -> Manifest:
        """Read and check a manifest; raises `ManifestError` naming the field that is wrong."""
        data = documents.parse(body, "manifest", ManifestError) if isinstance(body, bytes) else body
        fields = Fields(data, "manifest", ManifestError)
        subtasks = None
        if "subtasks" in data:
            blocks = Fields(fields.object("code"), "manifest's code", ManifestError)
            subtasks = Subtasks.from_json(
                fields.object("subtasks"), blocks.integer("workers", low=1)
            )
        derived = Derived.from_json(fields.object("derived")) if "derived" in data else None
        return cls(
            version=fields.version(VERSION),
            name=fields.text("name"),
            created=fields.text("created"),
            rows=fields.integer("rows", low=1),
            columns=fields.integer("columns", low=1),
            source_dtype=fields.text("source_dtype"),
            block_rows=fields.integer("block_rows", low=1),
            dtype=fields.text("dtype"),
            tiling=Tiling.from_json(fields.object("tiling")),
            code=fields.object("code"),
            encoding=fields.text("encoding"),
            source_digest=fields.text("source_digest"),
            source=fields.text("source"),
            subtasks=subtasks,
            companions=_companions(data),
            derived=derived,
        )


def _companions(data: Mapping[str, Any]) -> tuple[str, ...]:
    names = data.get("companions", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ManifestError(f"manifest: companions must be a list of names, got {names!r}")
    return tuple(names)


def load_manifest(bucket: Bucket, name: str) -> Manifest:
    """The manifest of a matrix; raises `MatrixMissing` if there is none of that name."""
    keys.validate_name(name)
    try:
        body = bucket.get(keys.manifest_key(name))
    except ObjectMissing as exc:
        raise MatrixMissing(
            f"there is no matrix {name!r} in s3://{bucket.name}: "
            "`polarlambda matrices list` shows those there are"
        ) from exc
    try:
        manifest = Manifest.from_json(body)
        if manifest.name != name:
            raise ManifestError(f"manifest: it describes another matrix, {manifest.name!r}")
    except ManifestError as exc:
        raise ManifestError(
            f"matrix {name!r} in s3://{bucket.name} cannot be used: {exc}; "
            "delete it (`polarlambda matrices delete`) and encode it again"
        ) from exc
    return manifest


def save_manifest(bucket: Bucket, manifest: Manifest, *, replaces: str | None = None) -> bool:
    """Publish a matrix; False if another writer was first.

    Without `replaces` there must be no manifest of that name yet; with it, the one there must
    still have that ETag.
    """
    etag = bucket.put(
        keys.manifest_key(manifest.name),
        manifest.to_json(),
        if_none_match=replaces is None,
        if_match=replaces,
        content_type="application/json",
    )
    return bool(etag)


def list_matrices(bucket: Bucket) -> list[Manifest]:
    """The manifests of all matrices, by name. Unfinished encodings have none and are left out."""
    found = []
    for name in bucket.folders(keys.MATRICES):
        try:
            found.append(load_manifest(bucket, name))
        except (MatrixMissing, NameRefused):
            continue
    return found


def delete_matrix(bucket: Bucket, name: str) -> int:
    """Delete a matrix, or what an unfinished encoding left of one; the number of objects deleted.

    The manifest goes first, so that no half-usable matrix is ever seen. Raises `MatrixMissing` if
    there is nothing of that name.
    """
    keys.validate_name(name)
    key = keys.manifest_key(name)
    there = bucket.head(key) is not None
    count = bucket.delete([key]) if there else 0
    count += bucket.delete_prefix(keys.matrix_prefix(name))
    if count == 0:
        raise MatrixMissing(f"there is no matrix {name!r} in s3://{bucket.name}: nothing to delete")
    return count
