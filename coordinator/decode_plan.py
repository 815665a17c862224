"""What putting a product together will take, once the decisive answers are there: in memory, by
windows, or by decode functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coordinator.budget import (
    FUNCTION_SHARE,
    chunk_memory,
    row_bytes,
    share_of,
    whole_memory,
    window_rows,
)
from coordinator.cost import Usage, cost
from coordinator.cut import cut_product
from coordinator.decode_counts import (
    call_requests,
    plan_arrays,
    stage_counts,
    target_requests,
    whole_requests,
)
from coordinator.decode_time import Product, Stage
from coordinator.decode_wish import DecodePlan, DecodeWish
from coordinator.form import AnswerForm
from coordinator.platform import MB, Platform
from coordinator.prices import Prices
from coordinator.refusals import PlanRefused
from coordinator.targets import WRITERS, Kind, part_rule
from polarcodes import ErasureCode

__all__ = ["plan_decode", "plan_decodings"]

MB_PER_GB = 1_024
HEAD_BYTES = 256  # that the coordinator reads of an answer which stays in the store
SEED = 2309_00682
LARGE = int(FUNCTION_SHARE * 2_048 * MB)  # that the template's coordinator can hold


def plan_decodings(
    form: AnswerForm,
    code: ErasureCode,
    answers: int,
    x_bytes: int,
    wish: DecodeWish,
    prices: Prices,
    platform: Platform,
    *,
    coordinator_mb: int = 0,
    spread: float = 0.0,
    compare: bool = True,
) -> tuple[DecodePlan, DecodePlan | None]:
    """(decoding as wished, the same by functions), the second for what a coordinator as deployed
    could not hold, if they are to be compared and functions can do it. See `plan_decode`."""
    if coordinator_mb:
        wish = replace(wish, memory=int(FUNCTION_SHARE * coordinator_mb * MB))

    def plan(asked: DecodeWish) -> DecodePlan:
        return plan_decode(
            form,
            code,
            answers,
            x_bytes,
            asked,
            prices,
            platform,
            coordinator_mb=coordinator_mb,
            spread=spread,
        )

    chosen = plan(wish)
    large = chosen.where == "windows" or whole_memory(form, x_bytes) > LARGE
    if not (compare and large) or chosen.where == "lambda":
        return chosen, None
    try:
        return chosen, plan(replace(wish, decode="lambda"))
    except PlanRefused:
        return chosen, None


def plan_decode(
    form: AnswerForm,
    code: ErasureCode,
    answers: int,
    x_bytes: int,
    wish: DecodeWish,
    prices: Prices,
    platform: Platform,
    *,
    coordinator_mb: int = 0,
    spread: float = 0.0,
) -> DecodePlan:
    """Plan what `coordinator.products` does with `answers` decisive answers.

    coordinator_mb : of the coordinator function, 0 for one in a process of its own; spread :
    seconds over which answers arrive, in which most of them are fetched already.

    Raises `PlanRefused` where not even one row of every block fits the memory.
    """
    there = coordinator_mb > 0
    made = Product(
        form,
        answers,
        platform.s3_read_rate if there else platform.client_rate,
        platform.s3_write_rate if there else platform.client_rate,
        platform.vcpus(coordinator_mb) if there else 1.0,
        platform,
    )
    if wish.decode == "lambda":
        return _by_functions(made, code, x_bytes, wish, prices)
    if wish.memory is None or whole_memory(form, x_bytes) <= wish.memory:
        return _in_memory(made, x_bytes, wish, prices, spread)
    return _by_windows(made, x_bytes, wish, wish.memory, prices)


def _in_memory(
    made: Product, x_bytes: int, wish: DecodeWish, prices: Prices, spread: float
) -> DecodePlan:
    form, platform = made.form, made.platform
    kind = _kind(wish)
    puts, lists = whole_requests(form, kind)
    late = max(form.answer_bytes / made.read_rate, made.read / made.read_rate - spread)
    solved = 8 * made.answers * form.length / platform.decode_rate / min(1.0, made.vcpus)
    written = made.written / made.write_rate + (puts - 1) * platform.s3_request_seconds / WRITERS
    return _plan(
        made,
        wish,
        prices,
        where="memory",
        memory=whole_memory(form, x_bytes),
        windows=1,
        window_rows=form.layout.block_rows,
        parts=max(1, puts - target_requests(kind, puts)[0]),
        seconds=3 * platform.s3_request_seconds + late + solved + written,
        received=form.shares.count * form.answer_bytes,
        usage=Usage(puts=puts, lists=lists),
    )


def _by_windows(
    made: Product, x_bytes: int, wish: DecodeWish, memory: int, prices: Prices
) -> DecodePlan:
    form, kind = made.form, _kind(wish)
    rows = min(window_rows(form, made.answers, memory, x_bytes), form.layout.block_rows)
    cut = cut_product(form.layout, form.dtype.itemsize, rows, part_rule(kind))
    counts = stage_counts(form.layout, cut, form.dtype)
    begun, pages = target_requests(kind, counts.parts)
    gets = counts.windows * made.answers
    request = made.platform.s3_request_seconds
    seconds = (6 + counts.windows) * request + made.windows(gets, counts.window_puts)
    again = made.written if counts.part_calls else 0
    if again:
        seconds += made.parts(counts)
    status, job, look = 1, 1, 1
    return _plan(
        made,
        wish,
        prices,
        where="windows",
        memory=_chunked(form, x_bytes, rows, made.answers),
        windows=counts.windows,
        window_rows=rows,
        parts=counts.parts,
        pieces=counts.window_puts if again else 0,
        seconds=seconds,
        read=made.read + again,
        written=made.written + again,
        received=form.shares.count * HEAD_BYTES + made.read + again,
        usage=Usage(
            puts=status + job + begun + counts.window_puts + counts.windows + counts.part_calls,
            gets=job + look + gets + counts.part_gets,
            lists=1 + pages,
        ),
    )


def _by_functions(
    here: Product, code: ErasureCode, x_bytes: int, wish: DecodeWish, prices: Prices
) -> DecodePlan:
    form, platform, kind = here.form, here.platform, _kind(wish)
    made = Product(
        form,
        here.answers,
        platform.s3_read_rate,
        platform.s3_write_rate,
        platform.vcpus(wish.function_memory_mb),
        platform,
    )
    memory = int(FUNCTION_SHARE * wish.function_memory_mb * MB)
    most = window_rows(form, made.answers, memory, 0)
    rows = share_of(form, made.answers, wish.most, most, part_rule(kind))
    rows = min(rows, form.layout.block_rows)
    cut = cut_product(form.layout, form.dtype.itemsize, rows, part_rule(kind))
    counts = stage_counts(form.layout, cut, form.dtype)
    begun, pages = target_requests(kind, counts.parts)
    arrays, array_bytes = plan_arrays(code, form, made.answers, SEED)
    gets = counts.windows * made.answers
    request = platform.s3_request_seconds
    opening = (2 + arrays) * request + array_bytes / made.read_rate
    work = made.windows(gets, counts.window_puts)
    stages = [Stage(counts.windows, wish.most, opening, work, platform.start_seconds)]
    again = made.written if counts.part_calls else 0
    if again:
        work = made.parts(counts)
        stages.append(Stage(counts.part_calls, wish.most, 2 * request, work, 0.0))
    calls = sum(stage.calls for stage in stages)
    longest = max(stage.longest(platform) for stage in stages)
    waited = sum(stage.seconds(platform) for stage in stages)
    busy = sum(stage.busy(platform) for stage in stages)
    status, job, look = 1, 1, 1
    own = Usage(
        puts=status + job + arrays + begun,
        gets=job + look + calls,  # the record of every call that is done
        lists=pages + sum(stage.lists(platform) for stage in stages),
    )
    functions = Usage(invokes=calls, decode_gb_seconds=busy * wish.function_memory_mb / MB_PER_GB)
    for name, stage in zip(("window", "part"), stages, strict=False):
        functions += call_requests(counts, name, stage.calls, stage.count, made.answers, arrays)
    return _plan(
        made,
        wish,
        prices,
        where="lambda",
        memory=chunk_memory(form, x_bytes),
        function_memory_mb=wish.function_memory_mb,
        windows=counts.windows,
        window_rows=rows,
        parts=counts.parts,
        pieces=counts.window_puts if again else 0,
        calls=calls,
        call_seconds=longest,
        seconds=(6 + arrays) * request + waited,
        read=made.read + again,
        written=made.written + again,
        received=form.shares.count * HEAD_BYTES,
        usage=own + functions,
    )


def _kind(wish: DecodeWish) -> Kind:
    return "zarr" if wish.result == "zarr" else "npy"


def _chunked(form: AnswerForm, x_bytes: int, rows: int, answers: int) -> int:
    """Peak bytes with windows of `rows` rows of every block."""
    return chunk_memory(form, x_bytes) + rows * row_bytes(form, answers)


def _plan(made: Product, wish: DecodeWish, prices: Prices, **figures: Any) -> DecodePlan:
    nothing = {"function_memory_mb": 0, "pieces": 0, "calls": 0, "call_seconds": 0.0}
    known = {"read": made.read, "written": made.written, "answers": made.answers}
    given = nothing | known | {"result": wish.result} | figures
    return DecodePlan(**given, cost=cost(figures["usage"], prices))
