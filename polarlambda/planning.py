"""What a product will need, cost and take, before a matrix is encoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from polarlambda.connect import DEPLOYED
from polarlambda.errors import BadInput
from polarlambda.sizes import parse_size

if TYPE_CHECKING:
    from coordinator.planning import EncodingPlan, RunPlan
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
    x_columns: int = 1,
    x_dtype: str = "float64",
    delays: str = "lambda-rare-tail",
    worker_memory_mb: int | None = None,
    on: Literal["local", "lambda"] = "local",
) -> tuple[EncodingPlan, RunPlan]:
    """Plan the encoding of a matrix, and a product with an x of ``x_columns`` columns.

    The matrix is ``source`` (of which only the header is read) or its ``shape`` and ``dtype``.
    Needs no AWS, unless ``source`` is an s3:// URL; writes and invokes nothing. Raises `BadInput`,
    `PlanRefused` (it names the number to change), `CodeError`, `SourceRefused`.
    """
    from coordinator.planning import choose_subtasks, plan_encoding, plan_multiply
    from encoder import check_subtasks

    if subtasks != "auto":
        check_subtasks(subtasks, per_object)
    model = delay_model(delays)
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
    )
    run = plan_multiply(
        encoding.manifest,
        (shape[1], x_columns),
        x_dtype,
        worker_memory_mb=memory_mb,
        worker_timeout=DEPLOYED.timeout,
        on=on,
        delays=model,
    )
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
        )


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
