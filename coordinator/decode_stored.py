"""A product that is decoded window by window from answers in the store, here or by functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from blockstore import decode_keys
from blockstore.bucket import Bucket
from blockstore.errors import ObjectMissing, UploadMissing
from blockstore.products import StoredProduct
from coordinator.budget import FUNCTION_SHARE, share_of, window_rows
from coordinator.check import Check
from coordinator.cost import Usage
from coordinator.cut import cut_product
from coordinator.decode import Decoder, Decoding, conclude
from coordinator.decode_counts import call_requests, stage_counts
from coordinator.decode_fleet import DecodeFunctions, Fleet
from coordinator.decode_job import DecodeJob, get_checks, put_done
from coordinator.ports import Clock
from coordinator.stored_answers import StoredAnswers
from coordinator.targets import Kind, Target, part_rule
from coordinator.windows import Pools, piece_keys
from polarcodes import ErasureCode

__all__ = ["StoredDecoder"]

RESERVE = 30.0  # seconds before a time limit at which no further window is begun


@dataclass
class StoredDecoder:
    """Decodes the answers that a run left in the store.

    memory : bytes that this process may use, x_bytes of which hold x; functions : decode functions
    that do the work instead, within their own memory; time_left : seconds until the platform ends
    this process, None without a limit. What is done is written down, so that another coordinator
    carries on. `usage` is what decode functions used, the coordinator's own requests left out.
    """

    bucket: Bucket
    code: ErasureCode
    answers: StoredAnswers
    run: str
    kind: Kind
    clock: Clock
    memory: int
    x_bytes: int = 0
    functions: DecodeFunctions | None = None
    time_left: Callable[[], float | None] = lambda: None
    usage: Usage = field(default_factory=Usage)

    def decode(self, decisive: Sequence[int]) -> tuple[Decoding, str] | None:
        """(decoding without its value, key of the product), None when time is up.

        The product is written unless left-over equations contradict it. Raises
        `polarcodes.NotDecodable`, `AnswerLost`, `DecodeFailed`, `PlanRefused` when memory is too
        small, `blockstore.errors.StoreError`.
        """
        decoder = Decoder.of(self.code, self.answers, decisive)
        wanted = self._job(decoder)
        try:
            return self._decode(wanted, decoder)
        except UploadMissing:  # of a coordinator that died long ago: its parts were thrown away
            self.bucket.delete_prefix(decode_keys.decoding_prefix(self.run, wanted.decoding))
            return self._decode(wanted, decoder)

    def _decode(self, wanted: DecodeJob, decoder: Decoder) -> tuple[Decoding, str] | None:
        try:
            job, _ = DecodeJob.load(self.bucket, self.run, wanted.decoding)
        except ObjectMissing:
            job = self._begin(wanted, decoder)
        if self._there(job):  # somebody finished it, and died before saying so
            done = sum(get_checks(self.bucket, job, "window", {}).values(), Check())
            return conclude(decoder, done, self.answers.form.shares, None), job.key
        target = job.target(self.bucket)
        check = (
            self._by_functions(job, decoder) if self.functions else self._here(job, decoder, target)
        )
        if check is None:
            return None
        decoding = conclude(decoder, check, self.answers.form.shares, None)
        if decoding.contradiction is None:
            self._finish(job, target)
        else:
            target.abort()
        return decoding, job.key

    def _job(self, decoder: Decoder) -> DecodeJob:
        form = self.answers.form
        places = tuple(decoder.plan.workers.tolist())
        if self.functions is not None:
            budget = int(FUNCTION_SHARE * self.functions.memory)
            most = window_rows(form, len(places), budget, 0)
            rows = share_of(form, len(places), self.functions.most, most, part_rule(self.kind))
        else:
            rows = window_rows(form, len(places), self.memory, self.x_bytes)
        return DecodeJob(
            run=self.run,
            code=self.code.to_manifest(),
            places=places,
            answers=tuple(self.answers.where(places)),
            dtype=form.dtype.str,
            epsilon=decoder.epsilon,
            scale=decoder.scale,
            predicted=decoder.predicted,
            layout=form.layout,
            cut=cut_product(form.layout, form.dtype.itemsize, rows, part_rule(self.kind)),
            kind=self.kind,
        )

    def _begin(self, job: DecodeJob, decoder: Decoder) -> DecodeJob:
        """Store the job with an upload of its own, or take over that of who was faster."""
        target = job.target(self.bucket)
        begun = replace(job, upload=target.upload)
        if begun.store(self.bucket, decoder.plan if self.functions else None):
            return begun
        target.abort()
        return DecodeJob.load(self.bucket, self.run, job.decoding)[0]

    def _here(self, job: DecodeJob, decoder: Decoder, target: Target) -> Check | None:
        done = get_checks(self.bucket, job, "window", {})
        with Pools() as pools:
            stages = job.stages(self.bucket, decoder.apply, target, pools)
            for number in range(len(job.cut.windows)):
                if number in done:
                    continue
                if self._late():
                    return None
                done[number] = stages.window(number)
                put_done(self.bucket, job, "window", number, done[number])
            if not job.cut.direct:
                for _ in pools.writers.map(stages.part, range(len(job.cut.parts))):
                    if self._late():
                        return None
        return sum((done[n] for n in sorted(done)), Check())

    def _by_functions(self, job: DecodeJob, decoder: Decoder) -> Check | None:
        arrays = len(decoder.plan.to_arrays()) - 1  # the method is in the job
        check = self._stage(job, "window", len(job.cut.windows), arrays)
        if check is not None and not job.cut.direct:
            made = self._stage(job, "part", len(job.cut.parts), arrays)
            check = None if made is None else check
        return check

    def _stage(self, job: DecodeJob, stage: str, count: int, arrays: int) -> Check | None:
        """Have a stage done, and add what it used, whatever came of it."""
        assert self.functions is not None
        fleet = Fleet(self.bucket, job, self.functions, self.clock, self.time_left)
        try:
            return fleet.run(stage, count, RESERVE)
        finally:
            counts = stage_counts(job.layout, job.cut, np.dtype(job.dtype))
            used = call_requests(counts, stage, fleet.invoked, fleet.units, len(job.places), arrays)
            gigabytes = self.functions.memory / (1 << 30)
            self.usage += used + Usage(
                invokes=fleet.invoked, decode_gb_seconds=fleet.seconds * gigabytes
            )

    def _finish(self, job: DecodeJob, target: Target) -> None:
        """Make the product appear; another coordinator may just have done it."""
        try:
            target.finish()
        except UploadMissing:
            if not self._there(job):
                raise
        dtype = np.dtype(job.dtype)
        self.bucket.delete(piece_keys(job.layout, job.cut, dtype, job.run, job.decoding))

    def _there(self, job: DecodeJob) -> bool:
        """The product has appeared: all windows were done, and their equations hold."""
        try:
            found = StoredProduct.open(self.bucket, job.key)
        except ObjectMissing:
            return False
        return found.shape == job.layout.shape and found.dtype == np.dtype(job.dtype)

    def _late(self) -> bool:
        left = self.time_left()
        return left is not None and left < RESERVE
