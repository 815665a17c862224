"""Slow workers invoked once more: the policy as tables, and in whole runs with every code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator import events
from coordinator.machine import step
from coordinator.pace import next_wakeup
from coordinator.relaunch import Relaunch, RelaunchRefused, parse_relaunch
from coordinator.signals import Arrived, Failed, Finish, Invoke, Invoked, Signal, Started, Tick
from coordinator.state import Rules, State, initial_state
from coordinator.until import parse_until
from polarcodes import CODE_NAMES
from tests.coordinator.any_s_of_n import AnySOfN
from tests.coordinator.fake_platform import Answer, Damaged, Fail, Parts, Platform, Refused, Silent
from tests.coordinator.one_run import RUN, close, resume, start, store

N = 8
TIMEOUT = 60.0


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        (None, None),
        ("share=0.9", Relaunch(share=0.9)),
        (0.75, Relaunch(share=0.75)),
        ("0.75", Relaunch(share=0.75)),
        (1, Relaunch(share=1.0)),
        ("times=3", Relaunch(times=3.0)),
        (" times=2.5 , share=0.5 ", Relaunch(0.5, 2.5)),
        (Relaunch(0.5, 2.5), Relaunch(0.5, 2.5)),
    ],
)
def test_what_is_read_is_printed_so_that_it_reads_the_same(given, policy):
    assert parse_relaunch(given) == policy
    if policy is not None:
        assert parse_relaunch(str(policy)) == policy


@pytest.mark.parametrize(
    "text",
    ["", "share", "share=", "share=0", "share=1.1", "times=0.9", "times=inf", "times=nan", "soon",
     "share=0.5,share=0.6", "share=0.5;times=2", "share=nan", -1, True, [0.5]],
)  # fmt: skip
def test_what_cannot_be_a_policy_is_refused(text):
    with pytest.raises(RelaunchRefused, match=r"relaunch .*(got|no form)"):
        parse_relaunch(text)


def running(policy: str, needed: int = N) -> State:
    rules = Rules(parse_until("exact"), TIMEOUT, relaunch=parse_relaunch(policy))
    state = initial_state(AnySOfN(N, needed), rules, opened=0.0)
    return play(state, Started(0.0), Invoked(0.0, tuple(range(N)), 1))[0]


def play(state: State, *signals: Signal) -> tuple[State, list[Invoke | Finish]]:
    done = []
    for signal in signals:
        state, actions = step(state, signal)
        done += [action for action in actions if isinstance(action, Invoke | Finish)]
    return state, done


ANSWERS = [Arrived(1.0 + w / 10, (w,)) for w in range(N)]  # the median, of the fourth, is 1.3 s


@pytest.mark.parametrize(
    ("policy", "answers", "at", "invoked"),
    [
        ("share=0.75", 5, 9.0, ()),
        ("share=0.75", 6, 1.6, (6, 7)),
        ("share=0.7", 6, 1.6, (6, 7)),
        ("times=2", 3, 50.0, ()),  # half of the workers: the median is not known before
        ("times=2", 4, 2.5, ()),
        ("times=2", 4, 2.6, (4, 5, 6, 7)),
        ("times=2", 7, 2.6, (7,)),
        ("share=0.75,times=2", 5, 9.0, ()),
        ("share=0.75,times=2", 6, 2.5, ()),
        ("share=0.75,times=2", 6, 2.6, (6, 7)),
    ],
)
def test_when_the_policy_invokes_whom(policy, answers, at, invoked):
    state, _ = play(running(policy), *ANSWERS[:answers])
    _, actions = play(state, Tick(at))
    assert actions == ([Invoke(invoked, 2, relaunch=True)] if invoked else [])


def test_the_loop_wakes_when_a_worker_becomes_slow():
    state, _ = play(running("times=2"), *ANSWERS[:4])
    assert next_wakeup(state) == pytest.approx(2.6)
    state, _ = play(state, Tick(2.6), Invoked(2.7, (4, 5, 6, 7), 2))
    assert next_wakeup(state) == pytest.approx(2.7 + TIMEOUT)


def test_no_worker_is_invoked_twice_by_the_policy():
    state, actions = play(running("share=0.5"), *ANSWERS[:4], Tick(2.0))
    assert actions == [Invoke((4, 5, 6, 7), 2, relaunch=True)]
    _, actions = play(state, Tick(3.0), Invoked(3.0, (4, 5, 6, 7), 2), ANSWERS[4], Tick(50.0))
    assert actions == []


def slow_one() -> State:
    state, _ = play(running("share=0.8"), *ANSWERS[:7], Tick(2.0), Invoked(2.0, (7,), 2))
    return state


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_one_of_two_attempts_that_fails_leaves_the_other(order):
    first, second = (Failed(3.0, 7, attempt, "E", "m") for attempt in order)
    state, actions = play(slow_one(), first, Tick(3.0))
    assert actions == [] and state.tasks[7].open
    state, actions = play(state, second, Tick(4.0))
    assert actions == [Invoke((7,), 3)]  # lost for good: the rule for lost blocks
    _, actions = play(state, Failed(5.0, 7, 3, "E", "m"), Tick(5.0))
    assert [type(a) for a in actions] == [Finish]


def test_a_fatal_error_of_either_attempt_ends_both():
    for attempt in (1, 2):
        _, actions = play(slow_one(), Failed(3.0, 7, attempt, "NotFinite", "m", True), Tick(3.0))
        assert actions == [Finish("failed", False, "1 of 8 workers: NotFinite: m")]


def test_an_invocation_that_fails_leaves_the_slow_attempt_with_its_own_time_out():
    state, _ = play(running("share=0.8"), *ANSWERS[:7], Tick(2.0))
    state, actions = play(state, Failed(2.1, 7, 2, "InvokeUnavailable", "m"), Tick(TIMEOUT - 1))
    assert actions == [] and state.tasks[7].attempt == 1
    _, actions = play(state, Tick(TIMEOUT))
    assert actions == [Invoke((7,), 3)]


def test_lost_workers_are_invoked_by_the_policy_too():
    state, _ = play(running("share=0.5", needed=6), *ANSWERS[:4])
    _, actions = play(state, Failed(2.0, 4, 1, "E", "m"), Tick(2.0))
    assert actions == [Invoke((4, 5, 6, 7), 2, relaunch=True)]


steps = st.lists(
    st.tuples(st.sampled_from(["answer", "fail", "tick"]), st.integers(0, N - 1)), max_size=40
)


@given(steps, st.sampled_from(["share=0.3", "times=1", "share=0.6,times=1.5"]))
def test_whatever_happens_a_block_is_invoked_three_times_at_most(happening, policy):
    state, done = running(policy, needed=6), []
    at = 1.0
    for what, worker in happening:
        at += 0.4
        attempt = state.tasks[worker].attempt
        signal: Signal = Tick(at)
        if what == "answer":
            signal = Arrived(at, (worker,))
        elif what == "fail":
            signal = Failed(at, worker, attempt, "E", "m")
        state, actions = play(state, signal)
        done += actions
        for order in [a for a in actions if isinstance(a, Invoke)]:
            state, more = play(state, Invoked(at, order.workers, order.attempt))
            done += more
    by_policy = [w for a in done if isinstance(a, Invoke) and a.relaunch for w in a.workers]
    lost = [w for a in done if isinstance(a, Invoke) and not a.relaunch for w in a.workers]
    assert len(by_policy) == len(set(by_policy)) and len(lost) == len(set(lost))


BLOCKS = {"uncoded": 16, "product": 9, "replication": 8}
SLOW = {3: [Answer(30.0), Answer(0.2)], 11: [Answer(40.0), Answer(0.2)]}


@pytest.mark.parametrize("code", CODE_NAMES)
def test_every_code_is_exact_and_no_later_than_without(code):
    def run(policy):
        platform = Platform(code_name=code, data_blocks=BLOCKS.get(code, 11), table=SLOW)
        heard = []
        outcome = start(platform, relaunch=policy, on_event=heard.append)
        assert outcome.exact and close(outcome.value, platform.product)
        return platform, outcome, heard

    _, plain, _ = run(None)
    platform, outcome, heard = run("share=0.8,times=3")
    assert outcome.seconds <= plain.seconds
    again = [w for w, attempt in platform.invoked if attempt == 2]
    assert set(again) <= {3, 11} and len(again) == len(set(again))
    report = store(platform).get_report()
    assert (report["relaunch"], report["relaunched"]) == ("share=0.8,times=3", len(again))
    assert report["usage"]["invokes"] == 16 + len(again)
    if code == "uncoded":
        assert plain.seconds > 40 and outcome.seconds < 2 and len(again) == 2
        told = [e for e in heard if isinstance(e, events.Reinvoked)]
        assert [(e.missing, e.slow) for e in told] == [((3, 11), True)]
        assert report["cost"]["total"] > 0 and report["bound_gb_seconds"] > 0


def test_the_slow_attempt_may_still_win():
    table = {3: [Answer(3.0), Answer(30.0)]}
    platform = Platform(code_name="uncoded", data_blocks=16, table=table)
    outcome = start(platform, relaunch=0.9)
    assert outcome.exact and outcome.seconds < 5
    (answer,) = [a for a in store(platform).get_report()["answers"] if a["worker"] == 3]
    assert answer["attempt"] == 1


@pytest.mark.parametrize(
    "second",
    [Fail(), Silent(), Refused(), Damaged("cut")],
    ids=["fail", "silent", "refused", "cut"],
)
def test_a_second_attempt_that_comes_to_nothing_leaves_the_first(second):
    platform = Platform(
        code_name="uncoded", data_blocks=16, table={3: [Answer(20.0), second, Answer()]}
    )
    outcome = start(platform, relaunch=0.9)
    assert outcome.exact and close(outcome.value, platform.product), outcome.message
    assert [a for w, a in platform.invoked if w == 3][:2] == [1, 2]


@pytest.mark.parametrize("code", ["uncoded", "hadamard", "replication"])
@pytest.mark.parametrize("per_object", [1, 2])
def test_with_several_blocks_only_the_missing_ones_are_computed_again(code, per_object):
    slow = {5: [Parts(done=4, after=0.1, each=20.0), Parts(done=4)]}
    platform = Platform(
        code_name=code,
        data_blocks=16 if code == "uncoded" else 8,
        rows=131,
        subtasks=4,
        per_object=per_object,
        table={w: [Parts(done=4, each=0.5 + w / 100)] for w in range(16)} | slow,
    )
    outcome = start(platform, relaunch="share=0.9,times=2")
    assert outcome.exact and close(outcome.value, platform.product)
    again = [task for task in platform.tasks if task.attempt == 2]
    if code == "uncoded":
        assert [task.worker for task in again] == [5] and outcome.seconds < 15
        assert len(again[0].objects) == 4 // per_object


def test_a_resumed_run_keeps_the_policy_and_whom_it_has_invoked():
    platform = Platform(
        code_name="uncoded",
        data_blocks=16,
        table={3: [Silent(), Silent(), Answer()], 4: [Silent(), Answer(25.0)]},
    )
    left = iter([1000.0] * 30 + [0.0] * 10)
    outcome = start(platform, relaunch="share=0.8", time_left=lambda: next(left))
    assert outcome.state == "running"
    assert [pair for pair in platform.invoked if pair[1] == 2] in (
        [(3, 2), (4, 2)],
        [(4, 2), (3, 2)],
    )
    assert store(platform).load_spec().relaunch == "share=0.8"
    outcome = resume(platform)
    assert outcome.exact and close(outcome.value, platform.product)
    assert [w for w, attempt in platform.invoked if attempt == 3] == [3]  # at its time-out


def test_a_run_resumed_before_anybody_was_slow_takes_the_times_that_workers_report():
    platform = Platform(code_name="uncoded", data_blocks=16, table={3: [Silent(), Answer()]})
    began = platform.clock.now()
    outcome = start(
        platform,
        relaunch="times=20",
        time_left=lambda: 1000.0 if platform.clock.now() < began + 1.0 else 0.0,
    )
    assert outcome.state == "running" and outcome.arrivals == 15
    platform.clock.sleep(5.0)
    outcome = resume(platform)
    assert outcome.exact and outcome.seconds < 10
    assert (3, 2) in platform.invoked and len(platform.invoked) == 17


def test_a_policy_that_cannot_be_read_is_refused_before_anything_is_written():
    platform = Platform()
    with pytest.raises(RelaunchRefused):
        start(platform, relaunch="share=2")
    assert not platform.invoked and not platform.bucket.requests
    assert RUN not in str(list(platform.bucket.objects))
