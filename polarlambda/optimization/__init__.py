"""Black-box optimisation: a function that can only be evaluated, on workers that may be slow, dead
or noisy (arXiv 2309.00682; the directions are `polarcodes.directions`).

    from polarlambda.optimization import optimize

    result = optimize("problems:score", [0.0, 0.0, 0.0], maximize=True)

Each iteration evaluates f at theta +- sigma v for N coded directions v, on a Lambda function of the
objective's own, and steps along the gradient that the answers determine as soon as enough of them
have come.
"""

from __future__ import annotations

from polarlambda.optimization.api import (
    cancel_optimization,
    delete_optimization,
    list_optimizations,
    optimize,
    resume_optimization,
    show_optimization,
    watch_optimization,
)
from polarlambda.optimization.options import Options
from polarlambda.optimization.result import OptimizationResult

__all__ = [
    "OptimizationResult",
    "Options",
    "cancel_optimization",
    "delete_optimization",
    "list_optimizations",
    "optimize",
    "resume_optimization",
    "show_optimization",
    "watch_optimization",
]
