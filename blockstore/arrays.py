"""Arrays as .npy objects: real numbers only, nothing pickled, every length checked.

Headers are written in format version 1, C order, little endian, padded to a multiple of 64 bytes;
versions 1 to 3, both orders and both endiannesses are read.
"""

from __future__ import annotations

import ast
import hashlib
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from blockstore.errors import ArrayRefused, CorruptObject

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from blockstore.bucket import Bucket

MAGIC = b"\x93NUMPY"
MAX_HEADER = 65_536  # a plain array's header has 128 bytes; longer ones belong to structured types
PREAMBLE = 12  # magic, version, header length: enough bytes to know how long the header is

_PARSER = threading.Lock()  # CPython 3.11 counts the parser's depth for all threads together

_FIXES = {
    "O": "object arrays are stored as pickles, which can run code when read; save numbers instead",
    "V": "structured arrays have no matrix product; save one numeric field as a 2-D array",
    "U": "text has no matrix product; convert it to numbers",
    "S": "text has no matrix product; convert it to numbers",
    "M": "dates have no matrix product; convert them with .astype('int64') or to a float",
    "m": "time spans have no matrix product; convert them with .astype('int64') or to a float",
    "c": "complex numbers are not supported; encode .real and .imag as two matrices",
    "g": "extended precision is not portable; save it with .astype('float64')",
}


@dataclass(frozen=True)
class ArrayHeader:
    """What an .npy header says: dtype, shape, order, and the byte at which the data begin."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    offset: int

    @property
    def data_bytes(self) -> int:
        """Bytes of the entries, header not counted."""
        return prod(self.shape) * self.dtype.itemsize


def check_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return `dtype` if it is bool, an int or uint of any width, or float16/32/64 (any byte
    order); else raise `ArrayRefused` with what to do instead."""
    if dtype.names is not None or dtype.subdtype is not None:
        raise ArrayRefused(f"dtype {dtype}: {_FIXES['V']}")
    if dtype.kind in "biu" or (dtype.kind == "f" and dtype.itemsize in (2, 4, 8)):
        return dtype
    fix = _FIXES["g" if dtype.kind == "f" else dtype.kind] if dtype.kind in "OVUSMmcf" else ""
    raise ArrayRefused(f"dtype {dtype} is not a real number type: {fix or 'convert it to one'}")


def npy_header(dtype: DTypeLike, shape: tuple[int, ...], *, fortran: bool = False) -> bytes:
    """The .npy header (version 1) of a little-endian array."""
    kind = check_dtype(np.dtype(dtype)).newbyteorder("<")
    fields = f"{{'descr': {kind.str!r}, 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}"
    length = -(-(len(MAGIC) + 4 + len(fields) + 1) // 64) * 64
    padded = fields.ljust(length - len(MAGIC) - 4 - 1) + "\n"
    return MAGIC + b"\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode("latin1")


def header_bytes(head: bytes) -> int:
    """Total length of the header that begins with `head` (at least `PREAMBLE` bytes of it)."""
    if head[:4] == b"PK\x03\x04":
        raise ArrayRefused("this is an .npz archive: take one array out of it with numpy.save")
    if head[:1] == b"\x80" and head[:6] != MAGIC:
        raise ArrayRefused("this is a pickle, which can run code when read: use numpy.save")
    if head[:6] != MAGIC[: len(head)]:
        raise ArrayRefused("this is not an .npy file (its first bytes differ): use numpy.save")
    if len(head) < PREAMBLE:
        raise ArrayRefused(f"truncated .npy: {len(head)} bytes, shorter than any header")
    version = (head[6], head[7])
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ArrayRefused(f".npy version {version[0]}.{version[1]} is not known: use 1.0 to 3.0")
    width = 2 if version == (1, 0) else 4
    length = int.from_bytes(head[8 : 8 + width], "little")
    if length > MAX_HEADER:
        raise ArrayRefused(f".npy header of {length} bytes: at most {MAX_HEADER} are accepted")
    return 8 + width + length


def parse_header(head: bytes) -> ArrayHeader:
    """Read an .npy header from the first bytes of a file or object.

    Raises `ArrayRefused` if it is not one, is cut short, or describes anything but real numbers.
    """
    offset = header_bytes(head)
    if len(head) < offset:
        raise ArrayRefused(f"truncated .npy: {len(head)} bytes of a {offset}-byte header")
    version = head[6]
    start = 10 if version == 1 else 12
    text = head[start:offset].decode("utf8" if version == 3 else "latin1", errors="replace")
    try:
        with _PARSER:
            fields = ast.literal_eval(_without_long_suffix(text).strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as exc:
        raise ArrayRefused(f".npy header cannot be read: {exc}") from exc
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise ArrayRefused(".npy header must have exactly descr, fortran_order and shape")
    descr, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
    if isinstance(descr, list):
        raise ArrayRefused(f"dtype {descr}: {_FIXES['V']}")
    if not isinstance(fortran, bool):
        raise ArrayRefused(f".npy header: fortran_order must be True or False, got {fortran!r}")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ArrayRefused(f".npy header: shape must be a tuple of sizes, got {shape!r}")
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError) as exc:
        raise ArrayRefused(f".npy header: dtype {descr!r} is not known") from exc
    return ArrayHeader(check_dtype(dtype), shape, fortran, offset)


def _without_long_suffix(text: str) -> str:
    return re.sub(r"(?<=\d)L(?=[,)\s])", "", text)  # Python 2 wrote shapes as (10L, 5L)


def byte_view(a: NDArray[Any]) -> memoryview:
    """The bytes of a C-contiguous array, without a copy."""
    return memoryview(a.reshape(-1).view(np.uint8).data)


def encode_array(a: NDArray[Any]) -> bytes:
    """The .npy bytes of an array (little endian, C order)."""
    canonical = np.ascontiguousarray(a, dtype=a.dtype.newbyteorder("<"))
    return b"".join((npy_header(a.dtype, a.shape), byte_view(canonical)))


def decode_array(
    body: bytes | bytearray,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
) -> NDArray[Any]:
    """The array in `body`, without a copy (read-only if `body` is).

    Raises `ArrayRefused` for what is not a numeric .npy and `CorruptObject` if its length, or the
    shape or dtype expected, differ.
    """
    header = parse_header(bytes(body[: MAX_HEADER + PREAMBLE]))
    if len(body) != header.offset + header.data_bytes:
        raise CorruptObject(
            f".npy of shape {header.shape} {header.dtype} needs {header.data_bytes} bytes of data, "
            f"the body has {len(body) - header.offset}"
        )
    if shape is not None and header.shape != tuple(shape):
        raise CorruptObject(f"array of shape {tuple(shape)} expected, found {header.shape}")
    if dtype is not None and header.dtype != np.dtype(dtype):
        raise CorruptObject(f"array of dtype {np.dtype(dtype)} expected, found {header.dtype}")
    flat = np.frombuffer(body, dtype=header.dtype, offset=header.offset)
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


def put_array(
    bucket: Bucket,
    key: str,
    a: NDArray[Any],
    *,
    metadata: Mapping[str, str] | None = None,
    if_none_match: bool = False,
) -> bool:
    """Write an array as .npy; False if `if_none_match` and there was one already."""
    return bool(bucket.put(key, encode_array(a), metadata=metadata, if_none_match=if_none_match))


def put_first(
    bucket: Bucket, key: str, a: NDArray[Any], *, writer: str, metadata: Mapping[str, str]
) -> bool:
    """Write an array unless another writer has written one; whether the one there is ours.

    The SDK may send a PUT twice, of which the second one finds the first: `writer`, a name that no
    other process has, is kept with the array and tells the two cases apart.
    """
    own = {**metadata, "writer": writer}
    if put_array(bucket, key, a, metadata=own, if_none_match=True):
        return True
    return bucket.metadata(key).get("writer") == writer


def get_array(
    bucket: Bucket,
    key: str,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
) -> NDArray[Any]:
    """Read an .npy object, checking length and, if given, shape and dtype."""
    return located(bucket, key, bucket.get(key), shape, dtype)


def located(
    bucket: Bucket,
    key: str,
    body: bytes,
    shape: tuple[int, ...] | None,
    dtype: DTypeLike | None,
) -> NDArray[Any]:
    """`decode_array` whose errors name the object."""
    try:
        return decode_array(body, shape=shape, dtype=dtype)
    except (CorruptObject, ArrayRefused) as exc:
        raise type(exc)(f"s3://{bucket.name}/{key}: {exc}") from exc


def array_digest(a: NDArray[Any]) -> str:
    """ "sha256:..." of dtype, shape and values (little endian, C order), independent of layout."""
    digest = hashlib.sha256(npy_header(a.dtype, a.shape))
    canonical = np.ascontiguousarray(a, dtype=a.dtype.newbyteorder("<"))
    digest.update(byte_view(canonical))
    return "sha256:" + digest.hexdigest()
