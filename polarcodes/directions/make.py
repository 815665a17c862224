"""Directions by name."""

from __future__ import annotations

from typing import Any

from polarcodes.directions.base import Directions
from polarcodes.directions.coded import CodedDirections
from polarcodes.directions.finite import FiniteDifferences
from polarcodes.directions.gaussian import GaussianDirections
from polarcodes.directions.structured import StructuredDirections
from polarcodes.errors import InvalidCode, InvalidManifest

__all__ = ["DIRECTION_KINDS", "directions_from_manifest", "make_directions", "smallest_count"]

_KINDS: dict[str, type[Any]] = {
    kind.kind: kind
    for kind in (CodedDirections, StructuredDirections, GaussianDirections, FiniteDifferences)
}
DIRECTION_KINDS = tuple(_KINDS)
"""Names that :func:`make_directions` knows."""


def make_directions(
    kind: str, *, parameters: int, count: int, seed: int = 0, **options: Any
) -> Directions:
    """Make ``count`` directions in ``parameters`` dimensions.

    ``kind`` : "coded" (option ``code``: "hadamard", the default, or "polar"), "structured",
    "gaussian" or "finite-differences". Raises :class:`~polarcodes.errors.InvalidCode`.
    """
    if kind not in _KINDS:
        raise InvalidCode(f"directions must be one of {', '.join(_KINDS)}, got {kind!r}")
    if seed < 0:
        raise InvalidCode(f"seed must be at least 0, got {seed}")
    if kind == CodedDirections.kind:
        return CodedDirections.make(parameters, count, seed, **options)
    if options:
        raise InvalidCode(f"{kind} directions have no option {sorted(options)[0]!r}")
    made: Directions = _KINDS[kind](parameters, count, seed)
    return made


def directions_from_manifest(manifest: Any) -> Directions:
    """Rebuild what :meth:`Directions.to_manifest` wrote.

    Raises :class:`~polarcodes.errors.InvalidManifest`.
    """
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if kind not in _KINDS:
        raise InvalidManifest(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}")
    rebuilt: Directions = _KINDS[kind].from_manifest(manifest)
    return rebuilt


def smallest_count(kind: str, parameters: int, redundancy: float) -> int:
    """The least number of directions of which a share ``redundancy`` may be missing at best.

    Codes have any N of at least 2; the baselines need one direction for every parameter.
    """
    if not 0 <= redundancy < 1:
        raise InvalidCode(f"redundancy must be in [0, 1), got {redundancy}")
    if kind != CodedDirections.kind:
        return parameters
    return max(2, -int(-parameters // (1 - redundancy)))
