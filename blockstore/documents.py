"""JSON documents: strict to write (NaN is not JSON), checked field by field when read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class Fields:
    """Typed access to the fields of a JSON object.

    Every getter raises `error` naming the document, the field, the rule and the value found, so
    that a damaged or foreign document never becomes a KeyError somewhere else.
    """

    def __init__(self, data: object, what: str, error: type[Exception]) -> None:
        if not isinstance(data, Mapping):
            raise error(f"{what}: must be a JSON object, got {type(data).__name__}")
        self._data = data
        self._what = what
        self._error = error

    def _get(self, name: str) -> Any:
        if name not in self._data:
            raise self._error(f"{self._what}: field {name!r} is missing")
        return self._data[name]

    def fail(self, name: str, rule: str) -> Exception:
        """The error to raise for a field that breaks a rule."""
        return self._error(f"{self._what}: {name} must be {rule}, got {self._data.get(name)!r}")

    def version(self, expected: int) -> int:
        """The document's version, which must be the one this code knows."""
        found = self._get("version")
        if type(found) is not int or found != expected:
            raise self._error(
                f"{self._what}: version {found!r} is not {expected}: it was written by another "
                "version of polarlambda"
            )
        return expected

    def integer(self, name: str, *, low: int = 0, high: int | None = None) -> int:
        """An int (not a bool) of at least `low`, at most `high`."""
        value = self._get(name)
        if type(value) is not int or value < low or (high is not None and value > high):
            raise self.fail(
                name, f"an int of at least {low}" + ("" if high is None else f", at most {high}")
            )
        return value

    def integer_or_none(self, name: str) -> int | None:
        """An int of at least 0, or null."""
        return None if self._get(name) is None else self.integer(name)

    def number(self, name: str) -> float:
        """A number, as a float."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fail(name, "a number")
        return float(value)

    def number_or_none(self, name: str) -> float | None:
        """A number or null."""
        return None if self._get(name) is None else self.number(name)

    def boolean(self, name: str) -> bool:
        """true or false."""
        value = self._get(name)
        if not isinstance(value, bool):
            raise self.fail(name, "true or false")
        return value

    def text(self, name: str) -> str:
        """A string."""
        value = self._get(name)
        if not isinstance(value, str):
            raise self.fail(name, "text")
        return value

    def text_or_none(self, name: str) -> str | None:
        """A string or null."""
        return None if self._get(name) is None else self.text(name)

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of the `allowed` strings."""
        value = self._get(name)
        if value not in allowed:
            raise self.fail(name, "one of " + ", ".join(allowed))
        return str(value)

    def object(self, name: str) -> dict[str, Any]:
        """An object."""
        value = self._get(name)
        if not isinstance(value, dict):
            raise self.fail(name, "a JSON object")
        return value

    def integers(self, name: str, *, low: int = 0) -> tuple[int, ...]:
        """A list of ints of at least `low`, as a tuple."""
        value = self._get(name)
        if not isinstance(value, list) or not all(type(n) is int and n >= low for n in value):
            raise self.fail(name, f"a list of ints of at least {low}")
        return tuple(value)

    def numbers_or_none(self, name: str) -> tuple[float, ...] | None:
        """A list of numbers, as a tuple of floats, or null."""
        value = self._get(name)
        if value is None:
            return None
        numbers = isinstance(value, list) and all(
            isinstance(n, int | float) and not isinstance(n, bool) for n in value
        )
        if not numbers:
            raise self.fail(name, "a list of numbers")
        return tuple(float(n) for n in value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings, as a tuple."""
        value = self._get(name)
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.fail(name, "a list of texts")
        return tuple(value)

    def integers_or_none(self, name: str) -> tuple[int, ...] | None:
        """A list of ints or null."""
        return None if self._get(name) is None else self.integers(name)

    def object_or_none(self, name: str) -> dict[str, Any] | None:
        """An object or null."""
        return None if self._get(name) is None else self.object(name)


def dump(document: Mapping[str, Any]) -> bytes:
    """The document as UTF-8 JSON; ValueError for NaN and Inf, which are not JSON."""
    return json.dumps(document, allow_nan=False, indent=1).encode() + b"\n"


def parse(body: bytes, what: str, error: type[Exception]) -> Any:
    """Read JSON; raises `error`, naming `what`, if it is not."""
    try:
        return json.loads(body)
    except (ValueError, UnicodeDecodeError) as exc:
        raise error(f"{what}: is not JSON: {exc}") from exc
