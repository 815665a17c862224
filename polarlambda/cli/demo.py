"""``polarlambda demo``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-output"),
    show_default=True,
    metavar="DIR",
    help="Where the picture goes.",
)
@click.option("--small", is_flag=True, help="A ninth of the rows, for a quick look.")
@click.option(
    "--delays",
    default="exponential",
    show_default=True,
    metavar="MODEL|FILE.csv",
    help="exponential, lambda-rare-tail, none, or a table of seconds (its first row).",
)
@click.option("--scale", type=float, default=2.0, show_default=True, help="Factor on the delays.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything drawn.")
def demo(output: Path, small: bool, delays: str, scale: float, seed: int) -> None:
    """Filter photographs on 64 workers with stragglers.

    Prints the estimate as answers arrive and the moment of the exact product, and draws a picture.
    Without AWS endpoints in the environment it runs in a local stack of its own, and costs nothing.
    """
    from polarlambda.demo.play import play

    picture = play(
        output=output, small=small, delays=delays, scale=scale, seed=seed, say=click.echo
    )
    click.echo(f"Picture: {picture.resolve()}")
