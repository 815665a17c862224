"""Planning, in one import: choose a code, plan an encoding, plan a product, refuse what cannot
work."""

from __future__ import annotations

from coordinator.choose import CodeChoice, choose_code
from coordinator.choose_subtasks import SubtasksChoice, choose_subtasks
from coordinator.decode_wish import DecodePlan, DecodeWish
from coordinator.encoding_plan import EncodingPlan, plan_encoding
from coordinator.expected_time import ExpectedTime
from coordinator.platform import Platform
from coordinator.prices import Prices, load_prices
from coordinator.refusals import PlanRefused
from coordinator.run_plan import QUICK_ROUNDS, RunPlan, plan_multiply
from coordinator.series_plan import SeriesPlan, check_resident, plan_series

__all__ = [
    "QUICK_ROUNDS",
    "CodeChoice",
    "DecodePlan",
    "DecodeWish",
    "EncodingPlan",
    "ExpectedTime",
    "PlanRefused",
    "Platform",
    "Prices",
    "RunPlan",
    "SeriesPlan",
    "SubtasksChoice",
    "check_resident",
    "choose_code",
    "choose_subtasks",
    "load_prices",
    "plan_encoding",
    "plan_multiply",
    "plan_series",
]
