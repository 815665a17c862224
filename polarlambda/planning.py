"""What a product will need, cost and take, before a matrix is encoded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from polarlambda.connect import DEPLOYED
from polarlambda.decoder import planned_decoding
from polarlambda.encode_plan import with_functions
from polarlambda.errors import BadInput
from polarlambda.sizes import parse_size

if TYPE_CHECKING:
    from coordinator.planning import EncodingPlan, Platform, Prices, RunPlan
    from encoder import Source
    from polarcodes.delays import DelayModel
    from polarlambda.encoding import MatrixSource
    from polarlambda.vectors import Vector


def plan_matrix(
    source: MatrixSource | None = None,
    *,
    shape: tuple[int, int] | None = None,
    dtype: str | None = None,
    workers: int | None = None,
    data_blocks: int | None = None,
    redundancy: float | None = None,
    code: str = "auto",
    code_options: Mapping[str, Any] | None = None,
    subtasks: int | Literal["auto"] = 1,
    per_object: int = 1,
    memory: int | str = "1GB",
    encode_memory_mb: int | None = None,
    encode_disk_mb: int | None = None,
    x_columns: int = 1,
    x_dtype: str = "float64",
    delays: str = "lambda-rare-tail",
    worker_memory_mb: int | None = None,
    on: Literal["local", "lambda"] = "local",
    decode: Literal["local", "lambda"] = "local",
    result: Literal["npy", "zarr"] = "npy",
    coordinator_memory: int | str | None = None,
    concurrency: int | None = None,
    prices: str | os.PathLike[str] | None = None,
    region: str | None = None,
) -> tuple[EncodingPlan, RunPlan]:
    """Plan the encoding of a matrix, and a product with an x of ``x_columns`` columns.

    The matrix is ``source`` (of which only the header is read) or its ``shape`` and ``dtype``.
    ``decode``, ``result`` and ``coordinator_memory`` are those of `CodedMatrix.plan`,
    ``encode_memory_mb`` and ``encode_disk_mb`` are the encode function's (default: the template's),
    ``concurrency`` the account's (1,000 if not given), ``prices`` a file as in docs/cost.md and
    ``region`` one of its regions (default us-east-1). Needs no AWS, unless ``source`` is an s3://
    URL; writes and invokes nothing. Raises `BadInput`, `PlanRefused` (it names the number to
    change), `CodeError`, `SourceRefused`.
    """
    from coordinator.planning import choose_subtasks, plan_encoding, plan_multiply
    from encoder import check_subtasks

    if subtasks != "auto":
        check_subtasks(subtasks, per_object)
    wish, coordinator_mb = planned_decoding(decode, result, coordinator_memory, on)
    model, platform, table = delay_model(delays), assumed(concurrency), price_list(prices, region)
    order = "C"
    if source is not None:
        with _open(source) as opened:
            shape, dtype, order = opened.shape, opened.dtype.str, opened.order
    if shape is None or dtype is None:
        raise BadInput("a plan needs a matrix: a file, or its shape and its dtype")
    memory_mb = worker_memory_mb or DEPLOYED.memory_mb
    why: tuple[str, ...] = ()
    if subtasks == "auto":
        picked = choose_subtasks(
            shape,
            dtype,
            workers=workers,
            data_blocks=data_blocks,
            redundancy=redundancy,
            code=code,
            options=code_options,
            per_object=per_object,
            k=x_columns,
            worker_memory_mb=memory_mb,
            delays=model,
            platform=platform,
            prices=table,
        )
        subtasks, workers, why = picked.subtasks, picked.code.workers, (picked.explanation,)
    encoding = plan_encoding(
        shape,
        dtype,
        workers=workers,
        data_blocks=data_blocks,
        redundancy=redundancy,
        code=code,
        options=code_options,
        subtasks=subtasks,
        per_object=per_object,
        memory=parse_size(memory),
        order=order,
        worker_memory_mb=memory_mb,
        delays=model,
        platform=platform,
        prices=table,
    )
    run = plan_multiply(
        encoding.manifest,
        (shape[1], x_columns),
        x_dtype,
        worker_memory_mb=memory_mb,
        worker_timeout=DEPLOYED.timeout,
        on=on,
        coordinator_memory_mb=coordinator_mb,
        wish=wish,
        delays=model,
        platform=platform,
        prices=table,
    )
    encoding = with_functions(encoding, table, platform, encode_memory_mb, encode_disk_mb)
    choice = replace(encoding.choice, explanation=(*why, *encoding.choice.explanation))
    return replace(encoding, choice=choice), run


def plan_encoded(
    name: str,
    x: Vector | None = None,
    *,
    x_columns: int = 1,
    x_dtype: str = "float64",
    delays: str = "lambda-rare-tail",
    worker_memory_mb: int | None = None,
    on: Literal["local", "lambda"] = "local",
    decode: Literal["local", "lambda"] = "local",
    result: Literal["npy", "zarr"] = "npy",
    coordinator_memory: int | str | None = None,
    concurrency: int | None = None,
    prices: str | os.PathLike[str] | None = None,
    region: str | None = None,
    **place: str | None,
) -> RunPlan:
    """Plan a product with the encoded matrix ``name``, see `CodedMatrix.plan`."""
    from polarlambda.matrix import CodedMatrix

    with CodedMatrix.open(name, **place) as matrix:
        return matrix.plan(
            x,
            x_columns=x_columns,
            x_dtype=x_dtype,
            delays=delays,
            worker_memory_mb=worker_memory_mb,
            on=on,
            decode=decode,
            result=result,
            coordinator_memory=coordinator_memory,
            concurrency=concurrency,
            prices=prices,
            region=region,
        )


def assumed(concurrency: int | None) -> Platform:
    """The platform with an account's concurrency, its default if None. Raises `PlanRefused`."""
    from coordinator.planning import PlanRefused, Platform

    if concurrency is None:
        return Platform()
    if concurrency < 1:
        reason = "must be the number of environments that the account may run at once"
        raise PlanRefused("concurrency", concurrency, Platform().concurrency, reason)
    return Platform(concurrency=concurrency)


def price_list(
    path: str | os.PathLike[str] | None, region: str | None, architecture: str = "x86_64"
) -> Prices:
    """Prices of a region from a file (`coordinator.price_table`) or the shipped table.

    Without a region: the only one of the file, else us-east-1. Raises `BadInput`.
    """
    from coordinator.price_table import PricesError, read_table
    from coordinator.prices import load_prices

    try:
        table = read_table(Path(path).read_bytes(), str(path)) if path is not None else None
        if region is None and table is not None and len(table["regions"]) == 1:
            region = next(iter(table["regions"]))
        return load_prices(region or "us-east-1", architecture, table=table)
    except (PricesError, OSError) as error:
        raise BadInput(str(error)) from error


def delay_model(name: str) -> DelayModel:
    """The delay model of that name. Raises `BadInput`."""
    from polarcodes.delays import make_delays

    try:
        return make_delays(name)
    except ValueError as error:
        raise BadInput(str(error)) from error


def _open(source: MatrixSource) -> Source:
    from encoder import open_source

    if isinstance(source, str) and source.startswith("s3://"):
        from blockstore.connect import s3_client

        return open_source(source, s3_client())
    return open_source(source)
