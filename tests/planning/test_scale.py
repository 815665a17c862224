"""Plans for thousands of workers: waves, the launch ramp, encode functions, prices of one's own."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace

import numpy as np
import pytest

from coordinator.planning import PlanRefused, Platform, load_prices, plan_encoding, plan_multiply
from coordinator.price_table import PricesError, read_table
from coordinator.run_plan import planned_task
from coordinator.start_rate import start_rate, task_rate
from coordinator.starts import begin_times, dispatch_times, planned_looks, ramp_times
from polarcodes.delays import from_table, make_delays
from polarlambda.errors import BadInput
from polarlambda.planning import assumed, plan_matrix, price_list

IMAGENET_224, IMAGENET_64 = (1_281_167, 150_528), (1_281_167, 12_288)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        (IMAGENET_224, {}),
        (IMAGENET_64, {}),
        (IMAGENET_224, {"concurrency": 10_000}),
        (IMAGENET_224, {"code": "mds"}),
        (IMAGENET_64, {"workers": 4096, "data_blocks": 3840}),
    ],
)
def test_imagenet_is_planned_in_five_seconds_with_every_figure(shape, options) -> None:
    began = time.process_time()
    encoding, run = plan_matrix(shape=shape, dtype="uint8", **options)
    assert time.process_time() - began < 5
    figures = encoding.to_json() | run.to_json()
    for name in ("storage_bytes", "encode_seconds", "worker_memory", "waves", "concurrency"):
        assert figures[name] > 0, name
    times = figures["expected_time"]
    assert 0 < times["coded_p95"] <= times["coded_p99"]
    json.dumps(figures, allow_nan=False)


def test_thousands_of_workers_are_invoked_by_dispatch_functions_side_by_side() -> None:
    platform = Platform(concurrency=4_096)
    direct, tree = dispatch_times(2_047, platform), dispatch_times(4_096, platform)
    assert direct.max() == pytest.approx(64 * 0.05)
    assert tree.min() == pytest.approx(0.6) and tree.max() == pytest.approx(0.55 + 4 * 0.05)
    paced = dispatch_times(4_096, platform, rate=1_280.0)
    assert paced[127] == tree[127] and paced[128] == pytest.approx(tree[0] + 0.1)
    assert paced[-1] == pytest.approx(tree[-1] + 3.1), "a part of 128 every tenth of a second"
    few = dispatch_times(4_096, Platform(concurrency=1_000), rate=1_280.0)
    assert few[:2_047].tolist() == direct.tolist(), "no more than 1,500 are under way: no tree"


def test_workers_are_started_no_faster_than_s3_serves_them() -> None:
    platform = Platform()
    n = 4_096
    assert start_rate(n, 1, 1, 1, platform) == pytest.approx(0.9 * 3_500), "answers are PUT"
    assert start_rate(n, 26, 1, 1, platform) == pytest.approx(0.9 * 5_500 / 26), "tiles are read"
    assert start_rate(n, 8, 1, 8, platform) == pytest.approx(0.9 * 3_500 / 8)
    assert start_rate(2_048, 1, 1, 1, platform) == math.inf, "all of them within a second"
    assert start_rate(200, 400, 1, 1, platform) == math.inf, "20 tiles a second of each at most"
    assert start_rate(n, 400, 1, 1, platform) == n / 60, "no launch takes longer than a minute"
    manifest = plan_encoding(IMAGENET_64, "uint8", workers=1024, data_blocks=960).manifest
    task = planned_task(manifest, (12_288,), "float64")
    assert task_rate(task, n) == start_rate(n, task.tiling.count, 1, 1, platform)
    several = replace(task, subtasks=4, per_object=2)
    assert task_rate(several, n) == start_rate(n, 4 * task.tiling.count, 1, 2, platform)
    some = replace(several, todo=(1,))
    assert task_rate(some, n) == start_rate(n, task.tiling.count, 1, 1, platform)


def test_only_workers_that_begin_late_and_long_tasks_look_for_the_stop_marker() -> None:
    warm = Platform(concurrency=3_000, warm_environments=3_000)
    cold, few = replace(warm, warm_environments=0), Platform(concurrency=1_000)
    short, long = np.array([1.2]), np.array([7.0])
    assert planned_looks(short, 3_000, warm) == 0
    assert planned_looks(long, 3_000, warm) == 2 * 3_000, "every 3 s"
    assert 1_800 < planned_looks(short, 3_000, cold) < 2_000, "those beyond the burst of 1,000"
    assert planned_looks(short, 3_000, few) == 0, "the others are sent when there is room"
    slow = from_table(np.array([[0.0, 0.0, 0.0, 0.6]]))
    assert planned_looks(short, 3_000, warm, delays=slow) == 0
    some = planned_looks(short, 3_000, few, delays=slow)
    assert 200 < some < 300, "a quarter of the 1,000 on cold environments, delayed as well"
    tasks = np.array([0.7, 1.4, 2.1])
    assert planned_looks(tasks, 10, warm) == 10, "the third task begins after 1.4 s"
    assert planned_looks(tasks, 3_000, few) == 3_000 + 1_000, "0.7 s after a cold start, too"


def test_workers_beyond_the_concurrency_begin_when_an_environment_is_free() -> None:
    platform = Platform(concurrency=2, invoke_threads=10, invoke_seconds=0.5)
    begin = begin_times(np.array([[4.0, 1.0, 1.0, 1.0]]), platform)
    # 0 and 1 at 0.5; 2 after 1 (1.5) and its invoke; 3 after 2 (3.0) and its invoke
    np.testing.assert_allclose(begin, [[0.5, 0.5, 2.0, 3.5]])


def test_nobody_waits_within_the_concurrency() -> None:
    begin = begin_times(np.full((3, 64), 7.0), Platform(concurrency=64))
    np.testing.assert_allclose(begin, np.broadcast_to([0.05] * 32 + [0.1] * 32, (3, 64)))


def test_environments_beyond_the_burst_start_at_the_documented_rate() -> None:
    platform = Platform(concurrency=3_000)
    ramp = ramp_times(4_000, platform)
    assert ramp[999] == 0 and ramp[1_999] == pytest.approx(10.0)
    assert ramp[2_999] == ramp[3_999] == pytest.approx(20.0), "the others find warm ones"
    warm = Platform(concurrency=3_000, warm_environments=2_000)
    assert ramp_times(4_000, warm).max() == 0


def test_waves_cost_time_and_are_noted_and_more_concurrency_ends_them() -> None:
    manifest = plan_encoding(IMAGENET_64, "uint8", workers=1024, data_blocks=960).manifest
    quiet = {"delays": make_delays("none")}
    queued = plan_multiply(manifest, (12_288,), platform=Platform(concurrency=512), **quiet)
    free = plan_multiply(manifest, (12_288,), platform=Platform(concurrency=1024), **quiet)
    assert queued.waves == 2 and free.waves == 1
    assert queued.time.coded > 2 * queued.time.task and free.time.coded > free.time.task
    assert any("concurrency of 512: blocks queue in 2 waves" in note for note in queued.notes)
    assert not any("queue" in note for note in free.notes)


def test_more_concurrency_allows_the_choice_of_more_workers() -> None:
    few = plan_encoding(IMAGENET_224, "uint8", platform=Platform(concurrency=64)).choice
    many = plan_encoding(IMAGENET_224, "uint8", platform=Platform(concurrency=1_024)).choice
    assert few.workers <= 64 < 512 < many.workers == 1_024


def test_a_concurrency_that_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(PlanRefused, match=r"concurrency = 0: .*; concurrency = 1000 would fit"):
        assumed(0)


def test_what_leaves_aws_is_paid_with_a_coordinator_of_ones_own() -> None:
    manifest = plan_encoding(IMAGENET_64, "uint8", workers=64, data_blocks=56).manifest
    here = plan_multiply(manifest, (12_288, 8))
    there = plan_multiply(manifest, (12_288, 8), on="lambda")
    answers = 64 * manifest.block_rows * 8 * 8
    assert here.usage.transfer_out_gb == pytest.approx(answers / 2**30)
    assert there.usage.transfer_out_gb == 0
    lines = {line.item: line.dollars for line in here.run_cost.lines}
    assert lines["transfer out"] == pytest.approx(0.09 * answers / 2**30)


FULL = {
    "lambda_gb_second": 2e-5,
    "lambda_million_requests": 0.3,
    "s3_thousand_puts": 0.01,
    "s3_thousand_gets": 0.001,
    "s3_gb_month": 0.03,
    "transfer_out_gb": 0.12,
}


def test_prices_of_ones_own_name_their_date_and_may_change_one_of_a_known_region(tmp_path) -> None:
    path = tmp_path / "prices.json"
    regions = {"eu-west-1": {"s3_gb_month": 0.5}}
    path.write_text(json.dumps({"date": "2027-01-15", "regions": regions}))
    prices = price_list(path, None)
    assert (prices.region, prices.date, prices.s3_gb_month) == ("eu-west-1", "2027-01-15", 0.5)
    assert prices.s3_thousand_puts == load_prices("eu-west-1").s3_thousand_puts
    path.write_text(json.dumps({"date": "2027-01-15", "regions": {"mars-1": FULL}}))
    elsewhere = price_list(path, "mars-1", "arm64")
    assert elsewhere.lambda_gb_second == 2e-5 and elsewhere.transfer_out_gb == 0.12
    with pytest.raises(BadInput, match="no prices for region 'us-east-1'"):
        price_list(path, "us-east-1")


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"nonsense", "must be JSON"),
        (b"[]", "regions"),
        (b'{"date": "today", "regions": {}}', "date must be the day"),
        (b'{"date": "2027-01-15", "regions": {"mars-1": {}}}', "missing"),
        (b'{"date": "2027-01-15", "regions": {"eu-west-1": {"s3_gb_moth": 1}}}', "s3_gb_month"),
        (b'{"date": "2027-01-15", "regions": {"eu-west-1": {"s3_gb_month": -1}}}', "dollars >= 0"),
        (
            b'{"date": "2027-01-15", "regions": {"eu-west-1": {"s3_gb_month": true}}}',
            "must be dollars",
        ),
        (b'{"date": "2027-01-15", "regions": {"eu-west-1": 3}}', "object of prices"),
        (
            b'{"date": "2027-01-15", "regions": {"eu-west-1": {"lambda_gb_second": {"z80": 1}}}}',
            "architecture must be one of",
        ),
    ],
)
def test_a_price_file_that_makes_no_sense_is_refused_with_its_name(body: bytes, word: str) -> None:
    with pytest.raises(PricesError, match=word) as refusal:
        read_table(body, "mine.json")
    assert str(refusal.value).startswith("mine.json")


def test_a_price_file_that_is_not_there_is_bad_input(tmp_path) -> None:
    with pytest.raises(BadInput, match=r"none\.json"):
        price_list(tmp_path / "none.json", None)
