"""The file format of prices: the table that is shipped, and one of your own, checked.

    {"date": "2027-01-15",
     "regions": {"eu-west-1": {"s3_gb_month": 0.023, "lambda_gb_second": {"x86_64": 0.0000166667}}}}

A region that the shipped table has may leave out what it does not change; any other names every
price. `lambda_gb_second` is a number for each processor architecture, or one for all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date
from importlib.resources import files
from typing import Any

__all__ = [
    "ARCHITECTURES",
    "PRICE_NAMES",
    "PricesError",
    "check_price",
    "read_table",
    "shipped_table",
]

ARCHITECTURES = ("x86_64", "arm64")
PRICE_NAMES = (
    "lambda_gb_second",
    "lambda_million_requests",
    "s3_thousand_puts",
    "s3_thousand_gets",
    "s3_gb_month",
    "transfer_out_gb",
)


class PricesError(ValueError):
    """A region, architecture or price that is not known or makes no sense."""


def check_price(name: str, value: object) -> float:
    """The price in dollars; raises PricesError for a name or a number that cannot be."""
    if name not in PRICE_NAMES:
        raise PricesError(f"price must be one of {', '.join(PRICE_NAMES)}; got {name!r}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PricesError(f"price {name} must be dollars, got {value!r}")
    if not (math.isfinite(value) and value >= 0):
        raise PricesError(f"price {name} must be dollars >= 0, got {value!r}")
    return float(value)


def shipped_table() -> dict[str, Any]:
    """The table that comes with the product, regions by name."""
    table: dict[str, Any] = json.loads(
        files("coordinator").joinpath("prices.json").read_text("utf-8")
    )
    return table


def read_table(body: bytes, name: str) -> dict[str, Any]:
    """The regions of a file, completed by what the shipped table says of them.

    Raises PricesError naming the file `name`, the field, the rule and what was found.
    """
    try:
        given = json.loads(body)
    except ValueError as exc:
        raise PricesError(f"{name}: prices must be JSON: {exc}") from exc
    if not isinstance(given, dict) or not isinstance(given.get("regions"), dict):
        raise PricesError(f'{name}: prices must be {{"date": ..., "regions": {{NAME: {{...}}}}}}')
    try:
        day = date.fromisoformat(str(given.get("date"))).isoformat()
    except ValueError as exc:
        raise PricesError(
            f"{name}: date must be the day of the prices such as 2027-01-15, got "
            f"{given.get('date')!r}"
        ) from exc
    known = shipped_table()["regions"]
    regions = {
        region: _region(f"{name}: {region}", row, known.get(region, {}))
        for region, row in given["regions"].items()
    }
    return {"date": day, "regions": regions}


def _region(where: str, row: object, known: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise PricesError(f"{where}: must be an object of prices, got {row!r}")
    merged: dict[str, Any] = dict(known)
    for name, value in row.items():
        try:
            if name == "lambda_gb_second":
                merged[name] = merged.get(name, {}) | _by_architecture(value)
            else:
                merged[name] = check_price(name, value)
        except PricesError as exc:
            raise PricesError(f"{where}: {exc}") from exc
    missing = [name for name in PRICE_NAMES if name not in merged]
    missing += [a for a in ARCHITECTURES if a not in merged.get("lambda_gb_second", {a: 0})]
    if missing:
        raise PricesError(f"{where}: {', '.join(missing)} missing, and no shipped price for it")
    return merged


def _by_architecture(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        price = check_price("lambda_gb_second", value)
        return dict.fromkeys(ARCHITECTURES, price)
    for architecture in value:
        if architecture not in ARCHITECTURES:
            raise PricesError(
                f"architecture must be one of {', '.join(ARCHITECTURES)}; got {architecture!r}"
            )
    return {name: check_price("lambda_gb_second", price) for name, price in value.items()}
