"""Codes by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polarcodes.berrut import BerrutCode
from polarcodes.code import ErasureCode
from polarcodes.errors import InvalidCode, InvalidManifest
from polarcodes.grid import GridCode
from polarcodes.hadamard import HadamardCode
from polarcodes.kernels.make import make_polar, polar_from_manifest
from polarcodes.lt import LtCode
from polarcodes.mds import MdsCode
from polarcodes.polar import PolarCode
from polarcodes.product import ProductCode
from polarcodes.replication import ReplicationCode
from polarcodes.schedules.code import ScheduleCode
from polarcodes.uncoded import UncodedCode

_CODES: dict[str, type[ErasureCode]] = {
    code.name: code
    for code in (
        BerrutCode,
        HadamardCode,
        LtCode,
        MdsCode,
        PolarCode,
        ProductCode,
        ReplicationCode,
        UncodedCode,
    )
}
_OPTIONS: dict[str, tuple[str, ...]] = {
    HadamardCode.name: ("rounds", "rotated"),
    LtCode.name: ("decoder", "c", "delta"),
    MdsCode.name: ("basis",),
    PolarCode.name: ("epsilon", "erasure", "times", "kernels", "stages"),
    ProductCode.name: ("grid", "data_grid"),
}

_MAKERS: dict[str, Callable[..., ErasureCode]] = {**_CODES, PolarCode.name: make_polar}
_STORED: dict[str, type[ErasureCode]] = {
    **_CODES,
    GridCode.name: GridCode,
    ScheduleCode.name: ScheduleCode,
}
"""Codes that a manifest may hold: a grid is made from two codes, a schedule's from the schedule."""

CODE_NAMES = tuple(sorted(_CODES))
"""Names that :func:`make_code` knows."""


def make_code(
    name: str, *, workers: int, data_blocks: int, seed: int = 0, **options: Any
) -> ErasureCode:
    """Make a code: ``name`` one of :data:`CODE_NAMES`, N workers, s data blocks.

    Options: ``epsilon``, ``erasure``, ``times``, ``kernels`` and ``stages`` for ``"polar"``
    (:func:`~polarcodes.kernels.make.make_polar`); ``rounds`` and ``rotated`` for ``"hadamard"``;
    ``basis`` for ``"mds"``; ``decoder``, ``c`` and ``delta`` for ``"lt"``; ``grid`` and
    ``data_grid`` for ``"product"``. The same arguments give the same code on every machine.
    Raises :class:`~polarcodes.errors.InvalidCode`.

    >>> make_code("polar", workers=64, data_blocks=48)
    PolarCode(workers=64, data_blocks=48, seed=0)
    """
    if name not in _CODES:
        raise InvalidCode(f"code must be one of {', '.join(CODE_NAMES)}, got {name!r}")
    known = _OPTIONS.get(name, ())
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InvalidCode(
            f"the code {name!r} has no option {unknown[0]!r}; it has {', '.join(known) or 'none'}"
        )
    return _MAKERS[name](workers, data_blocks, seed, **options)


def code_from_manifest(manifest: Any) -> ErasureCode:
    """Rebuild a code from :meth:`ErasureCode.to_manifest`, checking every field.

    Raises :class:`~polarcodes.errors.InvalidManifest`.
    """
    name = manifest.get("name") if isinstance(manifest, dict) else None
    if not isinstance(name, str) or name not in _STORED:
        raise InvalidManifest(
            f"name must be one of {', '.join(sorted(_STORED))}, got {name!r}: a newer release may "
            "have written this code"
        )
    if name == PolarCode.name:
        return polar_from_manifest(manifest)
    return _STORED[name].from_manifest(manifest)
