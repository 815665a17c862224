"""The simulated fleet: runs end as they do elsewhere, and every limit bites."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks import fleet as benchmark
from coordinator.platform import Platform
from polarcodes.delays import make_delays
from polarlambda.simulation.fleet import Fleet, simulate
from polarlambda.simulation.fleet_limits import LIMITS, FleetLimits, TokenBucket
from polarlambda.simulation.fleet_world import EPOCH, World, WorldClock

NONE = make_delays("none")


def small(workers: int = 64, **options) -> Fleet:
    platform = options.pop("platform", {})
    limits = FleetLimits(Platform(**({"warm_environments": workers} | platform)))
    data_blocks = options.pop("data_blocks", workers - workers // 8)
    return Fleet((20_000, 1_000), workers, data_blocks, limits=limits, **options)


def test_a_product_of_a_fleet_is_exact_and_every_request_is_counted() -> None:
    run = simulate(small())
    assert run.outcome.state == "exact" and run.error < 1e-9
    counts = run.counts
    assert counts.begun == 64 and 56 <= counts.answered + counts.stopped <= 64
    assert run.requests["put"] > 56 and run.requests["get"] > 2 * 56
    json.dumps(run.to_json(), allow_nan=False)


def test_two_simulations_of_the_same_fleet_agree_and_another_seed_does_not() -> None:
    first, again, other = simulate(small()), simulate(small()), simulate(small(seed=1))
    assert first.to_json() == again.to_json() != other.to_json()


def test_dead_workers_are_made_up_for_by_the_code() -> None:
    run = simulate(small(silent=4))
    assert run.outcome.state == "exact" and run.error < 1e-9
    assert run.counts.begun == 64 and run.outcome.arrivals <= 60


def test_too_many_dead_workers_end_the_run_with_its_estimate_as_on_aws() -> None:
    run = simulate(small(silent=20, timeout=20.0))
    assert run.outcome.state == "estimated" and not run.outcome.exact
    assert run.counts.begun == 64 + 20, "the missing ones were invoked once more"
    assert run.outcome.seconds > 2 * 20


def test_the_launch_ramp_holds_cold_environments_back() -> None:
    ramp = {"warm_environments": 0, "ramp_burst": 16, "ramp_rate": 4.0}
    cold = simulate(small(platform=ramp, delays=NONE, data_blocks=60))
    warm = simulate(small(delays=NONE, data_blocks=60))
    assert cold.counts.queued > 0 and cold.counts.cold > 0 and warm.counts.queued == 0
    assert cold.seconds > warm.seconds + 1


def test_concurrency_is_never_exceeded_and_the_window_spares_lambdas_queue() -> None:
    crowd = small(platform={"concurrency": 16}, delays=NONE)
    held, alone = simulate(crowd), simulate(replace(crowd, overlap=0.0))
    for run in (held, alone):
        assert run.outcome.state == "exact" and run.counts.most_running <= 16
    assert held.counts.queued < alone.counts.queued


def test_a_prefixs_request_rate_makes_s3_say_slow_down_and_nobody_is_lost() -> None:
    few = simulate(small(platform={"s3_gets_per_second": 40.0}, delays=NONE))
    assert sum(few.slow_downs.values()) > 0 and few.outcome.state == "exact"
    assert few.seconds > simulate(small(delays=NONE)).seconds


def test_a_tree_launches_sooner_than_one_client() -> None:
    n = 1_024
    room = {"delays": NONE, "platform": {"concurrency": n}}
    direct = simulate(small(n, tree_from=1 << 30, **room))
    tree = simulate(small(n, tree_from=n, **room))
    assert tree.outcome.state == direct.outcome.state == "exact"
    assert tree.invokes == 16 and direct.invokes == n
    assert max(tree.counts.begins) < max(direct.counts.begins)


def test_a_tree_that_asks_too_much_of_s3_is_the_wall_that_pacing_and_trust_take_away() -> None:
    """16,384 workers against 5,500 GETs and 3,500 PUTs a second, at a sixteenth of the size."""
    n = 1_024
    rates = {"s3_gets_per_second": 5_500 / 16, "s3_puts_per_second": 3_500 / 16}
    fleet = small(n, tree_from=n, platform={"concurrency": n} | rates)
    fleet = replace(fleet, limits=replace(fleet.limits, threads=64 // 16))
    wall = simulate(replace(fleet, paced=False, trusting=False))
    paced, both = simulate(replace(fleet, trusting=False)), simulate(fleet)
    for run in (wall, paced, both):
        assert run.outcome.state == "exact" and run.error < 1e-9
    refused = [sum(run.slow_downs.values()) for run in (wall, paced, both)]
    assert refused[0] > 2 * n and 0 < refused[1] < n and refused[2] == 0
    dollars = [run.outcome.cost["total"] for run in (wall, paced, both)]
    assert dollars[2] < dollars[1] < dollars[0]
    assert both.requests["list"] < paced.requests["list"] - 0.9 * n, "nobody looks who is on time"


def test_workers_that_wait_for_an_environment_look_and_the_bill_counts_it() -> None:
    ramp = {"warm_environments": 0, "ramp_burst": 16, "ramp_rate": 4.0}
    cold = simulate(small(platform=ramp, delays=NONE, data_blocks=60))
    looked = 64 - 16 - 4 * 2  # in the first second begin the burst and some of the ramp
    assert looked <= cold.requests["list"]
    lines = {line["item"]: line["quantity"] for line in cold.outcome.cost["lines"]}
    assert lines["S3 LIST"] >= looked - cold.counts.stopped
    assert simulate(small(delays=NONE, data_blocks=60)).requests["list"] < looked


@pytest.mark.parametrize("name", [*LIMITS, "stragglers", "coordinator's processor"])
def test_no_limit_makes_a_product_faster_by_being_there(name: str) -> None:
    tight = {"concurrency": 32, "warm_environments": 32, "s3_gets_per_second": 100.0}
    if name == "launch ramp":
        tight = {"warm_environments": 0, "ramp_burst": 16, "ramp_rate": 8.0}
    fleet = small(platform=tight, delays=make_delays("exponential"))
    assert simulate(fleet.lift(name)).seconds <= 1.05 * simulate(fleet).seconds


def test_processor_time_of_the_coordinator_counts_where_it_is_charged() -> None:
    world = World(charge=1.0)
    clock = WorldClock(world)
    began = clock.now()
    sum(range(2_000_000))
    assert 0 < world.computed <= clock.now() - began


def test_events_happen_in_order_and_only_when_time_has_come() -> None:
    world, seen = World(), []
    world.at(EPOCH + 2, lambda: seen.append("later"))
    world.at(EPOCH + 1, lambda: world.at(EPOCH + 1, lambda: seen.append("nested")))
    world.at(EPOCH + 1, lambda: seen.append("sooner"))
    world.wait_until(EPOCH + 1.5)
    assert seen == ["sooner", "nested"] and world.time == EPOCH + 1.5
    WorldClock(world).sleep(1.0)
    assert seen == ["sooner", "nested", "later"]


def test_a_token_bucket_gives_its_burst_and_then_its_rate() -> None:
    bucket = TokenBucket(rate=2.0, burst=3.0, at=0.0)
    assert [bucket.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(at) for at in (0.4, 0.5, 0.6, 1.0)] == [False, True, False, True]


def test_the_benchmark_names_a_bottleneck(monkeypatch, capsys, tmp_path) -> None:
    saved = {}
    tiny = [benchmark.Case("tiny", small(16, delays=NONE), explain=True)]
    monkeypatch.setattr(benchmark, "cases", lambda small, delays: iter(tiny))
    monkeypatch.setattr(benchmark, "save", lambda name, results: saved.update(results) or tmp_path)
    monkeypatch.setattr("sys.argv", ["fleet", "--small"])
    assert benchmark.main() == 0
    [row] = saved["rows"]
    assert row["bottleneck"] in (*LIMITS, "stragglers", "coordinator's processor")
    assert row["bottleneck"] in capsys.readouterr().out
    json.dumps(saved, allow_nan=False)
