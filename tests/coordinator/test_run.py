"""Whole runs in memory, on simulated time: faults as a table, exact invocation counts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockstore import keys
from blockstore.arrays import decode_array
from coordinator import events
from coordinator.inputs import InputRefused
from coordinator.invoker import FunctionMissing
from coordinator.until import UntilRefused
from tests.coordinator.fake_platform import (
    Answer,
    Damaged,
    Fail,
    Platform,
    Refused,
    Silent,
)
from tests.coordinator.one_run import (
    RUN,
    TIMEOUT,
    close,
    resume,
    silent,
    start,
    store,
)


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
@pytest.mark.parametrize("rows", [31, 1, 5, 33])  # fewer rows than blocks, padding, none
def test_an_undisturbed_run_is_exact_verified_and_written(k, dtype, rows):
    platform = Platform(k=k, dtype=dtype, rows=rows)
    outcome = start(platform)
    assert (outcome.state, outcome.met, outcome.exact) == ("exact", True, True)
    assert outcome.verified and "hold" in outcome.verification
    assert outcome.value.shape == platform.product.shape and close(outcome.value, platform.product)
    assert outcome.value.dtype == dtype
    assert outcome.error == outcome.error_upper == 0.0
    written = decode_array(platform.bucket.objects[outcome.result_key].body)
    np.testing.assert_array_equal(written, outcome.value)
    status = store(platform).get_status()
    assert (status.state, status.exact, status.verified) == ("exact", True, True)
    assert len(platform.invoked) == platform.workers


TABLE = {
    # name: (table, options, state, met, workers invoked a second time)
    "one silent": ({3: [Silent()]}, {}, "exact", True, 0),
    "one fails": ({3: [Fail()]}, {}, "exact", True, 0),
    "one fatal": ({3: [Fail("NotFinite", True)]}, {}, "exact", True, 0),
    "eight fail, then answer": ({w: [Fail(), Answer()] for w in range(8)}, {}, "exact", True, 8),
    "eight silent, then answer": (
        {w: [Silent(), Answer()] for w in range(8)},
        {},
        "exact",
        True,
        8,
    ),
    "eight fail for ever": ({w: [Fail()] for w in range(8)}, {}, "estimated", False, 8),
    "eight silent for ever": (silent(8), {}, "estimated", False, 8),
    "eight damaged, then answer": (
        {w: [Damaged("cut"), Answer()] for w in range(8)},
        {},
        "exact",
        True,
        8,
    ),
    "eight fatal": ({w: [Fail("NotFinite", True)] for w in range(8)}, {}, "failed", False, 0),
    "nan in answers": ({w: [Damaged("nan")] for w in range(8)}, {}, "failed", False, 0),
    "wrong shapes": ({w: [Damaged("shape")] for w in range(8)}, {}, "failed", False, 0),
    "another x": ({w: [Damaged("other x")] for w in range(8)}, {}, "failed", False, 0),
    "all fatal": ({w: [Fail("AccessDenied", True)] for w in range(16)}, {}, "failed", False, 0),
    "all silent": (silent(16), {}, "failed", False, 16),
    "eight throttled, then answer": (
        {w: [Refused(), Answer()] for w in range(8)},
        {},
        "exact",
        True,
        8,
    ),
    "no function": (
        {w: [Refused("FunctionMissing", True)] for w in range(16)},
        {},
        "failed",
        False,
        0,
    ),
    "late answers": ({w: [Answer(70.0)] for w in range(3)}, {}, "exact", True, 0),
    "slow, deadline": (
        {w: [Answer(50.0)] for w in range(16)},
        {"deadline": 5.0},
        "failed",
        False,
        0,
    ),
    "half, deadline": (
        {w: [Answer(50.0)] for w in range(8)},
        {"deadline": 5.0},
        "estimated",
        False,
        0,
    ),
    "half, seconds": (
        {w: [Answer(50.0)] for w in range(8)},
        {"until": "seconds=5"},
        "estimated",
        True,
        0,
    ),
    "half, error": (
        {w: [Answer(50.0)] for w in range(8)},
        {"until": "error=1"},
        "estimated",
        True,
        0,
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_faults(name):
    table, options, state, met, again = TABLE[name]
    platform = Platform(table=table)
    outcome = start(platform, **options)
    assert (outcome.state, outcome.met) == (state, met), outcome.message
    assert len(platform.invoked) == platform.workers + again
    status = store(platform).get_status()
    assert status.state == state and status.message == outcome.message
    report = store(platform).get_report()
    assert report["state"] == state and report["arrivals"] == outcome.arrivals
    if state == "exact":
        assert close(outcome.value, platform.product)
    elif outcome.value is not None:
        kept = decode_array(platform.bucket.objects[keys.estimate_key(RUN)].body)
        np.testing.assert_array_equal(kept, outcome.value)
        assert outcome.error_upper >= outcome.error > 0
    stops = [key for key in platform.bucket.objects if key.startswith(keys.stop_prefix(RUN))]
    assert len(stops) == (2 if again else 1)  # nobody is paid any longer
    if state == "estimated" and again:
        assert "; 8 of 16 answered. 8 of 16 workers: " in outcome.message
    reported = [r for row in table.values() for r in row[:1] if isinstance(r, Fail)]
    if state != "exact" and reported:
        assert {r.type for r in outcome.worker_errors} >= {r.kind for r in reported}


@pytest.mark.parametrize("options", [{"deadline": 0.15}, {"until": "seconds=0.15"}])
def test_answers_that_are_there_when_the_time_is_up_are_used(options):
    """The first look comes after the time allowed: a slow client, a short time."""
    platform = Platform(table={w: [Answer(50.0)] for w in range(8)})
    platform.clock.sleep = lambda seconds: setattr(platform.clock, "time", platform.clock.time + 1)
    outcome = start(platform, **options)
    assert (outcome.state, outcome.arrivals) == ("estimated", 8)
    assert outcome.value is not None and outcome.met == ("until" in options)


def test_a_silent_worker_is_given_up_at_its_timeout_and_not_before():
    platform = Platform(table=silent(8))
    outcome = start(platform)
    assert 2 * TIMEOUT <= outcome.seconds <= 2 * TIMEOUT + 5


def test_every_error_is_shown_even_in_an_exact_run():
    platform = Platform(table={2: [Fail("NotFinite", True, after=0.01)]})
    outcome = start(platform)
    assert outcome.state == "exact"
    assert [(r.worker, r.type) for r in outcome.worker_errors] == [(2, "NotFinite")]
    assert store(platform).get_report()["failures"][0]["type"] == "NotFinite"


def test_a_wrong_answer_contradicts_the_left_over_equations_and_nothing_exact_is_written():
    platform = Platform(table={4: [Damaged("wrong")]})
    outcome = start(platform)
    assert (outcome.state, outcome.exact, outcome.met) == ("failed", False, False)
    assert "left-over equations" in outcome.message
    assert keys.final_result_key(RUN) not in platform.bucket.objects


def test_without_left_over_equations_the_result_is_exact_but_not_verified():
    outcome = start(Platform(code_name="uncoded", workers=11))
    assert (
        outcome.exact
        and not outcome.verified
        and "not verified: 11 answers" in outcome.verification
    )


@pytest.mark.parametrize("workers,data_blocks", [(12, 8), (13, 9), (50, 37)])
def test_any_number_of_workers_is_exact_with_answers_missing(workers, data_blocks):
    outcome = start(Platform(workers=workers, data_blocks=data_blocks, table=silent(2)))
    assert outcome.exact and outcome.verified, outcome.message
    assert outcome.arrivals < workers
    assert close(outcome.value, Platform(workers=workers, data_blocks=data_blocks).product)


@pytest.mark.parametrize("size", [1e300, 1e-300, 0.0])
def test_values_of_any_size_are_exact_and_verified_and_a_wrong_one_is_seen(size):
    platform = Platform(dtype="<f8", scale=size)
    outcome = start(platform)
    assert outcome.exact and outcome.verified, outcome.message
    np.testing.assert_allclose(outcome.value / (size or 1), platform.product / (size or 1), 1e-9)
    platform = Platform(dtype="<f8", scale=size, table={4: [Damaged("wrong")]})
    assert start(platform).state == ("failed" if size else "exact")


def test_rounding_in_the_encoder_is_no_contradiction_for_an_x_of_higher_precision():
    """Blocks in float32 hold rounded sums; with x in float64 the answers do not hide that."""
    platform = Platform()
    platform.x = platform.x.astype("<f8") + 1e-9
    outcome = start(platform)
    assert outcome.exact and outcome.verified and outcome.value.dtype == np.float64
    assert close(outcome.value, platform.product)


def test_a_product_that_cancels_is_no_contradiction():
    """Answers rounded at the scale of their sums, a product far below it."""
    platform = Platform(rows=220)
    rng = np.random.default_rng(0)
    platform.coded = (
        platform.code.encode(np.full((11, 20 * 9), 1e-9) * rng.standard_normal((11, 180)))
        .reshape(16, 20, 9)
        .astype("<f4")
    )
    noise = {w: rng.standard_normal(20) * 6e-8 for w in range(16)}
    right = platform._answer

    def rounded(task, outcome, since):
        from blockstore.arrays import encode_array

        stored = right(task, outcome, since)
        stored.body = encode_array((decode_array(stored.body) + noise[task.worker]).astype("<f4"))
        return stored

    platform._answer = rounded
    assert start(platform).state == "exact"


def test_events_tell_the_story_in_order():
    seen: list[events.Event] = []
    platform = Platform(table={w: [Fail(), Answer()] for w in range(8)})
    start(platform, on_event=seen.append)
    kinds = [type(event) for event in seen]
    assert kinds[0] is events.Dispatched and kinds[-1] is events.Finished
    for kind in (events.Failed, events.Estimated, events.Reinvoked, events.Decodable):
        assert kind in kinds
    assert kinds.index(events.Decodable) < kinds.index(events.Decoded)
    assert [e.t for e in seen] == sorted(e.t for e in seen)
    arrivals = [e.arrivals for e in seen if isinstance(e, events.Arrived)]
    assert arrivals == list(range(1, len(arrivals) + 1))
    estimates = [e for e in seen if isinstance(e, events.Estimated)]
    assert all(e.value.shape == platform.product.shape for e in estimates)


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(16)), st.integers(0, 5))
def test_any_order_and_duplicates_give_a_result_that_depends_on_the_decisive_set_alone(order, dup):
    delays = {w: [Answer(0.05 + 0.3 * place)] for place, w in enumerate(order)}
    platform = Platform(table=delays)
    outcome = start(platform)
    assert outcome.exact and close(outcome.value, platform.product)
    decisive = json.loads(platform.bucket.objects[keys.run_key(RUN)].body)["decisive"]
    assert set(order[: len(decisive)]) == set(decisive)
    for worker in order[:dup]:  # a second delivery of an event writes nothing new
        assert not store(platform).put_result(worker, np.zeros(3), {})
    again = resume(platform)
    assert again.value.tobytes() == outcome.value.tobytes()


@pytest.mark.parametrize("spoil", ["x length", "x nan", "x complex", "x 3-D", "until", "deadline"])
def test_bad_input_is_refused_before_anything_is_written_or_invoked(spoil):
    platform = Platform()
    options = {}
    if spoil == "x length":
        platform.x = np.ones(8, "f4")
    elif spoil == "x nan":
        platform.x[4] = np.nan
    elif spoil == "x complex":
        platform.x = platform.x.astype("c8")
    elif spoil == "x 3-D":
        platform.x = np.ones((9, 1, 1))
    elif spoil == "until":
        options["until"] = "soon"
    else:
        options["deadline"] = -1.0
    with pytest.raises((InputRefused, UntilRefused), match=spoil.split()[0]):
        start(platform, **options)
    assert platform.bucket.requests == [] and platform.invoked == []


def test_a_missing_function_is_noticed_before_anything_is_written():
    platform = Platform(missing=True)
    with pytest.raises(FunctionMissing):
        start(platform)
    assert platform.bucket.requests == []


def test_big_endian_and_strided_x_are_taken():
    platform = Platform()
    platform.x = np.repeat(platform.x, 2).astype(">f8")[::2]
    assert close(start(platform).value, platform.product)


def test_estimates_are_published_while_running_but_not_too_often():
    platform = Platform(table={w: [Answer(0.1 * (w + 1))] for w in range(16)})
    seen = []
    start(platform, on_event=lambda e: seen.append(e) if isinstance(e, events.Estimated) else None)
    assert len(seen) >= 2
    gaps = np.diff([e.t for e in seen])
    assert (gaps >= 0.5).all()
