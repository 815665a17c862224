"""Options, domain, blocks and steps: pure functions and their refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.wait import WaitRefused, parse_wait
from polarcodes import InvalidCode
from polarlambda.errors import BadInput
from polarlambda.optimization.blocks import block_places
from polarlambda.optimization.domain import make_domain, read_start
from polarlambda.optimization.options import Options
from polarlambda.optimization.state import Figures, State
from polarlambda.optimization.steps import Stepper, bounded, next_radius


@given(parameters=st.integers(1, 40), size=st.integers(1, 40), seed=st.integers(0, 99))
def test_a_pass_of_blocks_visits_every_parameter(parameters, size, seed):
    size = min(size, parameters)
    blocks = -(-parameters // size)
    for turn in range(2):
        seen = set()
        for block in range(blocks):
            places = block_places(parameters, size, seed, turn * blocks + block)
            assert places.size == size == len(set(places))
            assert (np.diff(places) > 0).all()
            seen |= set(places)
        assert seen == set(range(parameters))


def test_adam_is_the_published_one():
    stepper = Stepper("adam", 0.1, 0.9)
    memory, places = stepper.start(2), np.arange(2)
    m, v, theta = np.zeros(2), np.zeros(2), np.zeros(2)
    for t in range(1, 6):
        gradient = np.array([t, -0.5])
        step, memory = stepper.step(memory, gradient, places)
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        expected = -0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        np.testing.assert_allclose(step, expected)
        theta += step


def test_a_block_leaves_the_memory_of_the_others():
    for optimizer in ("adam", "sgd"):
        stepper = Stepper(optimizer, 0.1, 0.9)
        step, memory = stepper.step(stepper.start(4), np.ones(2), np.array([1, 3]))
        assert step.shape == (2,)
        assert not memory[:, [0, 2]].any()
        assert memory[:, [1, 3]].any()


def test_the_trust_radius_halves_after_a_clear_loss_alone():
    assert next_radius(1.0, 1.0, -3.0, 1.0) == 0.5
    assert next_radius(1.0, 1.0, -1.0, 1.0) == 1.0
    assert next_radius(1.0, 1.0, 1.0, 1.0) == 1.2
    assert next_radius(9.9, 1.0, 1.0, 1.0) == 10.0
    np.testing.assert_allclose(bounded(np.array([3.0, 4.0]), 1.0), [3 / 12.5**0.5, 4 / 12.5**0.5])
    np.testing.assert_array_equal(bounded(np.array([0.1]), 1.0), [0.1])


def test_the_default_scale_is_the_box_or_the_size_of_theta():
    np.testing.assert_array_equal(make_domain(np.zeros(2), None, None).scale, [1, 1])
    np.testing.assert_array_equal(
        make_domain(np.array([3.0, -4, 0, 0]), None, None).scale, [2.5] * 4
    )
    half = make_domain(np.array([0.5, 2.0]), [[0, 1], [None, 4]], None)
    np.testing.assert_allclose(half.scale, [1.0, np.sqrt(4.25 / 2)])
    np.testing.assert_array_equal(half.low, [0, -np.inf])


def test_a_state_is_one_array_and_a_line_of_figures():
    domain = make_domain(np.zeros(3), [-1, 1], None)
    figures = Figures(iteration=3, score=1.5, failure="näh", dollars=0.25)
    state = State(np.arange(3.0) / 9, np.ones(3), np.full((2, 3), 7.0), domain, figures)
    metadata = figures.to_metadata()
    assert metadata["figures"].isascii()
    back = State.from_array(state.to_array(), Figures.from_metadata(metadata))
    np.testing.assert_array_equal(back.to_array(), state.to_array())
    assert back.figures.dollars == 0.25
    assert back.figures.radius == np.inf


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"directions": "random"}, "directions must be one of coded"),
        ({"optimizer": "newton"}, "optimizer must be one of adam, sgd"),
        ({"control": "x"}, "control must be one of"),
        ({"seeds": "x"}, "seeds must be one of"),
        ({"estimator": "x"}, "estimator must be one of"),
        ({"sigma": 0.0}, "sigma must be a number above 0"),
        ({"rate": float("nan")}, "rate must be a number above 0"),
        ({"momentum": 1.0}, r"momentum must be in \[0, 1\)"),
        ({"iterations": 0}, "iterations must be at least 1"),
        ({"seconds": -1.0}, "leave it out for no limit"),
        ({"dollars": 0.0}, "dollars must be above 0"),
        ({"target": float("inf")}, "target must be finite"),
        ({"block": 9}, "block must be 1 to the number of parameters, 5"),
        ({"evaluations": 3}, "evaluations must pay for one iteration, 14"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_options_that_cannot_be_are_refused(given, word):
    with pytest.raises(BadInput, match=word):
        Options(**given).check(5)


@pytest.mark.parametrize(
    "given", [{"workers": 3}, {"workers": 1}, {"redundancy": 1.0}, {"code": "lt"}]
)
def test_sizes_that_the_code_cannot_have_are_refused(given):
    with pytest.raises(InvalidCode):
        Options(**given).check(5)


@pytest.mark.parametrize(
    "text", ["", "some", "share=0", "share=1.1", "share=x", "seconds=-1", "all=1"]
)
def test_waits_that_make_no_sense_are_refused(text):
    with pytest.raises(WaitRefused, match="wait"):
        parse_wait(text)


@pytest.mark.parametrize("text", ["all", "decodable", "share=0.8", "seconds=5"])
def test_waits_are_written_as_they_are_read(text):
    assert str(parse_wait(text)) == text


@pytest.mark.parametrize(
    ("start", "word"),
    [
        ([], r"shape \(p,\)"),
        ([[1.0]], r"shape \(p,\)"),
        ([float("nan")], "finite"),
        (["a"], "must be numbers"),
    ],
)
def test_starts_that_are_no_points_are_refused(start, word):
    with pytest.raises(BadInput, match=word):
        read_start(start)


@pytest.mark.parametrize(
    ("bounds", "scale", "word"),
    [
        ([1, 0], None, "low < high"),
        ([[0, 1]], None, r"shape \(2,\) or \(2, 2\)"),
        ([0.6, 1], None, "outside its bounds"),
        ("ab", None, "bounds must be"),
        (None, 0.0, "scale must be above 0"),
    ],
)
def test_boxes_and_scales_that_cannot_be_are_refused(bounds, scale, word):
    with pytest.raises(BadInput, match=word):
        make_domain(np.array([0.5, 0.9]), bounds, scale)
