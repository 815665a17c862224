from __future__ import annotations

import numpy as np
import pytest

from coordinator.planning import PlanRefused, choose_code, plan_encoding, plan_multiply
from coordinator.waiting import decisive_counts, waiting_times
from polarcodes import CODE_NAMES, InvalidCode, make_code
from polarcodes.thresholds import decoding_times

SIZES = {
    "berrut": (12, 8),
    "hadamard": (16, 12),
    "lt": (16, 10),
    "mds": (12, 8),
    "polar": (16, 12),
    "product": (16, 9),
    "replication": (14, 6),
    "uncoded": (9, 9),
}


def code_of(name, **options):
    workers, blocks = SIZES[name]
    return make_code(name, workers=workers, data_blocks=blocks, **options)


def test_replication_in_closed_form_is_what_the_code_says() -> None:
    code = code_of("replication")
    times = np.random.default_rng(0).exponential(size=(200, code.workers))
    np.testing.assert_array_equal(waiting_times(code, times), decoding_times(code, times))


@pytest.mark.parametrize("name", ["product", "lt", "mds", "berrut"])
def test_times_from_sampled_thresholds_have_the_mean_of_exact_ones(name: str) -> None:
    code = code_of(name)
    rng = np.random.default_rng(1)
    times = rng.exponential(size=(2_000, code.workers))
    exact = decoding_times(code, times)
    quick = waiting_times(code, times, decisive_counts(code, rng, 60))
    # 60 thresholds: their mean is known to std / sqrt(60), four of which must cover the difference
    assert abs(quick.mean() - exact.mean()) <= 4 * exact.std() / np.sqrt(60)


def test_one_plain_round_waits_for_a_few_more_than_s() -> None:
    code = make_code("hadamard", workers=64, data_blocks=56, rounds=1)
    counts = decisive_counts(code, np.random.default_rng(0), 60)
    assert 56.5 < counts.mean() < 58.5, "57.4 measured by benchmarks.thresholds"
    assert decisive_counts(code, np.random.default_rng(0), quick=True).tolist() == [58]


@pytest.mark.parametrize("dtype", ["u1", "f4"])
@pytest.mark.parametrize("name", CODE_NAMES)
def test_every_code_is_chosen_and_planned(name: str, dtype: str) -> None:
    choice = choose_code((1_000, 20), dtype, code=name)
    assert choice.code == name
    assert 1 <= choice.data_blocks <= choice.workers <= 512
    plan = plan_encoding((1_000, 20), dtype, code=name, workers=choice.workers)
    run = plan_multiply(plan.manifest, (20,))
    assert choice.data_blocks <= run.arrivals_mean <= run.arrivals_p99 <= choice.workers


def test_the_default_follows_dtype_and_size() -> None:
    def chosen(dtype: str, workers: int) -> tuple[str, dict[str, object]]:
        choice = choose_code((1_000, 20), dtype, workers=workers)
        assert any(line.startswith("code = ") for line in choice.explanation)
        return choice.code, dict(choice.options)

    assert chosen("f4", 8) == chosen("f8", 256) == ("hadamard", {})
    assert chosen("u1", 32) == ("polar", {})
    assert chosen("u1", 64) == chosen("i8", 24) == chosen("?", 128) == ("hadamard", {"rounds": 1})


def test_the_default_keeps_small_integers_in_two_bytes() -> None:
    for workers in (16, 64, 128):
        plan = plan_encoding((1_000, 20), "u1", workers=workers, redundancy=0.125)
        assert plan.manifest.dtype == "<i2"


def test_options_are_checked_and_belong_to_a_code() -> None:
    with pytest.raises(InvalidCode, match="no option 'rounds'"):
        choose_code((100, 20), "u1", code="polar", options={"rounds": 1})
    with pytest.raises(InvalidCode, match="rounds"):
        choose_code((100, 20), "u1", code="hadamard", options={"rounds": 3})
    with pytest.raises(InvalidCode, match=r"code must be one of auto, .*got 'nonsense'"):
        choose_code((100, 20), "u1", code="nonsense")
    with pytest.raises(PlanRefused, match="rounds need the name of their code"):
        choose_code((100, 20), "u1", options={"rounds": 1})


def test_a_product_code_takes_the_grid_nearest_to_the_redundancy() -> None:
    assert (
        choose_code((1_000, 20), "u1", code="product", redundancy=0.25, workers=64).data_blocks
        == 49
    )
    assert choose_code((1_000, 20), "u1", code="product", data_blocks=49).workers == 64
