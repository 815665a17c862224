"""Encode a matrix: check all of it, then write its coded tiles, then publish the manifest.

Nothing is written before pass 1 has read the whole source, and the matrix does not exist for
readers before its manifest, which is written last. An encoding that was killed is continued by
running it again: tiles are named by what determines their values, and those that are there are not
written twice.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from blockstore import keys
from blockstore.bucket import Bucket
from blockstore.errors import MatrixMissing, StoreError
from blockstore.manifest import Manifest, load_manifest, save_manifest
from blockstore.subtasks import Subtasks
from blockstore.tiling import least_memory
from encoder.derived import derive_source
from encoder.engine import Engine, LocalEngine
from encoder.errors import EncodeError, MemoryTooSmall, NameTaken
from encoder.identity import name_taken, same_matrix
from encoder.planning import SpoolFolder, coded_dtype, draft_manifest, spool_folder
from encoder.progress import Listener
from encoder.shares import share_out
from encoder.sources import Source, open_source
from encoder.tiles import missing_tiles
from polarcodes import ErasureCode


@dataclass(frozen=True)
class Existing:
    """The matrix that has the name now, and the ETag of its manifest."""

    manifest: Manifest
    etag: str


def encode(
    source: str | os.PathLike[str] | NDArray[Any] | Source,
    bucket: Bucket,
    name: str,
    code: ErasureCode,
    *,
    memory: int = 1 << 30,
    replace: bool = False,
    threads: int | None = None,
    spool: SpoolFolder = None,
    progress: Listener | None = None,
    subtasks: int = 1,
    per_object: int = 1,
    engine: Engine | None = None,
    derive: str | None = None,
) -> Manifest:
    """Encode a matrix of n rows and d columns into `code.workers` coded blocks in `bucket`.

    Parameters
    ----------
    source : path or "s3://bucket/key" URL, or an array, or what `open_source` opened (which is
        closed then); bool, ints and floats of any width, either byte order, C or Fortran order
        (columns are stored together then)
    name : name of the matrix (`blockstore.keys.validate_name`)
    code : the erasure code; its s data blocks hold ceil(n / s) rows each, zeros at the end
    memory : bytes that the process may use in all (an array given as source not counted)
    replace : whether a matrix of other content or code under this name is replaced; its tiles are
        deleted once the new manifest is there
    threads : uploads at a time, at most; the default is 8, less where memory is small
    spool : folder for the disk spool that large N x tile need; None the system's temporary folder,
        False none (smaller objects then)
    progress : called with `EncodeProgress` events, from any thread, one call at a time
    subtasks : r, the blocks of each worker: the code's blocks are for `code.workers` / r workers
    per_object : consecutive answers of a worker that share an object, a divisor of r
    engine : who reads and who encodes; None: this process
    derive : "transpose" or "gram" encodes X^T or X^T X of the source X (`encoder.derived`)

    Returns
    -------
    The manifest. If the name already holds the same content in the same code, nothing but tiles
    that are missing is written, and its manifest is returned.

    Raises
    ------
    NameRefused, SourceRefused, SubtasksRefused, NameTaken, MemoryTooSmall, SpoolTooSmall, and the
    store's BucketMissing, AccessDenied, CredentialsMissing, ObjectMissing (the source): all before
    anything is written. SourceChanged, NameTaken (another encoding of the name finished first),
    StoreUnavailable, and SpoolTooSmall when the disk runs full meanwhile: nothing is published.

    Cost: the source is read twice; N log2 N additions of blocks; N x tiles PUTs; peak memory as
    `encoder.layout` says. arXiv 2309.00682, section III.
    """
    keys.validate_name(name)
    if threads is not None and threads < 1:
        raise EncodeError(f"threads must be at least 1, got {threads}")
    folder = spool_folder(spool)
    engine = engine or LocalEngine(
        bucket, memory=memory, folder=folder, threads=threads, progress=progress
    )
    given = source if isinstance(source, Source) else open_source(source, bucket.client)
    with given:
        _check_memory(given, code, memory)
        given.prepare(memory, folder, progress)
        left = memory - given.library_bytes
        with derive_source(given, derive, left, folder, progress) as opened:
            shares = share_out(code, opened.shape[0], subtasks, per_object)
            bucket.check()
            existing = _find_existing(bucket, name)
            if existing is not None and not replace and existing.manifest.shape != opened.shape:
                raise name_taken(existing.manifest, f"a matrix of shape {existing.manifest.shape}")
            manifest = _decide(opened, name, code, shares, existing, engine, replace)
            others = _other_encodings(bucket, manifest)
            missing = missing_tiles(bucket, manifest)
            if missing:
                engine.write(opened, code, manifest, missing)
                _check_all_there(bucket, manifest)
            for companion, body in opened.companions.items():
                bucket.put(keys.companion_key(name, manifest.encoding, companion), body)
            return _publish(bucket, manifest, existing, others)


def _check_memory(source: Source, code: ErasureCode, memory: int) -> None:
    least = least_memory(code.workers) + source.library_bytes
    if memory < least:
        raise MemoryTooSmall(
            f"memory must be at least {least:,} bytes for {code.workers} workers, got {memory:,}"
        )


def _find_existing(bucket: Bucket, name: str) -> Existing | None:
    found = bucket.head(keys.manifest_key(name))
    if found is None:
        return None
    try:
        return Existing(load_manifest(bucket, name), found.etag)
    except MatrixMissing:  # deleted in between
        return None


def _decide(
    source: Source,
    name: str,
    code: ErasureCode,
    shares: Subtasks | None,
    existing: Existing | None,
    engine: Engine,
    replace: bool,
) -> Manifest:
    """Pass 1, then the manifest to publish: the existing one if it describes the same matrix."""
    scan = engine.scan(source)
    source.check_unchanged()
    dtype = coded_dtype(source, scan, code)
    if existing is not None:
        if same_matrix(
            existing.manifest, scan.digest, code.to_manifest(), dtype.str, shares, source.derived
        ):
            return existing.manifest
        if not replace:
            same = existing.manifest.source_digest == scan.digest
            raise name_taken(
                existing.manifest, "this content in another code" if same else "other content"
            )
    room = engine.room(source)
    return draft_manifest(source, scan, name, code, dtype=dtype, room=room, subtasks=shares)


def _other_encodings(bucket: Bucket, manifest: Manifest) -> list[str]:
    """Encodings of this name that are there before ours is written: old, or left by a failure."""
    found = bucket.folders(keys.coded_prefix(manifest.name))
    return [encoding for encoding in found if encoding != manifest.encoding]


def _check_all_there(bucket: Bucket, manifest: Manifest) -> None:
    lost = missing_tiles(bucket, manifest)
    if lost:
        raise StoreError(
            f"{sum(map(len, lost.values()))} coded tiles of {manifest.name!r} vanished while it "
            "was encoded (was it deleted or replaced meanwhile?); encode it again"
        )


def _publish(
    bucket: Bucket, manifest: Manifest, existing: Existing | None, others: list[str]
) -> Manifest:
    """Write the manifest, unless the name changed hands since we looked; delete what it replaces.

    Tiles that were there before ours belong to the matrix replaced or to encodings that can only
    lose this race: their manifest PUT has a condition that our own PUT has made false.
    """
    if existing is not None and manifest is existing.manifest:
        return manifest
    etag = None if existing is None else existing.etag
    if not save_manifest(bucket, manifest, replaces=etag):
        return _lost_race(bucket, manifest)
    for encoding in others:
        bucket.delete_prefix(keys.coded_prefix(manifest.name, encoding))
    return manifest


def _lost_race(bucket: Bucket, manifest: Manifest) -> Manifest:
    """Another manifest came first: accept it if it names the same tiles, else take ours away."""
    try:
        winner = load_manifest(bucket, manifest.name)
    except MatrixMissing:
        raise NameTaken(
            f"matrix {manifest.name!r} was deleted while it was being replaced; encode it again"
        ) from None
    if winner.encoding == manifest.encoding:  # the same matrix, or our own PUT sent twice
        return winner
    bucket.delete_prefix(keys.coded_prefix(manifest.name, manifest.encoding))
    raise name_taken(winner, "what another encoding wrote there meanwhile")
