"""What `polarlambda plan` prints: lines of a name and figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from polarlambda.encode_plan import MOST_MB
from polarlambda.sizes import format_size as size

if TYPE_CHECKING:
    from coordinator.encode_time import EncodeOnLambda
    from coordinator.pair_plan import PairPlan
    from coordinator.planning import DecodePlan, EncodingPlan, RunPlan


def show_plan(encoding: EncodingPlan | None, run: RunPlan) -> None:
    """Print the plan as lines of a name and figures."""
    stored, usage, time = run.stored, run.usage, run.time

    rows, columns = run.shape
    x = " x ".join(str(length) for length in run.x_shape)
    line("product", f"({rows} x {columns}) by x ({x}), computed in {run.compute_dtype}")
    r = run.subtasks
    each = f" with {r} blocks each" if r > 1 else ""
    blocks = f"s r = {run.data_blocks}" if r > 1 else f"s = {run.data_blocks}"
    line("code", f"{run.code}, N = {run.workers} workers{each}, {blocks} data blocks")
    for reason in encoding.choice.explanation if encoding else ():
        if reason != encoding.choice.time.verdict:  # that of the product itself comes below
            line("", reason)
    line(
        "block",
        f"{run.block_rows} x {columns} {run.block_dtype}, {size(stored.block_bytes)}, in "
        f"{stored.objects_per_worker} tile(s) of {run.tile_rows} x {run.tile_columns}, "
        f"{size(stored.tile_bytes)}",
    )
    line(
        "stored",
        f"{stored.objects} objects, {size(stored.storage_bytes)}: ${run.encode_cost.total:.5f} to "
        f"write once, ${run.storage_month.total:.5f} a month",
    )
    if encoding:
        spool = f" and {size(encoding.spool_bytes)} of disk" if encoding.spool_bytes else ""
        line("encode here", f"{size(encoding.memory)} of memory{spool}, about "
             f"{encoding.encode_seconds:.0f} s, of which {encoding.upload_seconds:.0f} s for the "
             f"upload, ${encoding.encode_cost.total:.5f}")  # fmt: skip
        for name, text in _encode_on_lambda(encoding):
            line(name, text)
    line("worker memory", f"{size(run.worker_memory)} of {run.worker_memory_mb} MB")
    for name, text in decoding_lines(run):
        line(name, text)
    line(
        "requests",
        f"{usage.invokes} invocations, S3: {usage.puts} PUT, {usage.gets} GET, {usage.lists} LIST",
    )
    seconds = usage.worker_gb_seconds + usage.coordinator_gb_seconds + usage.decode_gb_seconds
    of = f"prices of {run.run_cost.prices.region}, {run.run_cost.prices.date}"
    line("cost", f"${run.run_cost.total:.5f} a product, {seconds:.1f} GB-s ({of})")
    if usage.transfer_out_gb:
        line("", f"of that ${usage.transfer_out_gb * run.run_cost.prices.transfer_out_gb:.5f} for "
             f"{size(int(usage.transfer_out_gb * 2**30))} out of AWS; none in the region or with "
             "--on lambda")  # fmt: skip
    line(
        "arrivals needed",
        f"{run.arrivals_mean:.1f} of {run.workers * r} on average, {run.arrivals_p99} at the 99th "
        "percentile",
    )
    line("expected time", f"{time.coded:.2f} s with coding (99 %: {time.coded_p99:.2f} s)")
    line("", f"{time.uncoded:.2f} s without (99 %: {time.uncoded_p99:.2f} s), under {time.delays}")
    line("", time.judgement)
    for note in run.notes:
        if note != time.verdict:
            line("note", note)


def line(name: str, text: str) -> None:
    """Print a figure behind its name."""
    click.echo(f"{name:<16} {text}")


def count(number: int, what: str) -> str:
    """A number of things."""
    return f"{number} {what}{'s' if number != 1 else ''}"


def decoding_lines(run: RunPlan | PairPlan) -> Iterator[tuple[str, str]]:
    """How the product is put together, where that is worth a line; and by functions beside it."""
    plan, other = run.decode, run.decode_lambda
    if plan.where == "lambda":
        yield "decode on Lambda", _by_functions(plan)
    elif plan.where == "windows":
        pieces = ", through pieces" if plan.pieces else ""
        yield (
            "decode",
            f"{plan.windows} windows of the answers in S3{pieces}, within {size(plan.memory)}: "
            f"about {plan.seconds:.0f} s after the last answer",
        )
    elif other is not None:
        yield (
            "decode",
            f"{size(plan.memory)} of memory, about {plan.seconds:.0f} s after the last answer "
            "(less memory: --coordinator-memory)",
        )
    if other is not None:
        yield "decode on Lambda", f"{_by_functions(other)} (--decode lambda)"


def _by_functions(plan: DecodePlan) -> str:
    """What decode functions do and cost."""
    usage = plan.usage
    pieces = ", through pieces" if plan.pieces else ""
    calls, windows = count(plan.calls, "call"), count(plan.windows, "window")
    return (
        f"{calls} of {plan.function_memory_mb} MB, {windows}{pieces}, "
        f"about {plan.seconds:.0f} s, ${plan.cost.total:.5f}: {usage.gets} GET, {usage.puts} PUT, "
        f"{usage.decode_gb_seconds:.0f} GB-s"
    )


def _encode_on_lambda(encoding: EncodingPlan) -> Iterator[tuple[str, str]]:
    """The lines about encode functions."""
    there = encoding.on_lambda
    if there is None:
        yield "encode on Lambda", f"not possible: {encoding.not_on_lambda}"
        return
    usage = there.usage
    spool = f" and {size(there.spool_bytes)} of disk" if there.spool_bytes else ""
    yield (
        "encode on Lambda",
        f"{there.scan_calls} calls to check, {there.write_calls} to write, {there.memory_mb} MB"
        f"{spool} each, about {there.seconds:.0f} s, ${there.cost.total:.5f}",
    )
    yield (
        "",
        f"reads {size(there.bytes_read)} by {usage.gets} GET, writes {size(there.bytes_written)} "
        f"by {usage.puts} PUT, {usage.worker_gb_seconds:.0f} GB-s",
    )
    tile = encoding.stored.tile_bytes
    if there.tile_bytes < tile // 2:
        yield (
            "",
            f"in {there.tiles} tiles a block of {size(there.tile_bytes)}, which is what "
            f"{there.memory_mb} MB hold of {encoding.manifest.blocks} blocks" + _more_memory(there),
        )


def _more_memory(there: EncodeOnLambda) -> str:
    """What would make the tiles as large as they get."""
    if there.full_memory_mb > MOST_MB:
        return ""
    return f"; EncodeMemory={there.full_memory_mb} would hold whole ones"
