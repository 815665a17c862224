"""When are two encodings the same? Ids, and the question whether a name is free."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from blockstore.derived import Derived
from blockstore.manifest import Manifest
from blockstore.subtasks import Subtasks
from blockstore.tiling import Tiling
from encoder.errors import NameTaken

FORMAT = 1  # changes when the same inputs no longer give the same coded bytes


def canonical(document: Mapping[str, Any]) -> str:
    """JSON text that is equal for equal documents."""
    return json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":"))


def encoding_id(
    source_digest: str,
    code: Mapping[str, Any],
    dtype: str,
    tiling: Tiling,
    subtasks: Subtasks | None = None,
) -> str:
    """16 hex digits that name the coded bytes: the same id, the same tiles."""
    text = canonical(
        {
            "format": FORMAT,
            "source": source_digest,
            "code": code,
            "dtype": dtype,
            "tiling": tiling.to_json(),
            **({} if subtasks is None else {"places": list(subtasks.places)}),
        }
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def same_matrix(
    manifest: Manifest,
    source_digest: str,
    code: Mapping[str, Any],
    dtype: str,
    subtasks: Subtasks | None = None,
    derived: Derived | None = None,
) -> bool:
    """Whether a manifest describes this content in this code, however it is tiled."""
    return (
        manifest.derived == derived
        and manifest.source_digest == source_digest
        and manifest.dtype == dtype
        and manifest.subtasks == subtasks
        and canonical(manifest.code) == canonical(code)
    )


def name_taken(manifest: Manifest, difference: str) -> NameTaken:
    """The refusal of a name that is in use."""
    return NameTaken(
        f"matrix name {manifest.name!r} is taken: it holds {difference} (from {manifest.source}, "
        f"{manifest.created}); choose another name, or replace it (--replace, replace=True)"
    )
