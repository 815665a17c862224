"""The grid of a matrix product: what is chosen survives, fits and is explained."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from blockstore.memory import pair_memory
from coordinator.choose_grid import choose_grid
from coordinator.compare_grids import compare_grids
from coordinator.decode_wish import DecodeWish
from coordinator.grid_sizes import line_family, line_of_workers, shares_of
from coordinator.pair_plan import plan_pair
from coordinator.planned_pairs import Factor, planned_pair, planned_task
from coordinator.refusals import PlanRefused
from polarcodes import InvalidCode, make_code
from polarcodes.any_erasures import survived_by_any
from polarlambda.cli import command


def factors(n1, d, n2, dtype="<f8"):
    kind = np.dtype(dtype)
    return Factor(n1, d, kind), Factor(n2, d, kind, "F")


def test_redundancy_is_shared_out_so_that_four_dead_workers_never_stop_decoding():
    assert list(shares_of(4)) == [(0, 4), (1, 2), (2, 1), (4, 0)]
    for survived in range(9):
        assert all((a + 1) * (b + 1) > survived for a, b in shares_of(survived))


@pytest.mark.parametrize("dtype", ["<f8", "<u1"])
@pytest.mark.parametrize("workers", [3, 4, 6, 8])
def test_lines_keep_their_promise_for_other_seeds_too(dtype, workers):
    family = line_family("auto", {}, np.dtype(dtype), np.dtype(dtype))
    for survives in (1, 2):
        line = line_of_workers(family, workers, survives, 100)
        made = line.make(3)
        assert (made.workers, made.data_blocks) == (workers, line.data_blocks)
        assert survived_by_any(made, survives, 1e4) >= survives


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 7), (1, 4, 12), (40, 20, 30)])
@pytest.mark.parametrize("dtype", ["<f4", "<i4"])
def test_the_choice_survives_any_four_and_fits_the_matrices(shape, dtype):
    left, right = factors(*shape, dtype)
    choice = choose_grid(left, right)
    assert choice.survives >= 4
    assert choice.data_grid[0] <= shape[0] and choice.data_grid[1] <= shape[2]
    assert any("survives any" in line for line in choice.explanation)
    codes = choice.make(0)
    assert (codes[0].workers, codes[1].workers) == choice.grid
    one, other = (survived_by_any(line, 4, 1e5) for line in codes)
    assert (one + 1) * (other + 1) > 4


def test_what_is_given_is_kept():
    left, right = factors(100, 20, 100)
    choice = choose_grid(left, right, grid=(6, 6))
    assert choice.grid == (6, 6) and sorted(choice.data_grid) == [4, 5]
    choice = choose_grid(left, right, data_grid=(4, 3))
    assert choice.data_grid == (4, 3)
    choice = choose_grid(left, right, grid=(8, 8), data_grid=(4, 8), code="polar")
    assert (choice.left.family.name, choice.right.family.name) == ("polar", "uncoded")
    one_sided = choose_grid(left, right, grid=(12, 1), code="hadamard,uncoded")
    assert one_sided.data_grid[1] == 1 and one_sided.survives >= 4
    line = make_code("hadamard", workers=6, data_blocks=4)
    half = choose_grid(left, right, encoded=(line, None))
    assert half.grid[0] == 6 and half.make()[0] is line


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        ({"grid": (2, 2)}, PlanRefused, "survive any 4"),
        ({"grid": (8, 8), "data_grid": (9, 8)}, PlanRefused, "at most the grid"),
        ({"data_grid": (400, 2)}, PlanRefused, "more blocks"),
        ({"code": "nobody"}, InvalidCode, r"one of auto, .*hadamard.*got 'nobody'$"),
        ({"code": "polynomial"}, InvalidCode, r"one of auto, .*benchmarks\.polynomial"),
        ({"code": "berrut"}, InvalidCode, "approximately"),
        ({"options": {"rounds": 1}}, PlanRefused, "one code"),
        ({"worker_memory_mb": 128}, PlanRefused, "worker_memory_mb"),
    ],
)
def test_what_cannot_be_is_refused(options, error, word):
    with pytest.raises(error, match=word):
        choose_grid(*factors(100, 20, 100), **options)


def test_the_plan_counts_what_workers_read_and_hold():
    left, right = factors(8_192, 4_096, 8_192, "<f4")
    choice = choose_grid(left, right, grid=(16, 16))
    pair = planned_pair(left, right, choice.make())
    plan = plan_pair(pair, rounds=20)
    task = planned_task(pair)
    blocks = (task.left.rows + task.right.rows) * 4_096 * 4
    assert plan.bytes_read == 256 * blocks  # each block of 64 MB at most is read once
    assert plan.worker_memory == pair_memory(task) <= plan.worker_memory_mb << 20
    assert plan.left.storage_bytes == pytest.approx(
        8_192 * 4_096 * 4 * 16 / pair.left.data_blocks, rel=0.01
    )
    json.dumps(plan.to_json(), allow_nan=False)


def test_coding_both_sides_reads_a_fraction_of_what_coding_one_reads():
    left, right = factors(8_192, 4_096, 8_192, "<f4")
    choice = choose_grid(left, right, grid=(8, 8))
    ways = {way.name: way for way in compare_grids(left, right, choice)}
    assert set(ways) == {"both", "A alone", "B alone", "A, B in groups", "none"}
    assert ways["none"].survives == 0 and ways["A alone"].survives == 4
    both, alone = ways["both"].plan, ways["A alone"].plan
    assert both is not None and alone is not None
    assert both.workers == alone.workers == 64
    assert alone.bytes_read > 3 * both.bytes_read
    assert both.data_blocks < alone.data_blocks


def test_a_grid_beyond_the_concurrency_is_planned_in_waves():
    left, right = factors(20_000, 100, 20_000)
    choice = choose_grid(left, right, grid=(35, 35), data_grid=(35, 30))
    plan = plan_pair(planned_pair(left, right, choice.make()), rounds=5)
    assert any("1,000" in note and "waves" in note for note in plan.notes)


def test_the_command_compares_the_ways(monkeypatch):
    for name in ("POLARLAMBDA_BUCKET", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    arguments = ["plan", "--shape", "50x40", "--dtype", "float32", "--matmul", "40x60"]
    done = CliRunner().invoke(command, [*arguments, "--grid", "3x4"])
    assert done.exit_code == 0, done.output
    assert all(way in done.stdout for way in ("both", "A alone", "B alone", "in groups", "none"))
    told = json.loads(CliRunner().invoke(command, [*arguments, "--json"]).stdout)
    assert told["survives"] >= 4 and len(told["ways"]) == 5
    for wrong, word in (
        (["plan", "--shape", "5x4", "--dtype", "f4", "--matmul", "5x4"], "inner dimensions"),
        (["plan", "--matmul", "5x4"], "needs A"),
        ([*arguments, "--data-blocks", "3"], "S1xS2"),
        (["plan", "--shape", "5x4", "--dtype", "f4", "--grid", "2x2"], "--matmul"),
    ):
        done = CliRunner().invoke(command, wrong)
        assert done.exit_code == 2 and word in done.stderr, done.output


def test_the_decoding_of_a_large_product_is_planned_in_the_coordinator_and_by_functions():
    left, right = factors(65_536, 512, 65_536, "<f4")
    choice = choose_grid(left, right, grid=(16, 16))
    pair = planned_pair(left, right, choice.make())
    here = plan_pair(pair, rounds=100, worker_timeout=900)
    there = plan_pair(pair, rounds=100, worker_timeout=900, wish=DecodeWish("lambda"))
    assert here.decode.where == "memory" and here.decode_lambda == there.decode
    assert there.decode_lambda is None and there.decode.written >= 65_536**2 * 4
    assert there.time.coded < here.time.coded / 3
    assert there.usage.transfer_out_gb < here.usage.transfer_out_gb / 1000
    assert there.usage.invokes == here.usage.invokes + there.decode.calls
    json.dumps(there.to_json(), allow_nan=False)
    shape = ("plan", "--shape", "65536x512", "--dtype", "float32", "--matmul", "512x65536")
    shown = CliRunner().invoke(command, [*shape, "--grid", "16x16", "--decode", "lambda"])
    assert shown.exit_code == 0, shown.output
    assert f"decode on Lambda {there.decode.calls} calls of 2048 MB" in shown.stdout
