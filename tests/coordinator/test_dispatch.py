"""The order in which workers are invoked."""

from __future__ import annotations

from blockstore import keys
from tests.coordinator.fake_platform import Platform
from tests.coordinator.one_run import start


def test_neighbours_are_not_invoked_one_after_the_other():
    """The last to be invoked answer last: as a burst they would be the worst that can be missing.
    Every run has its own order."""
    orders = []
    for seed in range(3):
        platform = Platform()
        start(platform, run=keys.new_run_id(seed, bytes(10)))
        order = [worker for worker, _ in platform.invoked]
        assert sorted(order) == list(range(16)) and order != sorted(order)
        orders.append(order)
    assert orders[0] != orders[1] != orders[2]
