"""Sizes in bytes as people write them: "1GB", "512 MiB", "64k", 1000000."""

from __future__ import annotations

import re

from polarlambda.errors import BadInput

_FACTORS = {
    "": 1,
    "k": 1000,
    "ki": 1 << 10,
    "m": 1000**2,
    "mi": 1 << 20,
    "g": 1000**3,
    "gi": 1 << 30,
    "t": 1000**4,
    "ti": 1 << 40,
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


def parse_size(text: str | int, *, argument: str = "memory") -> int:
    """Bytes meant by ``text``; ``1GB`` is 10^9 bytes and ``1GiB`` is 2^30. Raises `BadInput`."""
    match = _SIZE.fullmatch(str(text)) if not isinstance(text, bool) else None
    size = int(float(match[1]) * _FACTORS[(match[2] or "").lower()]) if match else 0
    if size < 1:
        raise BadInput(
            f"{argument} must be a positive size such as 1GB, 512MiB or 1000000, got {text!r}"
        )
    return size


def format_size(size: float) -> str:
    """``size`` bytes with three significant digits and a decimal unit, e.g. ``12.3 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.2f} TB"
