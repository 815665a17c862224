"""How a product is wished to be put together, and what that will take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from coordinator.cost import Cost, Usage

__all__ = ["DecodePlan", "DecodeWish"]


@dataclass(frozen=True)
class DecodeWish:
    """How the product is to be made: `decode` "local" or "lambda", `result` "npy" or "zarr";
    memory : bytes of the coordinator, None for as many as it takes; function_memory_mb, most : of
    the decode function, and how many of them work at once."""

    decode: str = "local"
    result: str = "npy"
    memory: int | None = None
    function_memory_mb: int = 2_048
    most: int = 64


@dataclass(frozen=True)
class DecodePlan:
    """Sizes in bytes, times in seconds. where: "memory", "windows" (of answers in the store) or
    "lambda"; memory: predicted peak of the coordinator; answers: that are read; window_rows: of
    every block at a time.

    `calls` of the decode function, the longest of which takes `call_seconds`; `seconds` from the
    decisive answer to the product. `read` and `written` by whoever decodes, `received` by the
    coordinator, of all answers. `usage` is what the run uses besides the answers' arrival.
    """

    where: str
    result: str
    memory: int
    function_memory_mb: int
    answers: int
    windows: int
    window_rows: int
    parts: int
    pieces: int
    calls: int
    call_seconds: float
    seconds: float
    read: int
    written: int
    received: int
    usage: Usage
    cost: Cost

    def to_json(self) -> dict[str, Any]:
        """Plain JSON of every figure."""
        figures = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return figures | {"usage": asdict(self.usage), "cost": self.cost.to_json()}
