"""Delays, deaths and throttling: seeded, replayable, only for workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from polarlambda.local import LocalStack
from polarlambda.local.chaos import Chaos, ChaosSettings
from polarlambda.local.errors import OptionRefused
from tests.local.waiting import wait_until


def event(run: str, worker: int, workers: int = 8, **more: Any) -> dict[str, Any]:
    return {"run": run, "worker": worker, "workers": workers, "attempt": 1, **more}


def doomed(settings: ChaosSettings, runs: int = 5, workers: int = 8) -> list[set[int]]:
    chaos = Chaos(settings)
    return [
        {w for w in range(workers) if chaos.fate(event(f"run-{run}", w, workers)).dies}
        for run in range(runs)
    ]


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "delays.csv"
    path.write_text("2.5,1.5,4.0\n7,9,8\n")
    return str(path)


def test_a_row_a_run_a_column_a_worker_above_the_minimum_of_the_row(table: str) -> None:
    chaos = Chaos(ChaosSettings(delays=table, scale=0.5))
    # runs are numbered as they are first seen, whatever comes in between
    chaos.fate(event("b", 0))
    chaos.fate(event("a", 0))
    assert [chaos.fate(event("b", worker)).delay for worker in range(4)] == [0.5, 0, 1.25, 0.5]
    assert [chaos.fate(event("a", worker)).delay for worker in range(3)] == [0, 1, 0.5]
    assert [chaos.fate(event("c", worker)).delay for worker in range(3)] == [0.5, 0, 1.25]


def test_an_attempt_more_meets_another_delay_of_the_run_and_the_same_death(table: str) -> None:
    settings = ChaosSettings(delays=table, fail=3, seed=1)
    chaos, other = Chaos(settings), Chaos(settings)
    delays = [chaos.fate(event("a", worker)).delay for worker in range(8)]
    moved = 0
    for worker in range(8):
        again = event("a", worker) | {"attempt": 2}
        first, second = chaos.fate(event("a", worker)), chaos.fate(again)
        assert second.dies == first.dies and second.delay in delays
        assert second == chaos.fate(again) == other.fate(event("a", worker) | {"attempt": 2})
        moved += second.delay != first.delay
    assert moved > 2


@pytest.mark.parametrize("model", ["exponential", "lambda-rare-tail"])
def test_models_are_drawn_from_the_seed_and_the_number_of_the_run(model: str) -> None:
    def draw(seed: int, names: list[str], scale: float = 1.0) -> list[list[float]]:
        chaos = Chaos(ChaosSettings(model=model, seed=seed, scale=scale))
        return [[chaos.fate(event(n, w)).delay for w in range(8)] for n in names]

    once = draw(3, ["a", "b"])
    assert once == draw(3, ["x", "y"])
    assert once[0] != once[1]
    assert once != draw(4, ["a", "b"])
    assert min(map(min, once)) >= 0
    assert draw(3, ["a"], scale=2.0)[0] == pytest.approx([2 * delay for delay in once[0]])


def test_k_workers_of_each_run_die_drawn_by_seed() -> None:
    once = doomed(ChaosSettings(fail=3, seed=5))
    assert all(len(workers) == 3 for workers in once)
    assert once == doomed(ChaosSettings(fail=3, seed=5))
    assert once != doomed(ChaosSettings(fail=3, seed=6))
    assert len({frozenset(workers) for workers in once}) > 1
    assert doomed(ChaosSettings(fail=99), runs=1) == [set(range(8))]


def test_the_order_of_requests_within_a_run_changes_nothing() -> None:
    forwards = Chaos(ChaosSettings(model="exponential", fail=2, seed=9, throttle=0.5))
    backwards = Chaos(ChaosSettings(model="exponential", fail=2, seed=9, throttle=0.5))

    def fates(chaos: Chaos, workers: Any) -> Any:
        return {w: (chaos.fate(event("r", w)), chaos.throttled(event("r", w))) for w in workers}

    assert fates(forwards, range(8)) == fates(backwards, reversed(range(8)))


def test_throttling_has_the_rate_asked_for_and_a_repetition_is_a_new_draw() -> None:
    chaos = Chaos(ChaosSettings(throttle=0.3, seed=2))
    drawn = [chaos.throttled(event("r", worker, 2000)) for worker in range(2000)]
    # 2,000 draws: five standard deviations are 0.051
    assert abs(sum(drawn) / 2000 - 0.3) < 0.051
    first = drawn.index(True)
    assert not all(chaos.throttled(event("r", first, 2000)) for _ in range(20))


@pytest.mark.parametrize("other", [{}, [], "text", None, {"run": "r"}, {"matrix": "m", "x": "k"}])
def test_only_events_of_workers_are_touched(other: Any) -> None:
    chaos = Chaos(ChaosSettings(model="exponential", fail=10**6, throttle=0.999))
    assert not chaos.throttled(other)
    assert chaos.fate(other).delay == 0 and not chaos.fate(other).dies


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"delays": "/nowhere.csv"}, "cannot read"),
        ({"model": "gaussian"}, "gaussian"),
        ({"scale": -1}, "scale"),
        ({"scale": float("nan")}, "scale"),
        ({"fail": -1}, "fail"),
        ({"throttle": 1.0}, "throttle"),
        ({"seed": -1}, "seed"),
        ({"delays": "x", "model": "exponential"}, "not both"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], what: str) -> None:
    with pytest.raises(OptionRefused, match=what):
        LocalStack(**options)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no rows"),
        ("1,2\n3\n", "row 2 has 1 values, row 1 has 2"),
        ("1,2\n3,x\n", "row 2 column 2: 'x'"),
        ("1,nan\n", "row 1 column 2: 'nan'"),
        ("inf,1\n", "row 1 column 1"),
        ("-0.5,1\n", "row 1 column 1"),
    ],
)
def test_tables_that_are_no_delays_are_refused(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "delays.csv"
    path.write_text(text)
    with pytest.raises(OptionRefused, match=what):
        Chaos(ChaosSettings(delays=str(path)))


def test_a_worker_that_dies_gives_no_answer_at_any_attempt(client: Any, toy: LocalStack) -> None:
    toy.set_chaos(fail=1, seed=0)
    (victim,) = doomed(ChaosSettings(fail=1, seed=0), runs=1, workers=2)[0]
    for attempt in (1, 2):
        for worker in (0, 1):
            payload = event("dying", worker, 2) | {"attempt": attempt}
            response = client.invoke(FunctionName="WorkerFunction", Payload=json.dumps(payload))
            answer = json.loads(response["Payload"].read())
            if worker == victim:
                assert response["FunctionError"] == "Unhandled"
                assert answer["errorType"] == "Runtime.ExitError"
            else:
                assert answer == payload
    outcomes = [(i.worker == victim, i.outcome) for i in toy.invocations() if i.run == "dying"]
    assert sorted(outcomes) == [(False, "answered")] * 2 + [(True, "failed")] * 2


def test_throttled_requests_are_429(client: Any, toy: LocalStack) -> None:
    toy.set_chaos(throttle=0.999)
    for kind in ("Event", "RequestResponse"):
        with pytest.raises(ClientError, match="TooManyRequestsException") as caught:
            client.invoke(
                FunctionName="WorkerFunction",
                InvocationType=kind,
                Payload=json.dumps(event(f"throttled-{kind}", 1)),
            )
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
    assert client.invoke(FunctionName="WorkerFunction", Payload=b"{}")["StatusCode"] == 200


def test_a_delay_longer_than_the_time_limit_is_a_timeout(
    client: Any, toy: LocalStack, tmp_path: Path
) -> None:
    table = tmp_path / "long.csv"
    table.write_text("0,600\n")
    toy.set_chaos(delays=table)
    client.invoke(FunctionName="QuickFunction", Payload=json.dumps(event("long", 1)))
    (record,) = [i for i in toy.invocations() if i.run == "long"]
    assert (record.outcome, record.handed, record.duration_ms) == ("timeout", None, 1000)


def test_sixty_four_delays_overlap_and_can_be_drained(
    client: Any, toy: LocalStack, tmp_path: Path
) -> None:
    table = tmp_path / "delays.csv"
    table.write_text(",".join(["1"] + ["56"] * 63) + "\n")
    toy.set_chaos(delays=table)
    for worker in range(64):
        client.invoke(
            FunctionName="WorkerFunction",
            InvocationType="Event",
            Payload=json.dumps(event("many", worker, 64)),
        )
    wait_until(lambda: toy.activity()["sleeping"] == 63)
    assert toy.drain() == 63
    records = [i for i in toy.invocations() if i.run == "many"]
    asleep = [i for i in records if i.outcome == "drained"]
    assert len(records) == 64 and len(asleep) == 63
    assert len({i.environment for i in asleep}) == 63
    assert max(i.started for i in asleep) < min(i.ended for i in asleep)
    assert all(i.handed is None and i.delay == 55 for i in asleep)
    # the environments are warm still
    client.invoke(FunctionName="WorkerFunction", Payload=json.dumps({"run": "after"}))
    assert [i.cold for i in toy.invocations() if i.run == "after"] == [False]
