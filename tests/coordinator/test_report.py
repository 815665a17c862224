"""What a run says of itself when it has ended."""

from __future__ import annotations

import pytest

from blockstore import keys
from coordinator.report import Billing
from tests.coordinator.fake_platform import (
    Fail,
    Platform,
)
from tests.coordinator.one_run import (
    RUN,
    TIMEOUT,
    silent,
    start,
    store,
)


def test_the_report_has_times_requests_and_dollars_beside_the_plan():
    platform = Platform()
    planned = {"run_cost": {"total": 0.25}}
    start(platform, billing=Billing(worker_timeout=TIMEOUT, planned=planned))
    report = store(platform).get_report()
    assert {"dispatch", "collect", "decode", "write"} <= set(report["phases"])
    assert len(report["answers"]) == report["arrivals"]
    assert {"arrived", "seconds_read", "cold", "peak_memory"} <= set(report["answers"][0])
    assert report["usage"]["invokes"] == platform.workers
    kinds = [kind for kind, _ in platform.bucket.requests]
    assert report["usage"]["puts"] == pytest.approx(
        kinds.count("put") + report["arrivals"], abs=3
    )  # less the report's own
    assert report["cost"]["total"] > 0 and report["planned"] == planned
    page = platform.bucket.objects[keys.report_key(RUN, "html")].body.decode()
    assert "<svg" in page and "planned $0.25" in page and "<script" not in page
    assert page.count("<circle") == report["arrivals"] and "decoded: exact" in page


def test_the_page_of_a_run_without_the_exact_product_says_what_is_known_and_escapes_errors():
    platform = Platform(table=silent(8) | {15: [Fail("<b>Odd</b>")]})
    outcome = start(platform, deadline=10.0)
    page = platform.bucket.objects[keys.report_key(RUN, "html")].body.decode()
    assert f"{outcome.error:.1%} (95 %: {outcome.error_upper:.1%})" in page
    assert "decoded: exact" not in page and "upper bound" in page
    assert "&lt;b&gt;Odd" in page and "<b>" not in page
    platform = Platform(table=silent(16))
    start(platform, deadline=10.0)
    assert (
        "No answer arrived" in platform.bucket.objects[keys.report_key(RUN, "html")].body.decode()
    )


def test_silent_workers_are_billed_up_to_a_stated_bound():
    platform = Platform(table=silent(8))
    start(platform, deadline=10.0)
    report = store(platform).get_report()
    assert report["bound_gb_seconds"] == pytest.approx(8 * 10.0 * 1769 / 1024, rel=0.05)
