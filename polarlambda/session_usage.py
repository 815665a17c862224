"""What a session has used so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coordinator.cost import Cost, Usage

MB = 1e6


@dataclass(frozen=True)
class SessionUsage:
    """products : that have ended; usage : requests by kind and GB-seconds; bytes_read : by workers
    from S3 (blocks and x); bytes_written : answers; cost : the bill.
    """

    products: int
    usage: Usage
    bytes_read: int
    bytes_written: int
    cost: Cost

    @property
    def requests(self) -> int:
        """S3 requests and invocations."""
        used = self.usage
        return used.puts + used.gets + used.lists + used.invokes

    @property
    def gb_seconds(self) -> float:
        """Of workers and of a coordinator on Lambda."""
        return self.usage.worker_gb_seconds + self.usage.coordinator_gb_seconds

    @property
    def dollars(self) -> float:
        """The bill's total."""
        return self.cost.total

    def to_json(self) -> dict[str, Any]:
        """Plain JSON of every figure."""
        return {
            "products": self.products,
            "requests": self.requests,
            "usage": self.usage.to_json(),
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "gb_seconds": self.gb_seconds,
            "dollars": self.dollars,
            "cost": self.cost.to_json(),
        }

    def __str__(self) -> str:
        return (
            f"{self.products} products: {self.requests} requests, "
            f"{self.bytes_read / MB:,.1f} MB read, {self.gb_seconds:,.1f} GB-seconds, "
            f"${self.dollars:.6f}"
        )
