"""What a session has used so far."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from blockstore.manifest import Manifest
    from coordinator.cost import Cost, Usage
    from coordinator.outcome import Outcome
    from coordinator.prices import Prices

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


class Tally:
    """Adds up the products of a session on `manifest`'s matrix."""

    def __init__(self, manifest: Manifest, *, resident: bool) -> None:
        from coordinator.cost import Usage

        self._manifest = manifest
        self._resident = resident
        self._products = self._x_bytes = self._answer_bytes = 0
        self._used = Usage()

    def add(self, outcome: Outcome, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Count a product with an x of this shape and dtype: every worker has read it."""
        from blockstore.tasks import compute_dtype

        manifest = self._manifest
        rows = manifest.block_rows * prod(shape[1:])
        self._products += 1
        self._used += outcome.usage
        self._x_bytes += manifest.workers * prod(shape) * dtype.itemsize
        itemsize = compute_dtype(manifest.dtype, dtype).itemsize
        self._answer_bytes += outcome.arrivals * rows * itemsize

    def total(self, prices: Prices, alive: Usage | None, invoked: int) -> SessionUsage:
        """The totals; `alive`: what residents have used since the last product, of which `invoked`
        were invoked in all, each of them having read its blocks once."""
        from coordinator.cost import cost

        manifest = self._manifest
        used = self._used if alive is None else self._used + alive
        entries = manifest.shares.per_worker * manifest.block_rows * manifest.columns
        times = invoked if self._resident else used.invokes
        blocks = times * entries * _itemsize(manifest.dtype)
        return SessionUsage(
            products=self._products,
            usage=used,
            bytes_read=blocks + self._x_bytes,
            bytes_written=self._answer_bytes,
            cost=cost(used, prices),
        )


def _itemsize(dtype: str) -> int:
    import numpy as np

    return np.dtype(dtype).itemsize
