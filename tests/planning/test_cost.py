from __future__ import annotations

import json
import math
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.cost import Usage, cost
from coordinator.prices import PRICE_NAMES, PricesError, load_prices

counts = st.integers(0, 10**9)
amounts = st.floats(0, 1e9)
usages = st.builds(Usage, counts, counts, counts, counts, amounts, amounts, amounts)


def test_a_bill_computed_by_hand() -> None:
    usage = Usage(
        puts=2_000,
        gets=10_000,
        lists=500,
        invokes=65,
        worker_gb_seconds=1_000.0,
        coordinator_gb_seconds=100.0,
        storage_gb_months=10.0,
    )
    bill = cost(usage, load_prices())
    by_item = {line.item: line.dollars for line in bill.lines}
    assert by_item == {
        "worker time": pytest.approx(0.0166667),
        "coordinator time": pytest.approx(0.00166667),
        "invocations": pytest.approx(0.000013),
        "S3 PUT": pytest.approx(0.01),
        "S3 LIST": pytest.approx(0.0025),
        "S3 GET": pytest.approx(0.004),
        "S3 storage": pytest.approx(0.23),
    }
    assert bill.total == pytest.approx(sum(by_item.values()))


@given(usages, usages)
def test_usages_and_bills_add_up(a: Usage, b: Usage) -> None:
    prices = load_prices()
    together = cost(a + b, prices).total
    assert together == pytest.approx(cost(a, prices).total + cost(b, prices).total, rel=1e-9)
    for f in fields(Usage):
        assert getattr(a + b, f.name) == getattr(a, f.name) + getattr(b, f.name)


def test_nothing_used_costs_nothing_and_has_no_lines() -> None:
    bill = cost(Usage(), load_prices())
    assert bill.total == 0 and bill.lines == ()


def test_arm64_costs_a_fifth_less_per_gb_second() -> None:
    usage = Usage(worker_gb_seconds=1e6)
    arm, x86 = (cost(usage, load_prices(architecture=a)).total for a in ("arm64", "x86_64"))
    assert arm / x86 == pytest.approx(0.8, rel=1e-4)


def test_a_bill_is_json_that_names_the_date_of_its_prices() -> None:
    bill = json.loads(json.dumps(cost(Usage(puts=3), load_prices()).to_json(), allow_nan=False))
    assert bill["prices_date"] and bill["region"] == "us-east-1"
    assert bill["lines"][0]["item"] == "S3 PUT" and bill["lines"][0]["quantity"] == 3


def test_prices_can_be_overridden_one_by_one_and_for_another_region_all_together() -> None:
    assert load_prices(overrides={"s3_gb_month": 0.5}).s3_gb_month == 0.5
    assert load_prices(overrides={"s3_gb_month": 0.5}).s3_thousand_puts == 0.005
    elsewhere = load_prices("mars-1", overrides=dict.fromkeys(PRICE_NAMES, 1.0))
    assert elsewhere.region == "mars-1" and elsewhere.lambda_gb_second == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"region": "mars-1"}, "no prices for region 'mars-1'"),
        ({"architecture": "risc-v"}, "architecture must be one of"),
        ({"overrides": {"s3_puts": 1.0}}, "price must be one of"),
        ({"overrides": {"s3_gb_month": -1.0}}, "s3_gb_month must be dollars >= 0, got -1.0"),
        ({"overrides": {"s3_gb_month": math.nan}}, "s3_gb_month must be dollars >= 0, got nan"),
    ],
)
def test_bad_prices_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(PricesError, match=message):
        load_prices(**arguments)  # type: ignore[arg-type]
