"""``polarlambda plan --matmul``: the grid of a matrix product, and which factors to code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarlambda.cli.output import echo_table, to_json
from polarlambda.cli.plan_text import decoding_lines, line

if TYPE_CHECKING:
    from coordinator.compare_grids import Way


def plan_pair(
    target: str | None,
    shape: tuple[int, int] | None,
    other: str,
    dtype: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Print the plan of A B. `target` or `shape` is A; `other` is a file or a shape."""
    from polarlambda.errors import BadInput
    from polarlambda.pair_planning import plan_matmul

    sizes = re.fullmatch(r"\s*(\d+)\s*[x×,]\s*(\d+)\s*", other)
    B: Any = other
    if sizes is not None and not Path(other).exists():
        B = int(sizes[1]), int(sizes[2])
    A: Any = target if target is not None else shape
    if A is None:
        raise BadInput("a matrix product needs A: give A.npy, or --shape and --dtype")
    plan = plan_matmul(A, B, dtype=dtype or "float64", **options)
    if as_json:
        click.echo(to_json(plan.to_json()))
        return
    for text in plan.choice.explanation:
        click.echo(text)
    head = ("CODED", "GRID", "BLOCKS", "SURVIVES", "STORED", "READ", "TIME", "95 %", "RUN")
    echo_table((*head, "ENCODE"), [_row(way) for way in plan.ways])
    for way in plan.ways:
        if way.plan is None:
            click.echo(f"{way.name}: {way.refused}")
    if plan.ways[0].plan is not None:
        for name, text in decoding_lines(plan.ways[0].plan):
            line(name, text)
        for note in plan.ways[0].plan.notes:
            click.echo(f"note: {note}")


def _row(way: Way) -> tuple[str, ...]:
    from polarlambda.sizes import format_size as size

    survives = f"any {way.survives}"
    if way.plan is None:
        return (way.name, "-", "-", survives, "-", "-", "-", "-", "-", "does not fit")
    plan = way.plan
    return (
        way.name,
        f"{plan.grid[0]}x{plan.grid[1]}",
        f"{plan.data_grid[0]}x{plan.data_grid[1]}",
        survives,
        size(plan.storage_bytes),
        size(plan.bytes_read),
        f"{plan.time.coded:.2f} s",
        f"{plan.time.coded_p95:.2f} s",
        f"${plan.run_cost.total:.5f}",
        f"${plan.encode_cost.total:.5f}",
    )
