from __future__ import annotations

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.planning import (
    EncodingPlan,
    PlanRefused,
    Platform,
    plan_encoding,
    plan_multiply,
)
from polarcodes.delays import make_delays

MB = 1 << 20


def encoding(rows: int = 10_000, columns: int = 512, dtype: str = "f4", **options) -> EncodingPlan:
    options = {"workers": 64, "data_blocks": 56} | options
    return plan_encoding((rows, columns), dtype, **options)


def test_imagenet_64_is_planned_in_well_under_five_seconds() -> None:
    start = time.process_time()  # of this process: other load on the machine does not count
    plan = plan_encoding((1_281_167, 12_288), np.uint8)
    run = plan_multiply(plan.manifest, (12_288,), "float32")
    assert time.process_time() - start < 5
    assert plan.source_bytes == 1_281_167 * 12_288
    assert run.time.pays and run.time.task < 60
    assert 0 < run.run_cost.total < 1 and 0 < plan.encode_cost.total < 1


def test_every_figure_by_hand() -> None:
    plan = encoding(rows=10_000, columns=512, memory=1 << 30)
    run = plan_multiply(plan.manifest, (512, 3), "float32", delays=make_delays("none"))
    assert (run.workers, run.data_blocks, run.block_rows) == (64, 56, 179)
    block = 179 * 512 * 4
    assert run.stored.block_bytes == block
    tiles = run.stored.objects_per_worker
    assert run.stored.objects == 64 * tiles
    assert run.tile_rows * run.tile_columns * 4 + 128 == run.stored.tile_bytes
    assert run.stored.storage_bytes == 64 * (block + 128 * tiles)
    assert plan.usage.puts == 64 * tiles + 1
    assert run.usage.invokes == 64
    assert run.usage.gets >= 64 * (tiles + 1) + 64, "tiles and x by workers, answers by us"
    gb_seconds = 64 * 1769 / 1024 * run.time.task
    assert run.usage.worker_gb_seconds == pytest.approx(gb_seconds)
    assert run.time.load == pytest.approx(64 / 56)
    assert 56 <= run.arrivals_mean <= run.arrivals_p99 <= 64
    assert run.storage_month.total == pytest.approx(0.023 * run.stored.storage_bytes / 2**30)


def test_an_uncoded_matrix_needs_everybody_and_saves_nothing() -> None:
    plan = encoding(code="uncoded", workers=64, data_blocks=64)
    run = plan_multiply(plan.manifest, (512,))
    assert run.arrivals_mean == run.arrivals_p99 == 64
    assert run.time.coded == pytest.approx(run.time.uncoded) and not run.time.pays
    assert run.notes[0].startswith("No coding: every worker is needed")


def test_the_plan_says_when_coding_does_not_pay() -> None:
    plan = encoding()
    calm = plan_multiply(plan.manifest, (512,), delays=make_delays("none"))
    assert not calm.time.pays and "does not pay" in calm.notes[0]
    rare = plan_multiply(plan.manifest, (512,), delays=make_delays("lambda-rare-tail"))
    assert rare.time.pays and rare.notes[0].startswith("Coding pays")


def test_the_load_of_the_code_is_charged() -> None:
    """On work that is all reading, a block N / s times larger takes N / s times longer."""
    plan = encoding(rows=1_000_000, columns=10_000, workers=16, data_blocks=8)
    run = plan_multiply(plan.manifest, (10_000,), "f4", worker_timeout=900)
    assert run.time.load == 2
    assert run.time.task / run.time.uncoded_task == pytest.approx(2, rel=0.02)


def test_a_wider_dtype_for_the_coded_sums_is_charged_too() -> None:
    plan = encoding(dtype="u1", workers=256, data_blocks=240)
    run = plan_multiply(plan.manifest, (512,))
    assert run.block_dtype == "int32"  # 240 x 255 does not fit an int16
    # Without coding a pixel stays a byte.
    assert run.time.byte_load == pytest.approx(4 * 256 / 240, rel=0.03)  # rows are rounded up
    known = encoding(dtype="u1", workers=256, data_blocks=240, value_range=(0, 1))
    assert known.manifest.dtype == "<i2"


def test_the_coordinator_function_is_billed_when_it_runs_the_product() -> None:
    manifest = encoding().manifest
    local = plan_multiply(manifest, (512,), on="local")
    remote = plan_multiply(manifest, (512,), on="lambda", coordinator_memory_mb=1024)
    assert local.usage.coordinator_gb_seconds == 0
    assert remote.usage.coordinator_gb_seconds == pytest.approx(remote.time.coded)
    assert remote.usage.invokes == local.usage.invokes + 1


def test_two_plans_of_the_same_run_agree() -> None:
    manifest = encoding().manifest
    assert plan_multiply(manifest, (512,)) == plan_multiply(manifest, (512,))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 10**6),
    st.integers(1, 3_000),
    st.sampled_from(["u1", ">i4", "?", "f2", "f4", "f8", "u8"]),
    st.sampled_from([(8, 6), (64, 56), (128, 128)]),
    st.sampled_from(["C", "F"]),
    st.integers(0, 5),
)
def test_plans_are_json_without_nan_and_count_consistently(
    rows, columns, dtype, size, order, k
) -> None:
    plan = encoding(rows, columns, dtype, workers=size[0], data_blocks=size[1], order=order)
    x_shape = (columns, k) if k else (columns,)
    run = plan_multiply(plan.manifest, x_shape, worker_timeout=900)
    for figures in (plan.to_json(), run.to_json()):
        assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert run.block_rows * run.data_blocks >= rows > (run.block_rows - 1) * run.data_blocks - 1
    assert run.stored.storage_bytes >= rows * columns
    assert run.worker_memory <= run.worker_memory_mb * MB
    assert run.event_bytes < 1_000


def test_the_manifest_of_a_plan_is_one_that_could_be_stored() -> None:
    manifest = encoding().manifest
    assert type(manifest).from_json(manifest.to_json()) == manifest


def refused(call, *arguments, **options) -> PlanRefused:
    with pytest.raises(PlanRefused) as caught:
        call(*arguments, **options)
    assert caught.value.argument in str(caught.value)
    return caught.value


def test_a_tile_that_does_not_fit_the_worker_names_the_memory_that_would() -> None:
    manifest = encoding(rows=200_000, columns=4_096).manifest
    no = refused(plan_multiply, manifest, (4_096,), worker_memory_mb=150)
    assert no.argument == "worker_memory_mb" and no.value == 150
    plan_multiply(manifest, (4_096,), worker_memory_mb=no.fits)
    refused(plan_multiply, manifest, (4_096,), worker_memory_mb=no.fits - 1)


def test_an_x_too_wide_for_any_function_names_the_columns_that_would_fit() -> None:
    manifest = encoding(rows=100_000, columns=100_000).manifest
    no = refused(plan_multiply, manifest, (100_000, 9_000), worker_memory_mb=10_240)
    assert no.argument == "columns of x" and 0 < no.fits < 9_000
    fits = {"worker_memory_mb": 10_240, "worker_timeout": 900}
    slow = Platform(product_rate=1e15, stream_rate=1e15, s3_read_rate=1e15, s3_write_rate=1e15)
    plan_multiply(manifest, (100_000, no.fits), platform=slow, **fits)
    again = refused(plan_multiply, manifest, (100_000, no.fits + 1), platform=slow, **fits)
    assert again.argument == "columns of x"


def test_a_matrix_row_too_long_for_any_function_is_refused() -> None:
    manifest = encoding(rows=64, columns=10**9).manifest
    no = refused(plan_multiply, manifest, (10**9,), worker_memory_mb=10_240)
    assert no.argument == "matrix columns" and no.fits is None


def test_a_tile_too_large_for_any_function_names_the_size_that_would_fit() -> None:
    manifest = encoding(rows=6_400_000, columns=1_000).manifest
    tiling = manifest.tiling
    huge = replace(manifest, tiling=replace(tiling, tile_rows=tiling.rows))
    limited = Platform(memory_max_mb=512)
    no = refused(plan_multiply, huge, (1_000,), worker_memory_mb=512, platform=limited)
    assert no.argument == "entries of a tile" and 0 < no.fits < huge.tiling.rows * 1_000


def test_a_block_that_takes_too_long_names_the_time_out_then_the_workers() -> None:
    plan = encoding(rows=2_000_000, columns=10_000, workers=16, data_blocks=14)
    no = refused(plan_multiply, plan.manifest, (10_000,), worker_timeout=10)
    assert no.argument == "worker_timeout" and 10 < no.fits < 900
    plan_multiply(plan.manifest, (10_000,), worker_timeout=no.fits)

    big = encoding(rows=20_000_000, columns=10_000, workers=8, data_blocks=7)
    no = refused(plan_multiply, big.manifest, (10_000,), worker_timeout=900)
    assert no.argument == "workers" and no.fits > 8
    more = encoding(rows=20_000_000, columns=10_000, workers=no.fits, data_blocks=no.fits * 7 // 8)
    plan_multiply(more.manifest, (10_000,), worker_timeout=900)


def test_what_no_number_of_workers_can_do_names_the_columns_of_x_then_the_rows() -> None:
    wide = encoding(rows=10**6, columns=10_000)
    slow = Platform(product_rate=2e5)
    no = refused(
        plan_multiply, wide.manifest, (10_000, 1_000), platform=slow, worker_memory_mb=10_240
    )
    assert no.argument == "columns of x" and 0 < no.fits < 1_000
    plan_multiply(
        wide.manifest, (10_000, no.fits), platform=slow, worker_memory_mb=10_240, worker_timeout=900
    )

    huge = encoding(rows=10**8, columns=100_000, dtype="f8")
    no = refused(plan_multiply, huge.manifest, (100_000,))
    assert no.argument == "rows of a block" and 0 < no.fits < huge.manifest.block_rows


def test_a_coordinator_function_too_small_for_the_answers_is_refused() -> None:
    manifest = encoding(rows=2_000, columns=64).manifest
    sizes = {"on": "lambda", "worker_memory_mb": 10_240}
    k = 1_000_000  # a row of 64 answers has 512 MB
    no = refused(plan_multiply, manifest, (64, k), coordinator_memory_mb=512, **sizes)
    assert no.argument == "coordinator_memory_mb"
    plan_multiply(manifest, (64, k), coordinator_memory_mb=no.fits, **sizes)


def test_answers_that_the_coordinator_cannot_hold_are_no_reason_to_refuse() -> None:
    manifest = encoding(rows=2_000_000, columns=64).manifest
    plan_multiply(manifest, (64, 400), on="lambda", coordinator_memory_mb=512)


@pytest.mark.parametrize(
    ("options", "argument", "fits"),
    [
        ({"worker_memory_mb": 64}, "worker_memory_mb", 128),
        ({"worker_memory_mb": 20_000}, "worker_memory_mb", 10_240),
        ({"worker_timeout": 901}, "worker_timeout", 900),
        ({"worker_timeout": 0}, "worker_timeout", 1),
        ({"platform": Platform(event_max_bytes=100)}, "event", 100),
    ],
)
def test_settings_that_lambda_does_not_have_are_refused(options, argument: str, fits) -> None:
    no = refused(plan_multiply, encoding().manifest, (512,), **options)
    assert (no.argument, no.fits) == (argument, fits)


@pytest.mark.parametrize("shape", [(), (511,), (512, 0), (512, 2, 2), (1, 512)])
def test_an_x_of_the_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    no = refused(plan_multiply, encoding().manifest, shape)
    assert no.argument == "x" and "(512,) or (512, k)" in str(no)


@pytest.mark.parametrize("dtype", ["complex128", "U3", object, "M8[s]"])
def test_an_x_that_is_not_real_numbers_is_refused(dtype) -> None:
    assert refused(plan_multiply, encoding().manifest, (512,), dtype).argument == "x"


def test_encoding_with_too_little_memory_names_the_memory_that_would_do() -> None:
    no = refused(encoding, memory=1 << 20)
    assert no.argument == "memory"
    encoding(memory=no.fits)


def test_more_workers_than_an_account_may_run_is_noted() -> None:
    manifest = encoding(workers=1024, data_blocks=960).manifest
    notes = plan_multiply(manifest, (512,)).notes
    assert any("concurrency of 1,000" in note for note in notes)


def test_a_plan_for_thousands_of_workers_stays_small() -> None:
    plan = encoding(rows=10**6, workers=1 << 14, data_blocks=15_000)
    run = plan_multiply(plan.manifest, (512,), platform=Platform(concurrency=1 << 14))
    assert run.time.rounds == 128
    assert 15_000 <= run.arrivals_mean <= run.arrivals_p99 <= 1 << 14


def test_stalls_longer_than_the_time_out_are_noted() -> None:
    notes = plan_multiply(encoding().manifest, (512,), worker_timeout=20).notes
    assert any("counts as lost" in note for note in notes)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_platform_figure_must_make_sense(value: float) -> None:
    with pytest.raises(ValueError, match="s3_read_rate must be positive"):
        Platform(s3_read_rate=value)
