"""Schedules as JSON: the tasks of every codeword, and the numbers where they are not all one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidManifest
from polarcodes.manifest import VERSION, Fields

if TYPE_CHECKING:
    from polarcodes.schedules.schedule import Schedule

_FIELDS = ("workers", "load", "tasks", "sending", "seed", "codewords", "values")


class StoredSchedule(NamedTuple):
    """What a manifest holds; ``refusals`` turns refused parameters into a refused manifest."""

    name: str
    coefficients: NDArray[np.float64]
    sending: str
    seed: int | None
    refusals: AbstractContextManager[None]


def write_manifest(schedule: Schedule) -> dict[str, Any]:
    """Return the schedule as JSON; ``values`` is null when every codeword is a plain sum."""
    words = [
        [schedule.codeword(k, t) for k in range(schedule.workers)] for t in range(schedule.load)
    ]
    plain = bool(np.isin(schedule.coefficients, (0.0, 1.0)).all())
    return {
        "name": schedule.name,
        "version": VERSION,
        "workers": schedule.workers,
        "load": schedule.load,
        "tasks": schedule.tasks,
        "sending": schedule.sending,
        "seed": schedule.seed,
        "codewords": [[word.tasks.tolist() for word in row] for row in words],
        "values": None if plain else [[word.values.tolist() for word in row] for row in words],
    }


def read_manifest(manifest: Any) -> StoredSchedule:
    """Return the parts of a stored schedule; its table is checked by the schedule itself.

    Raises :class:`~polarcodes.errors.InvalidManifest`.
    """
    name = manifest.get("name") if isinstance(manifest, dict) else None
    if not isinstance(name, str) or not name:
        raise InvalidManifest(f"a schedule must be a JSON object with a name, got {name!r}")
    fields = Fields(manifest, name, _FIELDS)
    for field in ("workers", "load", "tasks"):
        if type(manifest[field]) is not int or manifest[field] < 1:
            raise InvalidManifest(f"{field} must be an integer of at least 1")
    seed, sending = manifest["seed"], manifest["sending"]
    if seed is not None and type(seed) is not int:
        raise InvalidManifest(f"seed must be an integer or null, got {seed!r}")
    return StoredSchedule(
        name, _coefficients(manifest), sending, seed, fields.as_invalid_manifest()
    )


def _coefficients(manifest: dict[str, Any]) -> NDArray[np.float64]:
    load, workers, tasks = manifest["load"], manifest["workers"], manifest["tasks"]
    codewords, values = manifest["codewords"], manifest["values"]
    out: NDArray[np.float64] = np.zeros((load, workers, tasks))
    for t, row in enumerate(_list("codewords", codewords, load)):
        for k, word in enumerate(_list(f"codewords[{t}]", row, workers)):
            where = f"[{t}][{k}]"
            if not isinstance(word, list) or not all(
                type(m) is int and 0 <= m < tasks for m in word
            ):
                raise InvalidManifest(
                    f"codewords{where} must be a list of integers in 0..{tasks - 1}"
                )
            if len(set(word)) != len(word):
                raise InvalidManifest(f"codewords{where} must have no repeated task")
            out[t, k, word] = 1.0 if values is None else _numbers(values, t, k, len(word))
    return out


def _numbers(values: Any, t: int, k: int, count: int) -> list[float]:
    try:
        numbers = values[t][k]
    except (TypeError, IndexError, KeyError):
        numbers = None
    if (
        not isinstance(numbers, list)
        or len(numbers) != count
        or not all(type(value) in (int, float) and value != 0 for value in numbers)
    ):
        raise InvalidManifest(f"values[{t}][{k}] must be a list of {count} numbers, none of them 0")
    return numbers


def _list(name: str, value: Any, count: int) -> list[Any]:
    if not isinstance(value, list) or len(value) != count:
        raise InvalidManifest(f"{name} must be a list of {count} entries")
    return value
