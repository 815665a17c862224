"""How products larger than memory are made: the budget, and the deployed decode function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polarlambda.errors import BadInput
from polarlambda.settings import Settings
from polarlambda.sizes import parse_size

if TYPE_CHECKING:
    import numpy as np

    from blockstore.bucket import Bucket
    from blockstore.products import StoredProduct
    from coordinator.decode_fleet import DecodeFunctions
    from coordinator.decode_options import DecodeOptions
    from coordinator.decode_wish import DecodeWish

THREADS = 32
DEPLOYED_COORDINATOR_MB, DEPLOYED_DECODE_MB = 2_048, 2_048  # by template.yaml
SMALL = 64 << 20  # bytes of a product that a deployed coordinator made and that is read at once


def read_memory(memory: int | str | None) -> int | None:
    """Bytes of the coordinator, None for as many as it takes. Raises `BadInput`."""
    if memory is None:
        return None
    size = parse_size(memory)
    if size <= 0:
        raise BadInput(f"memory must be a size such as 500MB, got {memory!r}")
    return size


def decode_options(settings: Settings, decode: str, memory: int | None) -> DecodeOptions:
    """What `coordinator.run` is told of memory and of the decode function, which is looked up only
    if it is to be used."""
    from coordinator.decode_options import DecodeOptions

    return DecodeOptions(memory, find_decoder(settings) if decode == "lambda" else None)


def check_decoding_names(decode: str, result: str) -> None:
    """Raise `BadInput` unless that is who decodes, and that a kind of result."""
    from coordinator.decode_options import DECODERS, KINDS

    for name, value, known in (("decode", decode, DECODERS), ("result", result, KINDS)):
        if value not in known:
            raise BadInput(f"{name} must be one of {', '.join(known)}, got {value!r}")


def planned_decoding(
    decode: str, result: str, memory: int | str | None, on: str, function_mb: int | None = None
) -> tuple[DecodeWish, int]:
    """(what a plan is told of the decoding, MB of the coordinator function), for a coordinator of
    `memory`: that of this process, or the function's. Raises `BadInput`."""
    from coordinator.decode_wish import DecodeWish

    check_decoding_names(decode, result)
    size, megabytes = read_memory(memory), DEPLOYED_COORDINATOR_MB
    if on == "lambda" and size is not None:
        size, megabytes = None, size >> 20
    wish = DecodeWish(decode, result, size, function_mb or DEPLOYED_DECODE_MB)
    return wish, megabytes


def find_decoder(settings: Settings) -> DecodeFunctions:
    """The decode function that the settings name, checked to be there. Cost: two requests.

    Raises `SettingMissing`, `FunctionMissing`, `InvokeDenied`, `InvokeUnavailable`.
    """
    from coordinator.decode_fleet import DecodeFunctions
    from coordinator.invoker import LambdaInvoker, lambda_client
    from polarlambda.connect import worker_limits

    function = settings.need("decode")
    client = lambda_client(pool=THREADS)
    LambdaInvoker(client, function).check()
    limits = worker_limits(client, function)

    def invoker() -> LambdaInvoker:
        return LambdaInvoker(client, function, threads=THREADS, checked=True)

    return DecodeFunctions(invoker, limits.memory_mb << 20, limits.timeout)


def stored_value(
    bucket: Bucket, key: str, read_up_to: int = 0
) -> StoredProduct | np.ndarray[Any, Any]:
    """The product or estimate at `key`: read now if it has `read_up_to` bytes at most, else when
    it is looked at."""
    from blockstore.products import StoredProduct

    found = StoredProduct.open(bucket, key)
    return found.load() if found.data_bytes <= read_up_to else found
