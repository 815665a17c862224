"""``polarlambda data``."""

from __future__ import annotations

import csv
from pathlib import Path

import click

from polarlambda.errors import BadInput


@click.command()
@click.argument("name", metavar="flights|digits")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--rows", type=int, metavar="N", help="So many of the rows instead of all.")
def data(name: str, folder: Path, rows: int | None) -> None:
    """Write real data to train on to FOLDER: X.npy, y.npy and columns.csv.

    flights: 327,346 flights from New York in 2013, to predict their arrival delay. digits: 1,797
    handwritten digits.
    """
    from polarlambda.download import write_product
    from polarlambda.sizes import format_size
    from polarlambda.training.examples import make_example

    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file: name a folder")
    made = make_example(name, rows)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_product(folder / "X.npy", made.X)
        write_product(folder / "y.npy", made.y)
        with open(folder / "columns.csv", "w", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(("column", "mean", "scale"))
            lines.writerows(made.columns)
    except OSError as error:
        raise BadInput(f"{folder} cannot be written: {error.strerror}") from error
    n, d = made.X.shape
    click.echo(f"{name}: X.npy ({n} x {d}, {format_size(made.X.nbytes)}) and y.npy in {folder}")
