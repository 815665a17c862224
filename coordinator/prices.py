"""Prices of Lambda and S3: data with a date, in prices.json, every figure overridable.

Units: dollars; a GB of Lambda memory is 1,024 MB and a GB of S3 storage 2**30 bytes, as AWS bills
them. PUT, COPY, POST and LIST share a price, GET and all other requests another; DELETE and
transfer within the region are free. First price tier, no free tier: a plan must not assume that the
month is empty.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files

ARCHITECTURES = ("x86_64", "arm64")


class PricesError(ValueError):
    """A region, architecture or price that is not known or makes no sense."""


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

    def to_json(self) -> dict[str, str | float]:
        """Plain JSON object of every field."""
        return asdict(self)


PRICE_NAMES = (
    "lambda_gb_second",
    "lambda_million_requests",
    "s3_thousand_puts",
    "s3_thousand_gets",
    "s3_gb_month",
)


def load_prices(
    region: str = "us-east-1",
    architecture: str = "x86_64",
    overrides: Mapping[str, float] | None = None,
) -> Prices:
    """Prices from the shipped table, with `overrides` (names of `PRICE_NAMES`, dollars) on top.

    Raises PricesError for a region that the table lacks (unless all prices are overridden), an
    unknown architecture, an unknown price name, or a price that is negative or not finite.
    """
    given = dict(overrides or {})
    for name, value in given.items():
        if name not in PRICE_NAMES:
            raise PricesError(f"price must be one of {', '.join(PRICE_NAMES)}; got {name!r}")
        if not (math.isfinite(value) and value >= 0):
            raise PricesError(f"price {name} must be dollars >= 0, got {value!r}")
    if architecture not in ARCHITECTURES:
        raise PricesError(
            f"architecture must be one of {', '.join(ARCHITECTURES)}; got {architecture!r}"
        )
    table = json.loads(files("coordinator").joinpath("prices.json").read_text("utf-8"))
    if region in table["regions"]:
        row = dict(table["regions"][region])
        row["lambda_gb_second"] = row["lambda_gb_second"][architecture]
    elif set(given) == set(PRICE_NAMES):
        row = given
    else:
        raise PricesError(
            f"no prices for region {region!r} (known: {', '.join(table['regions'])}); "
            f"use a known region or override {', '.join(PRICE_NAMES)}"
        )
    row.update(given)
    return Prices(date=table["date"], region=region, architecture=architecture, **row)
