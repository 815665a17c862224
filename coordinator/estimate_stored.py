"""Estimates from answers that stay in the store: the error from the set, the value by windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blockstore import keys
from blockstore.bucket import Bucket
from coordinator.budget import window_rows
from coordinator.cut import NPY, cut_product
from coordinator.estimate import Estimation, ProductEstimate
from coordinator.recovered import RecoveredColumns, RecoveredRows
from coordinator.stored_answers import AnswerLost, StoredAnswers
from coordinator.targets import NpyTarget
from coordinator.windows import Pools, Stages, piece_keys
from polarcodes import ErasureCode

__all__ = ["StoredEstimator"]

ESTIMATE = "estimate"  # in the place of a decoding's id, for pieces


class StoredEstimator:
    """The estimates of one run. `recovered` is given where rows are to be exact (`tasks=X`)."""

    def __init__(
        self,
        bucket: Bucket,
        code: ErasureCode,
        answers: StoredAnswers,
        run: str,
        estimator: str,
        metric: str,
        recovered: RecoveredRows | None,
    ) -> None:
        self._bucket, self._code, self._answers, self._run = bucket, code, answers, run
        self._estimator, self._metric, self._recovered = estimator, metric, recovered

    def errors(self, places: Sequence[int]) -> ProductEstimate:
        """Errors and method of the estimate from these answers, without its value: they are those
        of the set, whatever the answers are, so nothing is read."""
        solution = self._solution(places)
        nothing = np.zeros((len(places), 1), self._answers.form.dtype)
        if isinstance(solution, Estimation):
            solution.solve(nothing, np.empty((self._answers.form.data_blocks, 1), nothing.dtype))
        return solution.result(None)

    def write(self, places: Sequence[int], memory: int, x_bytes: int) -> ProductEstimate:
        """Compute the estimate by windows and write estimate.npy; every answer is read once.

        An answer that has gone meanwhile is left out. Raises `PlanRefused` when memory is too
        small.
        """
        remaining = list(places)
        while True:
            try:
                return self._write(remaining, memory, x_bytes)
            except AnswerLost as lost:
                remaining.remove(lost.place)
                if not remaining:
                    raise

    def _write(self, places: Sequence[int], memory: int, x_bytes: int) -> ProductEstimate:
        solution, form = self._solution(places), self._answers.form
        used = solution.places if isinstance(solution, RecoveredColumns) else list(places)
        rows = window_rows(form, len(used), memory, x_bytes)
        cut = cut_product(form.layout, form.dtype.itemsize, rows, NPY)
        key = keys.estimate_key(self._run)
        target = NpyTarget(self._bucket, key, form.layout, form.dtype, cut)
        try:
            with Pools() as pools:
                stages = Stages(
                    self._bucket,
                    form.layout,
                    cut,
                    form.dtype,
                    self._answers.where(used),
                    used,
                    solution.solve,
                    target,
                    self._run,
                    ESTIMATE,
                    pools,
                )
                for window in range(len(cut.windows)):
                    stages.window(window)
                if not cut.direct:
                    for _ in pools.writers.map(stages.part, range(len(cut.parts))):
                        pass
            target.finish()
        except BaseException:
            target.abort()
            raise
        finally:
            pieces = piece_keys(form.layout, cut, form.dtype, self._run, ESTIMATE)
            self._bucket.delete(pieces)
        return solution.result(None)

    def _solution(self, places: Sequence[int]) -> Estimation | RecoveredColumns:
        found = self._recovered.solution(places) if self._recovered else None
        if found is not None:
            return found
        return Estimation(self._code, self._answers.form, places, self._estimator, self._metric)
