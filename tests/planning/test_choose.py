from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.planning import PlanRefused, choose_code
from polarcodes import CodeError
from polarcodes.delays import from_table, make_delays

IMAGES = ((1_281_167, 12_288), np.uint8)


def test_imagenet_64_gets_a_code_and_reasons_for_it() -> None:
    choice = choose_code(*IMAGES)
    assert 64 <= choice.workers <= 512 and choice.workers & (choice.workers - 1) == 0
    assert 0.02 <= choice.redundancy <= 0.25
    assert choice.time.pays
    text = "\n".join(choice.explanation)
    assert f"workers = {choice.workers}: the fewest within 10%" in text
    assert f"data_blocks = {choice.data_blocks}: the most within 5% of the least" in text
    assert "Coding pays" in text


def test_without_stragglers_coding_does_not_pay_and_the_choice_says_so() -> None:
    choice = choose_code(*IMAGES, workers=64, delays=make_delays("none"))
    assert choice.data_blocks == 63, "the least redundancy on offer"
    assert not choice.time.pays and choice.time.coded > choice.time.uncoded
    assert "Coding does not pay here" in choice.explanation[-1]


def test_more_stragglers_ask_for_more_redundancy() -> None:
    rng = np.random.default_rng(0)
    table = np.zeros((50, 64))
    table[:, :12] = 60.0
    many = from_table(rng.permuted(table, axis=1), name="twelve of 64 stall")
    few = from_table(rng.permuted(np.where(table, np.arange(64) < 1, 0) * 60.0, axis=1))
    by_many = choose_code(*IMAGES, workers=64, delays=many)
    by_few = choose_code(*IMAGES, workers=64, delays=few)
    assert by_many.data_blocks <= 52 < by_few.data_blocks


def test_what_is_given_is_kept() -> None:
    assert choose_code(*IMAGES, workers=128, data_blocks=100).data_blocks == 100
    assert choose_code(*IMAGES, workers=64, redundancy=0.125).data_blocks == 56
    assert choose_code(*IMAGES, workers=64, redundancy=0.001).data_blocks == 63, "at least one"
    assert choose_code(*IMAGES, workers=64, redundancy=0.0).data_blocks == 64
    assert choose_code(*IMAGES, data_blocks=56).workers == 64
    assert choose_code(*IMAGES, data_blocks=64).workers == 74, "room for redundancy"
    uncoded = choose_code(*IMAGES, workers=16, code="uncoded")
    assert (uncoded.code, uncoded.data_blocks) == ("uncoded", 16)
    assert choose_code(*IMAGES, data_blocks=52, code="uncoded").workers == 52


@settings(max_examples=8, deadline=None)
@given(
    st.integers(1, 10**7),
    st.integers(1, 10**5),
    st.sampled_from(["u1", "i2", ">i8", "u8", "?", "f2", "<f4", "f8"]),
)
def test_every_matrix_gets_a_valid_code(rows: int, columns: int, dtype: str) -> None:
    choice = choose_code((rows, columns), dtype)
    assert 1 <= choice.data_blocks < choice.workers <= 512
    assert 0 < choice.time.task < choice.time.coded <= choice.time.coded_p95 * 10


def test_a_small_matrix_does_not_get_hundreds_of_workers() -> None:
    assert choose_code((1, 10), "f8").workers == 8
    assert choose_code((20_000, 1_000), "f4").workers <= 32


@pytest.mark.parametrize(
    ("options", "argument", "message"),
    [
        ({"redundancy": 1.0}, "redundancy", "at least 0 and below 1; redundancy = 0.125 would fit"),
        ({"redundancy": float("nan")}, "redundancy", "at least 0 and below 1"),
        ({"redundancy": 0.1, "data_blocks": 56}, "redundancy", "give one of the two"),
    ],
)
def test_options_that_contradict_are_refused(
    options: dict[str, float], argument: str, message: str
) -> None:
    with pytest.raises(PlanRefused, match=message) as refused:
        choose_code(*IMAGES, workers=64, **options)
    assert refused.value.argument == argument


@pytest.mark.parametrize(
    ("shape", "dtype", "argument"),
    [
        ((10,), "f4", "shape"),
        ((2, 3, 4), "f4", "shape"),
        ((0, 4), "f4", "shape"),
        ((4, 4), "complex64", "dtype"),
        ((4, 4), object, "dtype"),
        ((4, 4), "U3", "dtype"),
        ((4, 4), [("a", "f4")], "dtype"),
        ((4, 4), "no-such-type", "dtype"),
    ],
)
def test_what_is_no_matrix_is_refused(shape, dtype, argument: str) -> None:
    with pytest.raises(PlanRefused) as refused:
        choose_code(shape, dtype)
    assert refused.value.argument == argument


@pytest.mark.parametrize("options", [{"workers": 1}, {"workers": 64, "data_blocks": 65}])
def test_a_code_that_does_not_exist_is_refused_by_the_code(options: dict[str, int]) -> None:
    with pytest.raises(CodeError):
        choose_code(*IMAGES, **options)


@pytest.mark.parametrize("given", [{"workers": 20_000}, {"data_blocks": 17_000}])
def test_more_workers_than_a_run_can_have_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(PlanRefused, match=r"16,?384"):
        choose_code(*IMAGES, **given)
