"""Matrix products on AWS Lambda that do not wait for stragglers.

    import polarlambda

    polarlambda.encode(A, "photos")
    with polarlambda.CodedMatrix.open("photos") as matrix:
        result = matrix.multiply(x)

Importing the package is light: what a name needs is imported when the name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polarlambda.encoding import encode
    from polarlambda.errors import BadInput, PlatformError, PolarlambdaError, SettingMissing
    from polarlambda.matrices import delete_matrix, list_matrices, read_companion, show_matrix
    from polarlambda.matrix import CodedMatrix
    from polarlambda.pair_planning import MatmulPlan, plan_matmul
    from polarlambda.pair_product import matmul
    from polarlambda.planning import plan_matrix
    from polarlambda.result import Arrival, Result
    from polarlambda.runs import (
        cancel_run,
        delete_run,
        list_runs,
        resume_run,
        show_run,
        watch_run,
    )
    from polarlambda.session import Session
    from polarlambda.session_usage import SessionUsage
    from polarlambda.training.manage import (
        delete_training,
        list_trainings,
        show_training,
        watch_training,
    )
    from polarlambda.training.service import resume_training, train
    from polarlambda.training.trained import Trained

_MODULES = {
    "encoding": ("encode",),
    "errors": ("BadInput", "PlatformError", "PolarlambdaError", "SettingMissing"),
    "pair_planning": ("MatmulPlan", "plan_matmul"),
    "pair_product": ("matmul",),
    "matrices": ("delete_matrix", "list_matrices", "read_companion", "show_matrix"),
    "matrix": ("CodedMatrix",),
    "planning": ("plan_matrix",),
    "result": ("Arrival", "Result"),
    "session": ("Session",),
    "session_usage": ("SessionUsage",),
    "runs": ("cancel_run", "delete_run", "list_runs", "resume_run", "show_run", "watch_run"),
    "training.manage": ("delete_training", "list_trainings", "show_training", "watch_training"),
    "training.service": ("resume_training", "train"),
    "training.trained": ("Trained",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Arrival",
    "BadInput",
    "CodedMatrix",
    "MatmulPlan",
    "PlatformError",
    "PolarlambdaError",
    "Result",
    "Session",
    "SessionUsage",
    "SettingMissing",
    "Trained",
    "cancel_run",
    "delete_matrix",
    "delete_run",
    "delete_training",
    "encode",
    "list_matrices",
    "list_runs",
    "list_trainings",
    "matmul",
    "plan_matmul",
    "plan_matrix",
    "read_companion",
    "resume_run",
    "resume_training",
    "show_matrix",
    "show_run",
    "show_training",
    "train",
    "watch_run",
    "watch_training",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'polarlambda' has no attribute {name!r}")
    return getattr(import_module(f"polarlambda.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
