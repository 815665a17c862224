"""Encode a matrix: choose the code, explain the choice, stream coded blocks to the bucket."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from polarlambda.connect import Place, open_bucket
from polarlambda.encode_function import remote_engine
from polarlambda.errors import BadInput
from polarlambda.sizes import parse_size

if TYPE_CHECKING:
    import numpy as np

    from blockstore.manifest import Manifest
    from coordinator.planning import CodeChoice
    from encoder import EncodeProgress
    from polarcodes import ErasureCode
    from polarcodes.schedules import ScheduleCode

    MatrixSource: TypeAlias = np.ndarray[Any, Any] | str | os.PathLike[str]


def encode(
    source: MatrixSource,
    name: str,
    *,
    workers: int | None = None,
    data_blocks: int | None = None,
    redundancy: float | None = None,
    code: str = "auto",
    code_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    subtasks: int | Literal["auto"] = 1,
    per_object: int = 1,
    schedule: str | None = None,
    memory: int | str = "1GB",
    replace: bool = False,
    images: bool = False,
    size: int | None = None,
    skip_broken: bool = False,
    columns: Sequence[str] = (),
    fill_missing: bool = False,
    derive: Literal["transpose", "gram"] | None = None,
    on: Literal["local", "lambda"] = "local",
    on_choice: Callable[[CodeChoice], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    on_progress: Callable[[EncodeProgress], None] | None = None,
    **place: str | None,
) -> Manifest:
    """Encode the matrix ``source`` (n, d) under ``name``; returns its manifest.

    Parameters
    ----------
    source : array, or path or s3:// URL of an .npy file, a Zarr array or Parquet files, or the path
        of images (docs/sources.md); any real dtype, order and endianness
    workers : N; data_blocks : s; redundancy : (N - s) / N instead of s. What is not given is chosen
        by expected time; ``on_choice`` gets the choice with its explanation
    code, code_options, seed : one of `polarcodes.CODE_NAMES` with its options (``{"rounds": 1}``)
        and the seed of what is random in it; "auto": what measurements recommend for dtype, N and
        subtasks (docs/adr/0004-default-code.md)
    subtasks : r, the blocks of each worker, which sends each answer the moment it is done. The code
        has N r blocks over s r data blocks; redundancy costs storage then, and no time. "auto": by
        expected time, with the choice explained
    schedule : name of a schedule (`polarcodes.schedules`) instead of a code: ``workers`` tasks, and
        ``subtasks`` codewords of them for each worker. For runs until "tasks=X"
    per_object : consecutive answers that share an object in the bucket, a divisor of r
    memory : most bytes the encoder may hold ("1GB", "512MiB")
    replace : overwrite a matrix of that name that has other content
    images, size, skip_broken : the source is a folder or shards of JPEG and PNG images, which are
        resized and cut to ``size`` x ``size``; broken ones are left out instead of refused
    columns : of Parquet files, in this order; all of them without
    fill_missing : chunks that a Zarr array does not store have its fill value
    on : where both passes run: in this process, or in the deployed encode function, for an .npy
        object below inputs/ of the stack's bucket; ``memory`` is the function's then
    on_note : gets sentences about the source, such as which images were left out
    derive : "transpose" encodes source^T, "gram" source^T source (d, d), for training
        (docs/training.md)
    place : stack=, bucket=: see `polarlambda.connect.Place`

    Raises, before anything is written: `BadInput`, `NameRefused`, `ArrayRefused`, `CodeError`,
    `SubtasksRefused`, `PlanRefused`, the encoder's refusals (`NameTaken`, NaN or Inf, ...),
    `StoreError`.
    Cost: the source is read twice; N / s times its coded size is uploaded.
    """
    from blockstore.keys import validate_name
    from encoder import SourceOptions, check_subtasks, derived_shape, open_source, spool_folder
    from encoder import encode as encode_blocks

    validate_name(name)
    limit = parse_size(memory)
    options = SourceOptions(images, size, skip_broken, tuple(columns), fill_missing)
    if subtasks != "auto":
        check_subtasks(subtasks, per_object)
    elif schedule is not None:
        raise BadInput("a schedule needs subtasks: the number of codewords of each worker")
    settings = Place(**place).settings()
    bucket = open_bucket(settings)
    engine = None
    if on == "lambda":
        if derive is not None:
            raise BadInput(f"{derive} is made on this machine: leave out --on lambda")
        engine = remote_engine(bucket, settings.need("encode"), on_progress)
        limit = engine.memory
    with open_source(source, bucket.client, options) as opened:
        if engine is not None:
            engine.check(opened)
        opened.prepare(limit, spool_folder(None), on_progress)
        for note in opened.notes if on_note is not None else ():
            on_note(note)
        shape, dtype = derived_shape(opened.shape, opened.dtype, derive)
        if schedule is not None:
            if (code, code_options or None, data_blocks, redundancy) != ("auto", None, None, None):
                raise BadInput(
                    "a schedule is a code of its own: leave out code and its options, data_blocks, "
                    "redundancy"
                )
            scheduled = scheduled_code(schedule, workers, subtasks, seed)
            per_object = subtasks if scheduled.schedule.sending == "together" else per_object
            built: ErasureCode = scheduled
        else:
            choice, subtasks = _choose(
                shape,
                dtype,
                subtasks,
                per_object,
                {"workers": workers, "data_blocks": data_blocks, "redundancy": redundancy},
                {"code": code, "options": code_options},
            )
            built = choice.make(seed)
            if on_choice is not None:
                on_choice(choice)
        return encode_blocks(
            opened,
            bucket,
            name,
            built,
            memory=limit,
            replace=replace,
            progress=on_progress,
            subtasks=subtasks,
            per_object=per_object,
            derive=derive,
            engine=engine,
        )


def _choose(
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    subtasks: int | Literal["auto"],
    per_object: int,
    sizes: Mapping[str, Any],
    family: Mapping[str, Any],
) -> tuple[CodeChoice, int]:
    """The choice of the code, and the number of tasks for each worker."""
    from coordinator.planning import choose_code, choose_subtasks

    if subtasks == "auto":
        picked = choose_subtasks(shape, dtype, per_object=per_object, **sizes, **family)
        return picked.explained, picked.subtasks
    return choose_code(shape, dtype, subtasks=subtasks, **sizes, **family), subtasks


def scheduled_code(name: str, workers: int | None, subtasks: int, seed: int) -> ScheduleCode:
    """The code of a schedule; raises `BadInput`, and `CodeError` for K or r it cannot serve."""
    from polarcodes.schedules import ScheduleCode, make_schedule

    if workers is None:
        raise BadInput(f"the schedule {name!r} needs workers: its number of tasks")
    options = {"seed": seed} if name in ("rcsc", "mcc", "gradient") else {}
    return ScheduleCode(make_schedule(name, workers, subtasks, **options))
