"""One JPEG or PNG file -> size x size x 3 bytes."""

from __future__ import annotations

import io
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("JPEG", "PNG")
# A pixel while it is decoded and resized: the file's own mode, RGB in four bytes, the first pass of
# the resampling.
PIXEL_BYTES = 12


class BrokenImage(Exception):
    """A file that is no whole image: the message says why."""


class Room:
    """Memory shared by the threads that decode: an image waits until its pixels fit."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = size
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, count: int) -> Iterator[None]:
        """Hold `count` bytes, at most `size`, for the length of a block."""
        with self._changed:
            self._changed.wait_for(lambda: self._free >= count)
            self._free -= count
        try:
            yield
        finally:
            with self._changed:
                self._free += count
                self._changed.notify_all()


def decode(body: bytes, size: int, room: Room) -> NDArray[np.uint8]:
    """The image as RGB (size, size, 3): the shorter side resized to `size`, the centre cut out.

    The pixels are those of torchvision's Resize(size) and CenterCrop(size) on a PIL image: bilinear
    with antialiasing; EXIF rotation is not applied, transparency is dropped, 16-bit grey becomes
    8-bit. Raises `BrokenImage`.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(body), formats=FORMATS) as image:
            need = image.width * image.height * PIXEL_BYTES
            if need > room.size:
                raise BrokenImage(
                    f"its {image.width} x {image.height} pixels take {need:,} bytes while they "
                    f"are decoded, more than the {room.size:,} that are left of the memory given"
                )
            with room.taken(need):
                return _cut(_rgb(image), size)
    except (
        OSError,
        ValueError,
        SyntaxError,  # how Pillow calls a broken PNG
        EOFError,
        IndexError,
        struct.error,
        Image.DecompressionBombError,
    ) as exc:
        raise BrokenImage(" ".join(str(exc).split()) or type(exc).__name__) from exc


def _rgb(image: Image) -> Any:
    from PIL.Image import fromarray

    image.load()
    if image.mode.startswith("I"):  # 16-bit grey, which Pillow would clip at 255
        grey = np.asarray(image).astype(np.uint32) >> 8
        return fromarray(grey.clip(0, 255).astype(np.uint8)).convert("RGB")
    if image.mode == "P" and "transparency" in image.info:
        return image.convert("RGBA").convert("RGB")
    return image.convert("RGB")


def _cut(image: Image, size: int) -> NDArray[np.uint8]:
    from PIL.Image import Resampling

    width, height = image.size
    if width <= height:
        resized = (size, max(size, size * height // width))
    else:
        resized = (max(size, size * width // height), size)
    if resized != image.size:
        image = image.resize(resized, Resampling.BILINEAR)
    left, top = (round((length - size) / 2.0) for length in resized)
    return np.asarray(image.crop((left, top, left + size, top + size)))
