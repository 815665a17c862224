"""What a code makes of the answers of one run: are they enough, and how good is the estimate?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from coordinator.estimate import Estimates
from coordinator.form import AnswerForm
from polarcodes import ErasureCode
from polarcodes.estimators import choose_estimator, expected_error

__all__ = ["Judge", "answer_error", "tolerance"]

ROUNDINGS = 1.6  # rms error of a coded block or an answer over its epsilon, at most (N = 4096)
SINGLE, DOUBLE = 1e-4, 1e-9  # of the decoded product, by the precision of the answers
_KEPT = 256


def answer_error(form: AnswerForm) -> float:
    """rms relative error of an answer by rounding: of its block when encoded, or of itself."""
    return ROUNDINGS * form.epsilon


def tolerance(form: AnswerForm) -> float:
    """The largest predicted relative error, by rounding, of a product that is called exact.

    A set of answers that would spread the rounding further waits for one more answer: one run in
    a hundred with float32 blocks at exactly s answers, none with float64.
    """
    return SINGLE if form.epsilon > DOUBLE else DOUBLE


class Judge:
    """The code as the run machine sees it, for the precision of this run's answers.

    decodable : the predicted error of the product decoded from S is within the tolerance. All N
    answers decode whenever the code itself says so: nothing better can come. Arrivals are `add`ed
    as they come, which makes the question about the set of all of them cheap; other sets are asked
    of the code, and their answers kept.

    With `changes` the answers are those to A (x - x_ref), and all errors relative to A x: they
    depend on the answers themselves, so that it costs an estimate to know them.
    """

    def __init__(
        self,
        code: ErasureCode,
        form: AnswerForm,
        estimator: str = "best",
        changes: Estimates | None = None,
        *,
        metric: str = "vector",
    ) -> None:
        self._code = code
        self._changes = changes
        self._rules = {"answer_error": answer_error(form), "tolerance": tolerance(form)}
        self._arrivals = code.arrivals(**self._rules)
        self._estimator, self._metric = estimator, metric
        self._known: dict[frozenset[int], bool] = {}
        self._errors: dict[int, float] = {}

    @property
    def workers(self) -> int:
        """N."""
        return self._code.workers

    @property
    def data_blocks(self) -> int:
        """s."""
        return self._code.data_blocks

    def add(self, workers: Iterable[int]) -> None:
        """Take in verified answers."""
        for worker in workers:
            self._arrivals.add(worker)

    def decodable(self, S: Iterable[int]) -> bool:
        """The answers of S determine the product, to the tolerance."""
        asked = frozenset(S)
        if len(asked) < self.data_blocks:
            return False
        if len(asked) == self.workers:
            return self._all_decode
        if asked == frozenset(self._arrivals.arrived):
            return self._arrivals.decodable
        if asked not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[asked] = self._code.decodable(asked, **self._rules)
        return self._known[asked]

    def predicted_error(self, m: int) -> float:
        """Relative rms error of the estimate that m answers can be expected to give."""
        if m not in self._errors:
            self._errors[m] = expected_error(self._code, m, self._estimator, metric=self._metric)
        share = self._changes.share if self._changes is not None and m else 1.0
        return self._errors[m] * share

    def estimate_error(self, S: Iterable[int]) -> float:
        """Predicted relative rms error of the estimate from exactly these answers."""
        places = sorted(set(S))
        if self._changes is not None and places:
            return self._changes.of(places).error
        return choose_estimator(self._code, places, self._estimator, metric=self._metric)[1]

    @cached_property
    def _all_decode(self) -> bool:
        return self._code.decodable(range(self.workers))
