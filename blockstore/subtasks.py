"""How the N r coded blocks of a matrix are shared out: r to each of N workers, in order.

Block worker * r + task is what a worker multiplies as its task-th task, and the folder its tiles
lie in. Where a block stands in the code is another matter: answers of one worker come together,
and codes built from butterflies mind that, so places are a random permutation (docs/subtasks.md).
With one task for each worker block, place and worker are one number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from blockstore.documents import Fields
from blockstore.errors import ManifestError

__all__ = ["MOST_SUBTASKS", "Subtasks"]

MOST_WORKERS = 1 << 14
"""Of a run: what plans, journals and listings are tested with."""

MOST_SUBTASKS = 64  # an event names the missing ones; every result costs a request


@dataclass(frozen=True)
class Subtasks:
    """workers : N; per_worker : r; per_object : consecutive results that share an object, a divisor
    of r; places : for every block its position in the code, a permutation of 0..N r - 1.

    Raises `ManifestError` for numbers that do not fit together.
    """

    workers: int
    per_worker: int
    per_object: int
    places: tuple[int, ...]

    def __post_init__(self) -> None:
        r, g = self.per_worker, self.per_object
        if not 1 <= r <= MOST_SUBTASKS:
            raise ManifestError(f"subtasks must be 1 to {MOST_SUBTASKS} for a worker, got {r}")
        if g < 1 or r % g:
            raise ManifestError(f"results per object must divide subtasks = {r}, got {g}")
        if sorted(self.places) != list(range(self.workers * r)):
            raise ManifestError(
                f"subtasks: places must be a permutation of 0..{self.workers * r - 1}"
            )

    @classmethod
    def single(cls, workers: int) -> Subtasks:
        """One task for each worker, at the place of its number."""
        return cls(workers, 1, 1, tuple(range(workers)))

    @property
    def count(self) -> int:
        """N r, the number of coded blocks."""
        return self.workers * self.per_worker

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """For every place of the code the block that stands there."""
        inverse = [0] * self.count
        for block, place in enumerate(self.places):
            inverse[place] = block
        return tuple(inverse)

    def owner(self, place: int) -> tuple[int, int]:
        """(worker, task) whose result stands at a place of the code."""
        return divmod(self.blocks[place], self.per_worker)

    def places_of(self, worker: int) -> tuple[int, ...]:
        """The places of a worker's results, in the order in which they are computed."""
        return self.places[worker * self.per_worker : (worker + 1) * self.per_worker]

    def places_between(self, worker: int, first: int, last: int) -> tuple[int, ...]:
        """The places of a worker's tasks `first` to `last`, both included."""
        return self.places_of(worker)[first : last + 1]

    def is_object(self, first: int, last: int) -> bool:
        """Whether tasks `first` to `last` share an object: boundaries are fixed, never timed."""
        g = self.per_object
        return first % g == 0 and last == first + g - 1 and last < self.per_worker

    def describe(self, place: int) -> str:
        """Whose answer stands at a place, in words."""
        worker, task = self.owner(place)
        return f"worker {worker}" if self.per_worker == 1 else f"worker {worker}, task {task}"

    def describe_all(self, places: Sequence[int]) -> str:
        """Whose answers stand at these places, in words."""
        if self.per_worker == 1:
            return f"workers {list(places)}"
        return "; ".join(map(self.describe, places))

    def to_json(self) -> dict[str, Any]:
        """As it lies in the manifest, beside N."""
        return {
            "per_worker": self.per_worker,
            "per_object": self.per_object,
            "places": list(self.places),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], blocks: int) -> Subtasks:
        """Read and check, for a code of `blocks` coded blocks; raises `ManifestError`."""
        fields = Fields(data, "manifest's subtasks", ManifestError)
        r = fields.integer("per_worker", low=1, high=MOST_SUBTASKS)
        if blocks % r:
            raise fields.fail("per_worker", f"a divisor of the code's {blocks} blocks")
        return cls(blocks // r, r, fields.integer("per_object", low=1), fields.integers("places"))
