"""How long a product takes to be put together, by windows here or in functions (docs/cost.md)."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.decode_counts import StageCounts
from coordinator.decode_fleet import POLL_SECONDS
from coordinator.decode_job import AT_ONCE
from coordinator.form import AnswerForm
from coordinator.platform import Platform
from coordinator.stored_answers import READERS
from coordinator.targets import WRITERS

__all__ = ["Product", "Stage"]


@dataclass(frozen=True)
class Product:
    """What is decoded: `answers` of `form` on a machine that reads and writes so many bytes a
    second with so many processors."""

    form: AnswerForm
    answers: int
    read_rate: float
    write_rate: float
    vcpus: float
    platform: Platform

    @property
    def read(self) -> int:
        """Bytes of the answers that are decoded."""
        return self.answers * self.form.answer_bytes

    @property
    def written(self) -> int:
        """Bytes of the product."""
        layout = self.form.layout
        return layout.rows * layout.columns * self.form.dtype.itemsize

    def windows(self, gets: float, puts: float) -> float:
        """Seconds to read, solve and write everything, by so many requests."""
        request = self.platform.s3_request_seconds
        solved = 8 * self.answers * self.form.length / self.platform.decode_rate
        return (
            gets * request / READERS
            + self.read / self.read_rate
            + solved / min(1.0, self.vcpus)
            + puts * request / WRITERS
            + self.written / self.write_rate
        )

    def parts(self, counts: StageCounts) -> float:
        """Seconds to make all parts of pieces: a few at a time, each read and then written."""
        written = counts.part_calls / WRITERS
        waits = max(counts.part_gets / READERS, written) + written
        moved = self.written / self.read_rate + self.written / self.write_rate
        return waits * self.platform.s3_request_seconds + moved


@dataclass(frozen=True)
class Stage:
    """`count` windows or parts in at most `most` calls: each makes `opening` seconds of requests of
    its own, all together `work` seconds; cold functions take `start` more."""

    count: int
    most: int
    opening: float
    work: float
    start: float

    @property
    def calls(self) -> int:
        """Invocations."""
        return min(self.count, self.most)

    def longest(self, platform: Platform) -> float:
        """Seconds of the call with the most to do."""
        share = -(-self.count // self.calls) / self.count
        return self.start + platform.worker_overhead_seconds + self.opening + share * self.work

    def busy(self, platform: Platform) -> float:
        """Seconds of all calls."""
        each = self.start + platform.worker_overhead_seconds + self.opening
        return self.calls * each + self.work

    def seconds(self, platform: Platform) -> float:
        """Until the coordinator has read that all are done."""
        invoked = -(-self.calls // platform.invoke_threads) * platform.invoke_seconds
        heard = POLL_SECONDS + -(-self.calls // AT_ONCE) * platform.s3_request_seconds
        return invoked + self.longest(platform) + heard

    def lists(self, platform: Platform) -> int:
        """Looks for records of what is done and of what failed."""
        return 2 + 2 * max(1, round(self.longest(platform) / POLL_SECONDS))
