"""A schedule as an erasure code: its codewords are the coded blocks, its tasks the data blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from polarcodes.dense import DenseCode
from polarcodes.errors import InvalidCode, InvalidManifest
from polarcodes.manifest import VERSION, Fields
from polarcodes.schedules.schedule import Schedule

__all__ = ["ScheduleCode"]


class ScheduleCode(DenseCode):
    """Coded block k r + t is worker k's t-th codeword, N = K r of them over s = M data blocks.

    Everything a code offers follows from the table: blocks are encoded as codewords, any set of
    results whose rows have full rank decodes, and the estimate before is least squares. Raises
    :class:`~polarcodes.errors.InvalidCode` for a schedule of which only the sum of all tasks can be
    recovered, and for fewer codewords than tasks.

    >>> from polarcodes.schedules import make_schedule
    >>> code = ScheduleCode(make_schedule("cpgc", workers=4, load=2))
    >>> code.workers, code.data_blocks, code.decodable([0, 2, 3, 4])  # W1, W2, W1+W3, W3
    (8, 4, False)
    """

    name = "schedule"

    def __init__(self, schedule: Schedule) -> None:
        if schedule.sending == "sum":
            raise InvalidCode(
                f"the schedule {schedule.name!r} recovers nothing but the sum of all tasks: for a "
                "product take one whose results are tasks"
            )
        count, tasks = schedule.workers * schedule.load, schedule.tasks
        if count < tasks:
            raise InvalidCode(f"{count} codewords cannot determine {tasks} tasks")
        self._check_size(self.name, count, tasks)
        self._schedule = schedule
        table = np.ascontiguousarray(schedule.coefficients.transpose(1, 0, 2))
        self._assemble(schedule.seed or 0, table.reshape(count, tasks))

    @property
    def schedule(self) -> Schedule:
        """Who computes what, and when it is sent."""
        return self._schedule

    def to_manifest(self) -> dict[str, Any]:
        """Return the code as pure JSON, every codeword written out."""
        return {
            "name": self.name,
            "version": VERSION,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "seed": self.seed,
            "schedule": self._schedule.to_manifest(),
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> ScheduleCode:
        """Rebuild the code; raises :class:`~polarcodes.errors.InvalidManifest`."""
        fields = Fields(manifest, cls.name, ("workers", "data_blocks", "seed", "schedule"))
        with fields.as_invalid_manifest():
            code = cls(Schedule.from_manifest(manifest["schedule"]))
        if (code.workers, code.data_blocks) != (manifest["workers"], manifest["data_blocks"]):
            raise InvalidManifest(
                f"workers and data_blocks must be {code.workers} and {code.data_blocks} for this "
                f"schedule, got {manifest['workers']} and {manifest['data_blocks']}"
            )
        return code
