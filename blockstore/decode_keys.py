"""Keys of a result that is written in parts, and of what decode functions share.

runs/<run>/result.zarr/zarr.json, c/<chunk>[/0]
runs/<run>/plan/<decoding>/job.json, <array>.npy
runs/<run>/plan/<decoding>/pieces/<window>.<group>.npy
runs/<run>/plan/<decoding>/done/<stage>.<number>.json, errors/<stage>.<number>.<attempt>.json
"""

from __future__ import annotations

from blockstore.keys import RUNS, final_result_key


def zarr_prefix(run: str) -> str:
    """Prefix of a result that is a Zarr array."""
    return f"{RUNS}{run}/result.zarr/"


def product_key(run: str, kind: str) -> str:
    """Key of a run's product, which is "npy", or prefix of one that is "zarr"."""
    return final_result_key(run) if kind == "npy" else zarr_prefix(run)


def zarr_metadata_key(prefix: str) -> str:
    """Key of the description of a Zarr array, written last."""
    return f"{prefix}zarr.json"


def zarr_chunk_key(prefix: str, chunk: int, dimensions: int) -> str:
    """Key of a chunk of rows of a Zarr array of one or two dimensions."""
    return f"{prefix}c/{chunk}" + ("/0" if dimensions == 2 else "")


def decoding_prefix(run: str, decoding: str) -> str:
    """Prefix of everything of one decoding that is shared through the store."""
    return f"{RUNS}{run}/plan/{decoding}/"


def job_key(run: str, decoding: str) -> str:
    """Key of what is to be decoded, and how."""
    return f"{RUNS}{run}/plan/{decoding}/job.json"


def plan_array_key(run: str, decoding: str, name: str) -> str:
    """Key of an array of the decoding plan."""
    return f"{RUNS}{run}/plan/{decoding}/{name}.npy"


def piece_key(run: str, decoding: str, window: int, group: int) -> str:
    """Key of decoded rows that wait for others to make up a part of the result."""
    return f"{RUNS}{run}/plan/{decoding}/pieces/{window:05d}.{group:05d}.npy"


def done_prefix(run: str, decoding: str, stage: str) -> str:
    """Prefix of the records of the ranges of a stage that are done."""
    return f"{RUNS}{run}/plan/{decoding}/done/{stage}."


def done_key(run: str, decoding: str, stage: str, number: int) -> str:
    """Key of the record that range `number` of a stage is done."""
    return f"{RUNS}{run}/plan/{decoding}/done/{stage}.{number:05d}.json"


def decode_error_prefix(run: str, decoding: str) -> str:
    """Prefix of what decode functions say went wrong."""
    return f"{RUNS}{run}/plan/{decoding}/errors/"


def decode_error_key(run: str, decoding: str, stage: str, number: int, attempt: int) -> str:
    """Key of the error record of an attempt at a range."""
    return f"{RUNS}{run}/plan/{decoding}/errors/{stage}.{number:05d}.{attempt}.json"
