"""What one run knew of A x at every arrival, against the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from polarlambda.result import Result

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Moment:
    """What was known of A x at one time of a run.

    ``seconds`` since the run began; ``arrivals`` answers in; ``value`` (n,) the estimate, NaN where
    nothing is known; ``error`` its true relative error, ``bar`` the 95 % bar, both of ||A x||.
    """

    seconds: float
    arrivals: int
    value: Array
    error: float
    bar: float


@dataclass(frozen=True)
class Story:
    """One run: its moments in time order, the last one being the end, with the product."""

    workers: int
    moments: Sequence[Moment]
    result: Result

    @property
    def end(self) -> Moment:
        """The end of the run."""
        return self.moments[-1]

    def at(self, seconds: float) -> Moment | None:
        """The newest moment at that time, None before the first."""
        known = [moment for moment in self.moments if moment.seconds <= seconds]
        return known[-1] if known else None


def relative_error(value: Array, truth: Array) -> float:
    """||value - truth|| / ||truth||, what is not known counting as 0."""
    import numpy as np

    return float(np.linalg.norm(np.nan_to_num(value) - truth) / np.linalg.norm(truth))


def tell(name: str, result: Result, arrived: Sequence[tuple[float, int]], truth: Array) -> Story:
    """The story of a finished run of matrix ``name``.

    ``arrived`` are (seconds, worker) in order. The answers are read back from the bucket, and the
    estimate is made again for every number of them; the run itself made only some.
    """
    import numpy as np

    from blockstore.runs import RunStore
    from polarlambda.connect import open_bucket
    from polarlambda.matrix import CodedMatrix
    from polarlambda.settings import load_settings

    store = RunStore(open_bucket(load_settings()), result.run)
    with CodedMatrix.open(name) as matrix:
        code, block_rows = matrix.code, matrix.manifest.block_rows
    answers = np.stack([store.get_result(worker)[0].reshape(block_rows) for _, worker in arrived])
    moments = []
    for count, (seconds, _) in enumerate(arrived, start=1):
        workers = [worker for _, worker in arrived[:count]]
        estimate = code.estimate(workers, answers[:count])
        known = np.abs(code.rows(workers)).sum(axis=0) > 0
        value = np.where(known[:, None], estimate.value, np.nan).reshape(-1)[: len(truth)]
        error = relative_error(value, truth)
        moments.append(Moment(seconds, count, value, error, estimate.relative_error_upper))
    product = result.value
    assert product is not None, "a run that is told has ended with a product"
    end = Moment(result.seconds, result.arrivals, product, relative_error(product, truth), 0.0)
    return Story(code.workers, [*moments, end], result)
