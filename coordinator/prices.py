"""Prices of Lambda and S3: data with a date and a region, every figure overridable.

Units: dollars; a GB of Lambda memory is 1,024 MB and a GB of S3 storage or of transfer 2**30 bytes,
as AWS bills them. PUT, COPY, POST and LIST share a price, GET and all other requests another;
DELETE, transfer into AWS and transfer within the region are free. First price tier, no free tier: a
plan must not assume that the month is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from coordinator.price_table import (
    ARCHITECTURES,
    PRICE_NAMES,
    PricesError,
    check_price,
    shipped_table,
)

__all__ = ["ARCHITECTURES", "PRICE_NAMES", "Prices", "PricesError", "load_prices"]


@dataclass(frozen=True)
class Prices:
    """Dollars per unit in one region for one processor architecture, valid at `date` (ISO)."""

    date: str
    region: str
    architecture: str
    lambda_gb_second: float
    lambda_million_requests: float
    s3_thousand_puts: float
    s3_thousand_gets: float
    s3_gb_month: float
    transfer_out_gb: float

    def to_json(self) -> dict[str, str | float]:
        """Plain JSON object of every field."""
        return asdict(self)


def load_prices(
    region: str = "us-east-1",
    architecture: str = "x86_64",
    overrides: Mapping[str, float] | None = None,
    table: Mapping[str, Any] | None = None,
) -> Prices:
    """Prices of a region, with `overrides` (names of `PRICE_NAMES`, dollars) on top.

    `table`: one read by `coordinator.price_table.read_table`; the shipped one by default. Raises
    PricesError for a region that the table lacks (unless all prices are overridden), an unknown
    architecture, an unknown price name, or a price that is negative or not finite.
    """
    given = dict(overrides or {})
    for name, value in given.items():
        check_price(name, value)
    if architecture not in ARCHITECTURES:
        raise PricesError(
            f"architecture must be one of {', '.join(ARCHITECTURES)}; got {architecture!r}"
        )
    known = table if table is not None else shipped_table()
    if region in known["regions"]:
        row = dict(known["regions"][region])
        row["lambda_gb_second"] = row["lambda_gb_second"][architecture]
    elif set(given) == set(PRICE_NAMES):
        row = given
    else:
        raise PricesError(
            f"no prices for region {region!r} (known: {', '.join(known['regions'])}); "
            f"use a known region or override {', '.join(PRICE_NAMES)}"
        )
    row.update(given)
    return Prices(date=known["date"], region=region, architecture=architecture, **row)
