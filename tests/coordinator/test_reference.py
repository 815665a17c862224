"""The difference form: A x by way of an exact earlier product, and what is refused as reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from blockstore import keys
from blockstore.arrays import decode_array
from blockstore.runs import RunStore
from coordinator.inputs import InputRefused
from coordinator.run import resume_run
from tests.coordinator.fake_platform import Answer, Platform, Silent
from tests.coordinator.one_run import BILLING, RUN, close, silent, start

SECOND, THIRD = (keys.new_run_id(1_700_000_001_000 + n, bytes(10)) for n in range(2))
LATE = {worker: [Answer(50.0)] for worker in range(6)}


def at(platform: Platform, x: np.ndarray, run: str, **options):
    """The product with another x on the same platform."""
    platform.x = x
    return start(platform, run=run, **options)


def near(platform: Platform, step: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return platform.x.astype("f8") + step * rng.standard_normal(platform.x.shape)


@pytest.mark.parametrize("kinds", [("zarr", "npy"), ("npy", "zarr"), ("zarr", "zarr")])
def test_a_product_may_lie_in_the_bucket_as_zarr(kinds):
    platform = Platform(k=2, dtype="<f8")
    first = start(platform, result=kinds[0])
    second = at(platform, near(platform, 0.1), SECOND, reference=first.run, result=kinds[1])
    third = at(platform, near(platform, 0.1), THIRD, reference=second.run)
    assert third.exact
    np.testing.assert_allclose(third.value, platform.product, rtol=1e-9)


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i2"])
def test_an_exact_difference_added_to_an_exact_reference_is_the_exact_product(k, dtype):
    platform = Platform(k=k, dtype=dtype, scale=1.0 if dtype != "<i2" else 100.0)
    first = start(platform)
    x = near(platform, 1e-3)
    second = at(platform, x, SECOND, reference=first.run)
    assert (second.state, second.exact, second.verified) == ("exact", True, True)
    assert second.reference == first.run and second.value.dtype == np.float64
    assert second.value.shape == platform.product.shape
    error = np.linalg.norm(second.value - platform.product) / np.linalg.norm(platform.product)
    assert error <= 10 * second.rounding and second.rounding < 1e-5
    written = decode_array(platform.bucket.objects[second.result_key].body)
    np.testing.assert_array_equal(written, second.value)


def test_workers_get_the_difference_and_the_x_that_was_asked_for_is_kept():
    platform = Platform(k=2)
    first = start(platform)
    before, x = platform.x, near(platform, 0.1)
    at(platform, x, SECOND, reference=first.run)
    store = RunStore(platform.bucket, SECOND)
    np.testing.assert_array_equal(store.load_x(), x - before.astype("f8"))
    np.testing.assert_array_equal(store.load_asked(), x)
    spec = store.load_spec()
    assert (spec.reference, spec.x_dtype) == (first.run, "<f8")
    assert store.get_report()["reference"] == first.run


def test_an_exact_run_with_a_reference_is_a_reference_itself():
    platform = Platform(dtype="<f8")
    x0, direction = platform.x.astype("f8"), near(platform, 1.0)
    run, rounding = at(platform, x0, RUN).run, []
    for number in range(5):
        name = keys.new_run_id(1_700_000_002_000 + number, bytes(10))
        outcome = at(platform, x0 + 0.1 * number * direction, name, reference=run)
        error = np.linalg.norm(outcome.value - platform.product)
        assert error <= 10 * outcome.rounding * np.linalg.norm(platform.product)
        run = outcome.run
        rounding.append(outcome.rounding)
    assert rounding[-1] < 1e-13


def test_the_error_of_an_estimate_is_relative_to_the_whole_product_and_shrinks_with_the_step():
    wide = {"workers": 64, "data_blocks": 48, "rows": 480, "columns": 40, "dtype": "<f8"}
    table = {worker: [Silent()] for worker in range(32)}
    errors = []
    for step in (0.1, 0.01, 0.001):
        platform = Platform(**wide)
        first = start(platform)
        platform.table = table
        x = near(platform, step)
        second = at(platform, x, SECOND, reference=first.run, until="seconds=5")
        assert second.state == "estimated" and second.method.endswith("from reference")
        true = np.linalg.norm(second.value - platform.product) / np.linalg.norm(platform.product)
        assert 0.5 < true / second.error < 2 and second.error < second.error_upper
        status = RunStore(platform.bucket, SECOND).get_status()
        assert status.error == second.error
        errors.append(second.error)
    assert errors[0] / errors[2] == pytest.approx(100, rel=0.3)
    without = at(platform, x, THIRD, until="seconds=5")
    assert without.error > 5 * errors[0]


def test_error_x_is_met_by_fewer_answers_than_without_a_reference():
    platform = Platform(workers=64, data_blocks=48, rows=480, columns=40, dtype="<f8")
    first = start(platform)
    x = near(platform, 0.02)
    platform.table = {w: [Answer(0.1 + w * 0.2)] for w in range(64)}
    second = at(platform, x, SECOND, reference=first.run, until="error=0.02")
    assert second.met and second.state == "estimated" and second.error <= 0.02
    true = np.linalg.norm(second.value - platform.product) / np.linalg.norm(platform.product)
    assert true < 0.04
    without = at(platform, x, THIRD, until="error=0.02")
    assert without.exact and second.arrivals < 0.7 * without.arrivals


def test_the_same_x_again_is_known_from_the_first_answer():
    platform = Platform(table={worker: [Answer(5.0)] for worker in range(1, 16)})
    first = start(platform)
    second = start(platform, run=SECOND, reference=first.run, until="error=0.01")
    assert second.met and second.error == 0.0 and second.arrivals == 1
    np.testing.assert_array_equal(second.value, first.value)


def test_rows_that_tasks_ends_without_are_those_of_the_reference():
    platform = Platform(code_name="uncoded", workers=8, data_blocks=8, rows=32, dtype="<f8")
    first = start(platform)
    before = first.value
    x = near(platform, 0.1)
    platform.table = {7: [Silent()]}
    second = at(platform, x, SECOND, reference=first.run, until="tasks=0.8")
    assert second.met and second.missing_rows == ((28, 32),)
    np.testing.assert_array_equal(second.value[28:], before[28:])
    np.testing.assert_allclose(second.value[:28], platform.product[:28], rtol=1e-12)
    assert 0 < second.error < 0.2


def test_a_run_with_a_reference_is_resumed_with_the_same_bytes():
    platform = Platform(k=2, table=LATE)
    first = start(platform)
    x, left = near(platform, 0.1), iter([10.0])
    platform.x = x
    options = {"invoker": platform, "clock": platform.clock, "billing": BILLING}
    handed = start(platform, run=SECOND, reference=first.run, time_left=lambda: next(left, 10.0))
    assert handed.state == "running"
    platform.reports()
    done = resume_run(platform.bucket, SECOND, **options)
    assert done.exact and done.reference == first.run and close(done.value, platform.product)
    again = resume_run(platform.bucket, SECOND, **options)  # read back, not computed
    assert again.reference == first.run
    np.testing.assert_array_equal(again.value, done.value)


def test_a_resumed_run_whose_reference_is_gone_says_so():
    platform = Platform(table=LATE)
    first = start(platform)
    platform.x = near(platform, 0.1)
    start(platform, run=SECOND, reference=first.run, time_left=lambda: 10.0)
    del platform.bucket.objects[keys.final_result_key(first.run)]
    with pytest.raises(InputRefused, match="not whole any more"):
        resume_run(platform.bucket, SECOND, invoker=platform, clock=platform.clock)


def test_an_estimate_is_refused_as_reference_because_errors_would_add_up():
    """What the refusal prevents: a chain of estimates keeps an error while its steps vanish."""
    wide = {"workers": 64, "data_blocks": 48, "rows": 480, "columns": 40, "dtype": "<f8"}
    platform = Platform(**wide, table=silent(24))
    first = start(platform, until="seconds=5")
    assert first.state == "estimated"
    with pytest.raises(InputRefused, match="estimated, not exact"):
        at(platform, near(platform, 0.1), SECOND, reference=first.run)
    assert keys.run_key(SECOND) not in platform.bucket.objects
    exact = at(Platform(**wide), platform.x, RUN)
    code, product = platform.code, platform.product.reshape(48, -1)
    S = list(range(24, 64))
    chained = code.estimate(S, code.encode(product)[S]).value
    kept = np.linalg.norm(chained - product)
    for step in (1e-2, 1e-4, 1e-6):  # differences of ever smaller steps on top of it
        change = step * product
        chained = chained + code.estimate(S, code.encode(change)[S]).value
        product = product + change
        assert np.linalg.norm(chained - product) > 0.9 * kept
    assert exact.exact


def refuse(platform: Platform, words: str, reference: str = RUN, **options) -> None:
    before = dict(platform.bucket.objects)
    invoked = list(platform.invoked)
    with pytest.raises(InputRefused, match=words):
        start(platform, run=SECOND, reference=reference, **options)
    assert platform.bucket.objects == before and platform.invoked == invoked


def test_what_cannot_be_a_reference_is_refused_and_nothing_is_written():
    platform = Platform()
    refuse(platform, "there is no run", reference=THIRD)
    start(platform)
    platform.x = np.ones((9, 2), "f4")
    refuse(platform, r"shape \(9,\), but this x has shape \(9, 2\)")
    platform.x = np.ones(9, "f4")
    manifest = platform.manifest
    platform.manifest = replace(manifest, source_digest="sha256:1")
    refuse(platform, "an earlier encoding of 'photos'")
    platform.manifest = manifest
    spec = RunStore(platform.bucket, RUN).load_spec()
    RunStore(platform.bucket, RUN).save_spec(replace(spec, right="other"))
    refuse(platform, "two encoded matrices")
    RunStore(platform.bucket, RUN).save_spec(spec)
    platform.manifest = replace(manifest, name="others")
    refuse(platform, "a product of matrix 'photos'")
    platform.manifest = manifest
    platform.bucket.put(keys.x_key(RUN), platform.bucket.objects[keys.final_result_key(RUN)].body)
    refuse(platform, "not whole any more")


def test_a_difference_beyond_float64_is_refused():
    platform = Platform(scale=1e-200)
    platform.x = np.full(9, 1e308)
    start(platform)
    platform.x = -platform.x
    refuse(platform, "overflows float64")


def test_a_product_of_a_reference_that_was_not_verified_is_not_verified():
    platform = Platform(code_name="uncoded", workers=8, data_blocks=8)
    first = start(platform)
    assert first.exact and not first.verified
    second = start(platform, run=SECOND, reference=first.run)
    assert second.exact and not second.verified
