"""``polarlambda multiply``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from polarlambda.cli.errors import EXIT_MET, EXIT_NOT_REACHED
from polarlambda.cli.options import (
    deadline_option,
    decode_option,
    json_option,
    memory_option,
    on_option,
    output_option,
    relaunch_option,
    result_option,
    stack_option,
)
from polarlambda.cli.output import check_output, to_json
from polarlambda.cli.progress import Progress, make_progress

if TYPE_CHECKING:
    import numpy as np

    from coordinator.events import Event
    from polarlambda.result import Arrival, Result

SHOWN = 8  # inner products in a line


@click.command()
@click.argument("name")
@click.argument("x", metavar="X.npy", type=click.Path(path_type=Path))
@output_option
@click.option(
    "--until",
    default="exact",
    show_default=True,
    metavar="CONDITION",
    help="When it is good enough: exact, error=0.1 (relative), seconds=5, tasks=0.9 (of the rows).",
)
@deadline_option
@click.option(
    "--estimator",
    default="best",
    show_default=True,
    metavar="NAME",
    help="best, paper (unbiased), shrinkage, least-squares or hybrid.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="C.npy",
    help="Vectors c, (n,) or (n, p): choose the estimate for, and print, inner products c^T A x.",
)
@relaunch_option
@click.option(
    "--reference",
    metavar="RUN",
    help="An exact run on NAME: multiply by the difference to its x, and add its product.",
)
@on_option
@decode_option
@result_option
@memory_option
@json_option
@stack_option
def multiply(
    name: str,
    x: Path,
    output: Path | None,
    until: str,
    deadline: float | None,
    estimator: str,
    against: Path | None,
    relaunch: str | None,
    reference: str | None,
    on: Literal["local", "lambda"],
    decode: Literal["local", "lambda"],
    kind: Literal["npy", "zarr"] | None,
    memory: str | None,
    as_json: bool,
    stack: str | None,
) -> None:
    """Multiply the encoded matrix NAME by X.npy.

    Exit code 3 says that CONDITION was not reached; the best estimate is at -o then.
    """
    from polarlambda.download import is_zarr
    from polarlambda.matrix import CodedMatrix

    check_output(output)
    with CodedMatrix.open(name, stack=stack) as matrix, make_progress(quiet=as_json) as progress:
        show = Show(progress)
        result = matrix.multiply(
            x,
            until=until,
            deadline=deadline,
            estimator=estimator,
            metric="vector" if against is None else against,
            relaunch=relaunch,
            reference=reference,
            on=on,
            decode=decode,
            result=kind or ("zarr" if output is not None and is_zarr(output) else "npy"),
            memory=memory,
            on_arrival=show.arrival,
            on_event=show.event,
        )
    finish(result, output, as_json)


class Show:
    """Shows a run: its id as soon as there is one, every arrival, estimate and failure."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._run = ""

    def arrival(self, arrival: Arrival) -> None:
        """For ``on_arrival``."""
        self._name(arrival.run)
        news = arrival.error_upper is not None or arrival.state != "running"
        self._progress.update(arrival.arrivals, arrival.answers, str(arrival), important=news)

    def event(self, event: Event) -> None:
        """For ``on_event``."""
        from coordinator import events

        self._name(event.run)
        match event:
            case events.Failed(worker=worker, kind=kind, message=message):
                self._progress.note(f"worker {worker} failed: {kind}: {message}")
            case events.Reinvoked(missing=missing, slow=slow):
                which = "slow worker" if slow else "lost block"
                many = f"s: {len(missing)} are" if len(missing) > 1 else " is"
                self._progress.note(f"{which}{many} invoked once more")

    def _name(self, run: str) -> None:
        if run != self._run:
            self._run = run
            self._progress.note(f"run {run}")


def finish(result: Result, output: Path | None, as_json: bool) -> None:
    """Write the value, say how the run ended, and leave with its exit code."""
    written = result.download(output) if output is not None and result.has_value else None
    if as_json:
        click.echo(to_json(result.to_json(value_path=str(written) if written else None)))
    else:
        click.echo(str(result))
        if result.products is not None:
            click.echo(products_text(result.products, result.products_error))
        if written is not None:
            click.echo(f"{'product' if result.exact else 'best estimate'} in {written}")
    if result.met:
        sys.exit(EXIT_MET)
    click.echo(f"polarlambda: not reached: {result.message}", err=True)
    if result.state in ("stopped", "cancelled"):
        click.echo(f"go on with: polarlambda runs resume {result.run}", err=True)
    sys.exit(EXIT_NOT_REACHED)


def products_text(products: np.ndarray[Any, Any], error: float | None) -> str:
    """Inner products in one line, the first few of many."""
    flat = products.ravel()
    shown = ", ".join(f"{value:.6g}" for value in flat[:SHOWN].tolist())
    more = f", ... ({flat.size} in all: --json has them)" if flat.size > SHOWN else ""
    scatter = f", rms error of all together {error:.3g}" if error else ""
    return f"inner products {shown}{more}{scatter}"
