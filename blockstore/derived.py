"""A matrix made from another one: which, so that the two can be known to belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blockstore.documents import Fields
from blockstore.errors import ManifestError

__all__ = ["KINDS", "Derived"]

KINDS = ("transpose", "gram")
MOST_NAMED = 100  # columns named one by one in a manifest


@dataclass(frozen=True)
class Derived:
    """How a matrix follows from X (n, d): `kind` is "transpose", X^T, or "gram", X^T X.

    source_digest : digest of X, as the manifest of an encoded X has it; rows : n; constant_columns
    : the first of X's columns whose entries are all the same; dependent_columns : how many of its
    columns follow from the others and a constant, None if nobody counted.
    """

    kind: str
    source_digest: str
    rows: int
    constant_columns: tuple[int, ...] = ()
    dependent_columns: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As it lies in the manifest."""
        return {
            "kind": self.kind,
            "source_digest": self.source_digest,
            "rows": self.rows,
            "constant_columns": list(self.constant_columns[:MOST_NAMED]),
            "dependent_columns": self.dependent_columns,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Derived:
        """Read and check; raises `ManifestError`."""
        fields = Fields(data, "manifest's derived", ManifestError)
        dependent = None
        if data.get("dependent_columns") is not None:
            dependent = fields.integer("dependent_columns")
        return cls(
            fields.choice("kind", KINDS),
            fields.text("source_digest"),
            fields.integer("rows", low=1),
            fields.integers("constant_columns"),
            dependent,
        )
