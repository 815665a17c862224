"""Validation of stored code descriptions: nothing in a manifest is trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidCode, InvalidManifest

VERSION = 1


class Fields:
    """The fields of a code's manifest; every violation is an InvalidManifest that names it."""

    def __init__(self, manifest: Any, name: str, expected: Sequence[str]) -> None:
        if not isinstance(manifest, dict):
            raise InvalidManifest(f"a code must be a JSON object, got {type(manifest).__name__}")
        if manifest.get("name") != name:
            raise InvalidManifest(f"name must be {name!r}, got {manifest.get('name')!r}")
        version = manifest.get("version")
        if type(version) is not int or version != VERSION:
            raise InvalidManifest(
                f"version must be {VERSION}, got {version!r}: another release wrote this code"
            )
        wanted = {"name", "version", *expected}
        lacking, unknown = sorted(wanted - manifest.keys()), sorted(manifest.keys() - wanted)
        if lacking or unknown:
            raise InvalidManifest(
                f"the code {name!r} must have the fields {sorted(wanted)}; lacking {lacking}, "
                f"unknown {unknown}"
            )
        self._manifest = manifest

    @contextmanager
    def as_invalid_manifest(self) -> Iterator[None]:
        """Turn a refusal of the parameters into a refusal of the manifest."""
        try:
            yield
        except InvalidCode as error:
            raise InvalidManifest(f"the stored code is not valid: {error}") from error

    def distinct_indices(self, name: str, count: int, limit: int) -> NDArray[np.intp]:
        """Return a list of ``count`` distinct integers in 0..limit-1."""
        values = self._integers(name, count)
        if not all(0 <= value < limit for value in values) or len(set(values)) != count:
            raise InvalidManifest(f"{name} must be distinct integers in 0..{limit - 1}")
        indices = np.array(values, np.intp)
        indices.flags.writeable = False
        return indices

    def signs(self, name: str, count: int) -> NDArray[np.int8]:
        """Return a list of ``count`` signs, +1 or -1."""
        values = self._integers(name, count)
        if not all(value in (1, -1) for value in values):
            raise InvalidManifest(f"{name} must hold 1 and -1 only")
        signs = np.array(values, np.int8)
        signs.flags.writeable = False
        return signs

    def sign_rows(self, name: str, shape: tuple[int, int]) -> NDArray[np.int8]:
        """Return rows of signs, +1 or -1, as an array of ``shape``."""
        rows = self._rows(name, shape)
        if not all(type(value) is int and value in (1, -1) for row in rows for value in row):
            raise InvalidManifest(f"{name} must hold 1 and -1 only")
        signs = np.array(rows, np.int8).reshape(shape)
        signs.flags.writeable = False
        return signs

    def numbers(self, name: str, shape: tuple[int, int]) -> NDArray[np.float64]:
        """Return rows of finite numbers as an array of ``shape``."""
        rows = self._rows(name, shape)
        if not all(type(value) in (int, float) for row in rows for value in row):
            raise InvalidManifest(f"{name} must hold numbers only")
        values = np.array(rows, np.float64).reshape(shape)
        if not np.isfinite(values).all():
            raise InvalidManifest(f"{name} must hold finite numbers only")
        values.flags.writeable = False
        return values

    def _rows(self, name: str, shape: tuple[int, int]) -> list[list[Any]]:
        rows = self._manifest[name]
        if (
            not isinstance(rows, list)
            or len(rows) != shape[0]
            or not all(isinstance(row, list) and len(row) == shape[1] for row in rows)
        ):
            raise InvalidManifest(f"{name} must be {shape[0]} lists of {shape[1]} numbers")
        return rows

    def _integers(self, name: str, count: int) -> list[int]:
        values = self._manifest[name]
        if (
            not isinstance(values, list)
            or len(values) != count
            or not all(type(value) is int for value in values)
        ):
            raise InvalidManifest(f"{name} must be a list of {count} integers")
        return values
