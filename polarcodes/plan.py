"""A decoding plan: what to do with the answers of one set of workers, as plain arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import answer_rows, require_finite_answers
from polarcodes.errors import InvalidPlan

Arrays = Mapping[str, NDArray[Any]]

_PROBES = 32  # random columns that measure how a plan spreads rounding errors: 13 % in rms


class DecodingPlan(ABC):
    """Immutable; a function of the set S alone, so any number of processes can share it.

    The columns of the answers are independent: ``apply`` gives the same bytes for a column whatever
    other columns are there, and whatever the order of S.
    """

    method: ClassVar[str]
    _methods: ClassVar[dict[str, type[DecodingPlan]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        DecodingPlan._methods[cls.method] = cls

    def __init__(self, workers: NDArray[np.intp], data_blocks: int) -> None:
        self._workers = _frozen(workers)
        self._data_blocks = int(data_blocks)

    @property
    def workers(self) -> NDArray[np.intp]:
        """The set S in the order it was given: row j of the answers belongs to ``workers[j]``."""
        return self._workers

    @property
    def data_blocks(self) -> int:
        """Rows of the decoded product, s."""
        return self._data_blocks

    def apply(self, Y: Any) -> NDArray[Any]:
        """Decode the answers Y, shape (m, L), to the data blocks, shape (s, L).

        float32 and float64 stay what they are; float16 widens to float32, integers to float64.
        Y is never changed. Raises :class:`~polarcodes.errors.InvalidAnswers` for a wrong shape or
        type, NaN or infinity.
        """
        answers = answer_rows(Y, self._workers)
        require_finite_answers(answers, self._workers)
        return self._apply(answers)

    def predicted_error(self, answer_error: float = 3.4e-8) -> float:
        """Return the rms relative error of the product when each answer has ``answer_error``.

        Decoding is linear, X = W Y, and every answer has the mean square of the whole product, so
        independent errors of the answers grow by the Frobenius norm of W. The norm is measured
        with 32 fixed random columns (13 % accurate); the arithmetic of ``apply`` adds about as
        much again.
        """
        probes = np.random.Generator(np.random.Philox(0)).standard_normal(
            (len(self._workers), _PROBES)
        )
        return float(answer_error * np.sqrt(np.sum(self._apply(probes) ** 2) / _PROBES))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of the plan's arrays of numbers and text, ready for ``numpy.savez``."""
        named = {"workers": self._workers, **self._arrays()}
        arrays = {name: np.array(values) for name, values in named.items()}
        return {"method": np.array(self.method), **arrays}

    @staticmethod
    def from_arrays(arrays: Arrays) -> DecodingPlan:
        """Rebuild a plan from :meth:`to_arrays`; refuse arrays that do not fit together."""
        try:
            method = str(arrays["method"])
            kind = DecodingPlan._methods.get(method)
            if kind is None:
                known = ", ".join(sorted(DecodingPlan._methods))
                raise InvalidPlan(f"method must be one of {known}, got {method!r}")
            return kind._from_arrays(arrays)
        except KeyError as error:
            raise InvalidPlan(
                f"the plan lacks the array {error}: store all of to_arrays()"
            ) from None

    def __repr__(self) -> str:
        size = f"{len(self._workers)} answers -> {self._data_blocks} data blocks"
        return f"{type(self).__name__}({size})"

    @abstractmethod
    def _apply(self, answers: NDArray[Any]) -> NDArray[Any]:
        """Decode finite float32 or float64 answers."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of this kind of plan."""

    @classmethod
    @abstractmethod
    def _from_arrays(cls, arrays: Arrays) -> Self:
        """Rebuild and validate this kind of plan."""


class SelectionPlan(DecodingPlan):
    """Each data block is one of the answers, as it is: block k is the answer of row ``rows[k]``."""

    method = "selection"

    def __init__(self, workers: NDArray[np.intp], rows: NDArray[np.intp]) -> None:
        super().__init__(workers, len(rows))
        self._rows = _frozen(rows)

    def predicted_error(self, answer_error: float = 3.4e-8) -> float:
        """Return ``answer_error``: nothing is added up."""
        return answer_error

    def _apply(self, answers: NDArray[Any]) -> NDArray[Any]:
        return answers[self._rows]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"rows": self._rows}

    @classmethod
    def _from_arrays(cls, arrays: Arrays) -> Self:
        workers = stored_indices(arrays, "workers", None)
        return cls(workers, stored_indices(arrays, "rows", len(workers)))


def stored_indices(
    arrays: Arrays, name: str, limit: int | None, *, columns: int | None = None
) -> NDArray[np.intp]:
    """Return a stored index array, checked to lie within ``0..limit-1``.

    It must be one-dimensional, or have the given number of columns.
    """
    values = np.asarray(arrays[name])
    rest = () if columns is None else (columns,)
    if values.ndim != 1 + len(rest) or values.shape[1:] != rest or values.dtype.kind not in "iu":
        raise InvalidPlan(
            f"{name} must be an array of indices, got shape {values.shape} and dtype {values.dtype}"
        )
    if values.size and (values.min() < 0 or (limit is not None and values.max() >= limit)):
        bound = "0 or more" if limit is None else f"0..{limit - 1}"
        raise InvalidPlan(
            f"{name} must hold indices in {bound}, got {values.min()}..{values.max()}"
        )
    return values.astype(np.intp)


def _frozen(values: NDArray[np.intp]) -> NDArray[np.intp]:
    copy = np.array(values, dtype=np.intp)
    copy.flags.writeable = False
    return copy
