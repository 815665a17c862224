"""Workers beyond the concurrency wait in the coordinator, and are invoked as others end."""

from __future__ import annotations

import pytest

from coordinator.report import Billing
from coordinator.window import OVERLAP
from tests.coordinator.fake_platform import Answer, Fail, Platform, Refused, Silent
from tests.coordinator.one_run import close, resume, start

FEW = Billing(worker_timeout=60.0, concurrency=4)


class Counting(Platform):
    """Notes how many invocations were handed over together."""

    def submit(self, sent) -> None:
        self.batches = [*getattr(self, "batches", []), len(sent)]
        super().submit(sent)


def test_a_run_with_little_concurrency_is_exact_and_hands_over_what_there_is_room_for() -> None:
    platform = Counting(default=[Answer(1.0)])
    outcome = start(platform, billing=FEW)
    assert outcome.state == "exact" and close(outcome.value, platform.product)
    assert platform.batches[0] == OVERLAP * 4 and max(platform.batches) <= OVERLAP * 4
    assert len(platform.invoked) == len(set(platform.invoked))


def test_those_who_still_wait_when_the_product_is_exact_are_never_invoked() -> None:
    platform = Counting(workers=32, data_blocks=16, default=[Answer(1.0)], code_name="mds")
    outcome = start(platform, billing=FEW)
    assert outcome.state == "exact" and len(platform.invoked) < 32


@pytest.mark.parametrize("trouble", [Fail(), Silent(), Refused()])
def test_a_worker_that_fails_dies_or_is_refused_makes_room(trouble) -> None:
    platform = Counting(table={w: [trouble] for w in range(3)}, default=[Answer(1.0)])
    outcome = start(platform, billing=FEW)
    assert outcome.state == "exact" and close(outcome.value, platform.product)


def test_waiting_is_not_silence() -> None:
    """Twelve waves of 50 s each, with a time-out of 60 s: nobody is taken for dead."""
    platform = Counting(default=[Answer(50.0)])
    outcome = start(platform, billing=Billing(worker_timeout=60.0, concurrency=1))
    assert outcome.state == "exact"
    assert {attempt for _, attempt in platform.invoked} == {1}


def test_a_run_that_is_handed_over_with_workers_waiting_is_carried_to_its_end() -> None:
    platform = Counting(default=[Answer(5.0)])
    left = iter([100.0] * 3 + [0.0] * 1000)
    first = start(platform, billing=FEW, time_left=lambda: next(left))
    assert first.state == "running" and len(platform.invoked) == OVERLAP * 4
    again = resume(platform, billing=FEW)
    assert again.state == "exact" and close(again.value, platform.product)


def test_no_limit_passes_everything_on_at_once() -> None:
    platform = Counting()
    assert start(platform).exact and platform.batches == [16]
