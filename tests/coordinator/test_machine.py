"""The rules of a run, as tables and as properties; no clock, no network."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.machine import step
from coordinator.pace import FASTEST, SLOWEST, pause
from coordinator.signals import (
    Action,
    Arrived,
    Decided,
    Decode,
    Decoded,
    Failed,
    Finish,
    Invoke,
    Invoked,
    Publish,
    Published,
    PutStop,
    Signal,
    Started,
    StopRequested,
    StoreDecisive,
    Tick,
    TimeLimitNear,
)
from coordinator.state import Rules, State, Task, deadline, initial_state
from coordinator.until import parse_until
from tests.coordinator.any_s_of_n import AnySOfN

N, S = 8, 6
TIMEOUT = 60.0


def fresh(until: str = "exact", **rules: float) -> State:
    return initial_state(AnySOfN(N, S), Rules(parse_until(until), TIMEOUT, **rules), opened=0.0)


def play(state: State, *signals: Signal) -> tuple[State, list[Action]]:
    """What the machine orders; a decisive set that it wants to keep is the first one."""
    done: list[Action] = []
    for signal in signals:
        state, actions = step(state, signal)
        done += actions
        for kept in [a.workers for a in actions if isinstance(a, StoreDecisive)]:
            state, actions = step(state, Decided(signal.at, kept))
            done += actions
    return state, done


def running(until: str = "exact", **rules: float) -> State:
    state, _ = play(fresh(until, **rules), Started(0.0), Invoked(0.0, tuple(range(N)), 1))
    return state


def finish(actions: list[Action]) -> Finish:
    return next(a for a in actions if isinstance(a, Finish))


def failed(worker: int, attempt: int = 1, kind: str = "StoreUnavailable", fatal: bool = False):
    return Failed(1.0, worker, attempt, kind, "text", fatal)


TICK = Tick(1.0)


def test_a_fresh_run_invokes_every_worker_once():
    _, actions = play(fresh(), Started(0.0))
    assert actions == [Invoke(tuple(range(N)), 1)]


def test_the_decisive_set_is_stored_before_it_is_decoded_and_holds_every_verified_answer():
    state, actions = play(running(), Arrived(1.0, (7, 1, 2)), Arrived(2.0, (0, 3, 4, 5)))
    decisive = (0, 1, 2, 3, 4, 5, 7)
    assert actions[-3:] == [StoreDecisive(decisive), PutStop(1), Decode(decisive)]
    state, actions = play(state, Arrived(3.0, (6,)), Decoded(3.5))
    assert finish(actions).state == "exact" and finish(actions).met
    assert state.decisive == decisive


def test_left_over_equations_that_do_not_hold_make_the_run_fail():
    _, actions = play(running(), Arrived(1.0, tuple(range(7))), Decoded(2.0, "workers disagree"))
    assert finish(actions) == Finish("failed", False, "workers disagree")


@pytest.mark.parametrize(
    ("until", "arrivals", "at", "state", "met"),
    [
        ("error=1.0", 4, 1.0, "estimated", True),  # sqrt(5 * 4 / (4 * 7)) = 0.845
        ("error=0.5", 4, 1.0, None, None),
        ("seconds=5", 4, 4.9, None, None),
        ("seconds=5", 4, 5.0, "estimated", True),
        ("seconds=5", 0, 5.0, "failed", False),
        ("exact", 5, 89.9, None, None),
    ],
)
def test_until(until, arrivals, at, state, met):
    after, actions = play(running(until), Arrived(0.5, tuple(range(arrivals))), Tick(at))
    ends = [a for a in actions if isinstance(a, Finish)]
    if state is None:
        assert not ends and after.phase == "collecting"
    else:
        assert (ends[0].state, ends[0].met) == (state, met)
        assert actions[actions.index(ends[0]) - 1] == PutStop(1)  # nobody is paid any longer


def test_a_set_that_becomes_decodable_ends_every_kind_of_run_exactly():
    for until in ("exact", "error=0.01", "seconds=50"):
        _, actions = play(running(until), Arrived(1.0, tuple(range(S))))
        assert Decode(tuple(range(S))) in actions


def test_a_deadline_given_counts_from_the_opening_and_the_default_from_the_last_invocation():
    _, actions = play(running(deadline=10.0), Arrived(1.0, (0,)), Tick(9.99), Tick(10.0))
    assert finish(actions).state == "estimated" and not finish(actions).met
    assert deadline(running()) == TIMEOUT + 30.0
    pending, _ = play(fresh(), Started(0.0), Tick(500.0))
    assert deadline(pending) is None and pending.phase == "collecting"


def test_silent_workers_are_invoked_once_more_at_their_timeout_then_the_run_ends():
    state, actions = play(running(), Arrived(1.0, (0, 1, 2, 3)), Published(1.0, 0.0))
    state, actions = play(state, Tick(TIMEOUT - 0.1))
    assert actions == []
    state, actions = play(state, Tick(TIMEOUT))
    assert actions == [Invoke((4, 5, 6, 7), 2)]
    state, actions = play(state, Invoked(61.0, (4, 5, 6, 7), 2), Tick(61.0 + TIMEOUT))
    assert not any(isinstance(a, Invoke) for a in actions)
    assert finish(actions).state == "estimated" and not finish(actions).met


def test_an_answer_after_the_timeout_still_counts():
    state, _ = play(running(), Arrived(1.0, (0, 1, 2, 3, 4)), Tick(TIMEOUT))
    _, actions = play(state, Arrived(TIMEOUT + 5, (7,)))
    assert Decode((0, 1, 2, 3, 4, 7)) in actions


def test_reported_failures_are_invoked_again_only_when_the_rest_cannot_decode():
    state, actions = play(running(), failed(0), failed(1), TICK)
    assert actions == []  # six others still run, six suffice
    state, actions = play(state, failed(2), TICK)
    assert actions == [Invoke((0, 1, 2), 2)]
    state, actions = play(state, failed(0), failed(0, attempt=2), failed(1, attempt=2), TICK)
    assert actions == []  # the late word of attempt 1 changes nothing; two may still fail
    state, actions = play(state, failed(2, attempt=2), Arrived(3.0, (3, 4, 5, 6)))
    assert Publish() in actions and not any(isinstance(a, Invoke) for a in actions)
    state, actions = play(state, Arrived(4.0, (7,)))
    assert finish(actions).state == "estimated"  # the fifth and last answer that could come


def test_the_same_fatal_error_everywhere_ends_the_run_at_once():
    _, actions = play(
        running(), *(failed(w, kind="AccessDenied", fatal=True) for w in range(3)), TICK
    )
    end = finish(actions)
    assert end.state == "failed" and "AccessDenied" in end.message


def test_a_fatal_error_is_never_invoked_again_and_does_not_spoil_an_exact_answer():
    state, actions = play(running(), failed(0, kind="NotFinite", fatal=True), TICK)
    assert actions == []
    _, actions = play(state, Arrived(2.0, (1, 2, 3, 4, 5, 6)))
    assert Decode((1, 2, 3, 4, 5, 6)) in actions


def test_fatal_errors_that_make_exactness_impossible_fail_the_run_with_their_text():
    state, actions = play(running(), Arrived(0.5, (7,)))
    kinds = [failed(w, kind="NotFinite", fatal=True) for w in range(3)]
    _, actions = play(state, *kinds, TICK)
    assert finish(actions).state == "failed" and "NotFinite" in finish(actions).message


@pytest.mark.parametrize("asked", ["cancelled", "stopped"])
def test_a_request_to_stop_puts_the_marker_and_ends(asked):
    _, actions = play(running(), Arrived(1.0, (0,)), StopRequested(2.0, asked))
    assert actions[-2] == PutStop(1) and finish(actions).state == asked


def test_near_the_time_limit_the_run_is_handed_over_without_a_stop_marker():
    _, actions = play(running(), Arrived(1.0, (0,)), TimeLimitNear(2.0))
    assert finish(actions).state == "running"
    assert not any(isinstance(a, PutStop) for a in actions)


def test_resume_waits_for_what_still_runs_and_invokes_nobody():
    tasks = [Task("running", 1, invoked=0.0)] * N
    state = initial_state(AnySOfN(N, S), fresh().rules, 10.0, tasks=tasks, attempt=1)
    state, actions = play(state, Arrived(10.0, (0, 1)), Started(10.0))
    assert not any(isinstance(a, Invoke) for a in actions)
    state, actions = play(state, Tick(TIMEOUT))
    assert Invoke((2, 3, 4, 5, 6, 7), 2) in actions


def test_resume_with_a_decisive_set_only_decodes():
    tasks = [Task("running", 1, invoked=0.0)] * N
    state = initial_state(
        AnySOfN(N, S), fresh().rules, 9.0, tasks=tasks, attempt=1, decisive=(0, 2, 3, 4, 5, 6)
    )
    _, actions = play(state, Arrived(9.0, tuple(range(N))), Started(9.0))
    assert actions == [PutStop(1), Decode((0, 2, 3, 4, 5, 6))]


def test_resume_invokes_blocks_that_were_never_invoked():
    tasks = [Task("running", 1, invoked=0.0)] * 5 + [Task()] * 3
    state = initial_state(AnySOfN(N, S), fresh().rules, 9.0, tasks=tasks, attempt=1)
    _, actions = play(state, Started(9.0))
    assert actions == [Invoke((5, 6, 7), 2)]


def test_publishing_takes_at_most_a_tenth_of_the_time():
    state, actions = play(running(), Arrived(1.0, (0,)))
    assert actions == [Publish()]
    state, actions = play(state, Published(1.5, 0.5), Arrived(2.0, (1,)), Tick(5.9))
    assert actions == []
    _, actions = play(state, Tick(6.0))  # 0.5 s of work, then 4.5 s without
    assert actions == [Publish()]


def test_nothing_new_is_not_published_again():
    _, actions = play(running(), Arrived(1.0, (0,)), Published(1.0, 0.0), Tick(30.0))
    assert actions == [Publish()]


def test_the_pause_is_short_near_the_decisive_answer_and_never_passes_a_deadline():
    far, _ = play(running(), Arrived(10.0, (0,)))
    near, _ = play(running(), Arrived(10.0, (0, 1, 2, 3, 4)))
    assert pause(near, 10.1) == FASTEST < pause(far, 10.1)
    assert pause(far, 50.0) == pytest.approx(1.2)
    assert pause(far, TIMEOUT - 0.5) == pytest.approx(0.5)
    patient = initial_state(AnySOfN(N, S), Rules(parse_until("exact"), 900.0), opened=0.0)
    assert pause(patient, 500.0) == SLOWEST
    young = replace(far, opened=9.9, last_news=9.9)
    assert pause(young, 10.3) == pytest.approx(0.1)
    assert pause(young, 11.0) == pytest.approx(0.2)
    assert pause(young, 9.9, fastest=0.02) == 0.02 < pause(young, 9.9) == FASTEST
    assert pause(near, 10.1, listing_seconds=0.8) == pytest.approx(0.8)


outcomes = st.lists(
    st.tuples(st.integers(0, N - 1), st.sampled_from(["answer", "fail", "fatal", "silent"])),
    max_size=40,
)


@given(outcomes, st.permutations(range(N)))
def test_whatever_happens_a_run_ends_once_and_is_exact_only_with_enough_answers(events, order):
    """Duplicates, late answers, failures in any order, then silence: the machine ends by itself,
    never decodes less than s answers, and invokes no block more than twice."""
    state, actions = play(fresh(), Started(0.0), Invoked(0.0, tuple(order), 1))
    at = 1.0
    for worker, outcome in events:
        at += 0.5
        attempt = state.tasks[worker].attempt
        if outcome == "answer":
            state, new = play(state, Arrived(at, (worker,)))
        elif outcome == "silent":
            state, new = play(state, Tick(at))
        else:
            state, new = play(state, Failed(at, worker, attempt, "E", "m", outcome == "fatal"))
        actions += new
    for _ in range(4):
        at += TIMEOUT + 31
        for action in [a for a in actions if isinstance(a, Invoke)][1:]:
            state, new = play(state, Invoked(at, action.workers, action.attempt))
            actions += new
        state, new = play(state, Tick(at))
        actions += new
        if state.phase == "decoding":
            state, new = play(state, Decoded(at))
            actions += new
    ends = [a for a in actions if isinstance(a, Finish)]
    assert len(ends) == 1 and state.phase == "finished"
    invoked = [w for a in actions if isinstance(a, Invoke) for w in a.workers]
    assert all(invoked.count(w) <= 2 for w in range(N))
    decoded = [a for a in actions if isinstance(a, Decode)]
    assert (ends[0].state == "exact") == bool(decoded)
    assert all(len(set(a.workers)) >= S for a in decoded)


@given(st.permutations(range(N)))
def test_the_order_of_answers_within_the_decisive_listing_does_not_matter(order):
    _, actions = play(running(), Arrived(1.0, tuple(order[:S])))
    assert Decode(tuple(sorted(order[:S]))) in actions


@pytest.mark.parametrize(
    "text", ["", "error", "error=", "error=0", "error=-1", "error=nan", "seconds=inf", "soon", 3]
)
def test_until_refuses_what_it_cannot_read(text):
    with pytest.raises(ValueError, match="until"):
        parse_until(text)


def test_until_reads_and_prints_the_three_forms():
    assert [str(parse_until(t)) for t in ("exact", "error=0.1", "seconds=5")] == [
        "exact",
        "error=0.1",
        "seconds=5",
    ]
