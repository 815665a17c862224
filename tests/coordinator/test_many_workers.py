"""Every format, record and figure holds at 4,096 and 16,384 workers."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from blockstore import keys
from blockstore.manifest import Manifest, load_manifest, save_manifest
from blockstore.tasks import WorkerTask
from coordinator.fan_out import DispatchEvent
from coordinator.journal import Dispatch, Journal, load_journal
from coordinator.report import Billing
from coordinator.tree import parts
from tests.coordinator.fake_platform import Answer, Parts, Platform, Silent
from tests.coordinator.one_run import RUN, resume, start, store

MANY = 4_096
MOST = 16_384


def large(**options) -> Platform:
    """A fleet whose matrix has a row for each data block, answering within a second and a half."""
    settings = {"workers": MANY, "data_blocks": 3_840, "rows": 3_840, "columns": 2}
    return Platform(**settings | {"code_name": "hadamard"} | options)


@pytest.fixture(scope="module")
def finished():
    """A run of 4,096 workers of which 100 die, on an account of 1,000."""
    rng = np.random.default_rng(0)
    dead = {int(w): [Silent()] for w in rng.choice(MANY, 100, replace=False)}
    late = {w: [Answer(float(s))] for w, s in enumerate(rng.exponential(0.3, MANY))}
    platform = large(table=late | dead)
    billing = Billing(worker_timeout=60.0, concurrency=1_000)
    return platform, start(platform, billing=billing), billing


def test_a_product_of_4096_workers_is_exact(finished) -> None:
    platform, outcome, _ = finished
    assert outcome.state == "exact" and outcome.workers == MANY
    assert np.linalg.norm(outcome.value - platform.product) < 1e-4 * np.linalg.norm(
        platform.product
    )
    assert len(platform.invoked) <= MANY, "nobody twice"


def test_its_records_are_readable_and_small(finished) -> None:
    platform, outcome, _ = finished
    sizes = {key.rsplit("/", 1)[1]: len(o.body) for key, o in platform.bucket.objects.items()}
    journal = load_journal(store(platform))
    assert len(journal.spec.decisive) >= 3_840
    assert sizes["run.json"] < 200_000
    assert sizes["report.json"] < 2_000_000 and sizes["report.html"] < 1_000_000
    assert sizes["status.json"] < 10_000, "watchers read it again and again"
    report = store(platform).get_report()
    assert len(report["answers"]) == outcome.arrivals
    assert len(json.dumps(outcome.to_json())) < 100_000, "what the function returns, and the CLI"


def test_its_run_is_decoded_again_to_the_same_bytes(finished) -> None:
    platform, _, billing = finished
    key = keys.final_result_key(RUN)
    whole = platform.bucket.objects.pop(key).body
    assert resume(platform, billing=billing).state == "exact"
    assert platform.bucket.objects[key].body == whole


def test_answers_of_every_page_of_the_listing_are_seen(finished) -> None:
    platform, _, _ = finished
    report = store(platform).get_report()
    assert {answer["worker"] // 1_000 for answer in report["answers"]} == {0, 1, 2, 3, 4}


def test_several_answers_of_many_workers() -> None:
    platform = large(
        workers=128,
        data_blocks=112,
        rows=112 * 8,
        subtasks=8,
        default=[Parts(8, after=0.1, each=0.05)],
    )
    outcome = start(platform)
    assert outcome.state == "exact" and outcome.subtasks == 8


@pytest.mark.parametrize("worker", [0, 9_999, MOST - 1])
def test_keys_have_five_digits_for_every_worker(worker: int) -> None:
    key = keys.result_key(RUN, worker)
    assert keys.parse_result_key(key) == worker and len(key) == len(keys.result_key(RUN, 0))
    assert keys.parse_error_key(keys.error_key(RUN, worker, 12)) == (worker, 12)
    assert keys.parse_tile_key(keys.tile_key("m", "0" * 16, worker, 3)) == (worker, 3)


def test_a_journal_of_16384_workers_with_three_dispatches_and_a_decisive_set(finished) -> None:
    platform, _, _ = finished
    spec = load_journal(store(platform)).spec
    every = tuple(range(MOST))
    journal = Journal(
        replace(spec, workers=MOST, decisive=every),
        tuple(Dispatch(attempt, every, 1.5, complete=True) for attempt in (1, 2, 3)),
    )
    body = journal.to_json()
    assert len(body) < 1 << 20
    bucket = platform.bucket
    old = bucket.objects[keys.run_key(RUN)].body
    bucket.put(keys.run_key(RUN), body)
    assert load_journal(store(platform)) == journal
    bucket.put(keys.run_key(RUN), old)


def test_events_stay_below_100_kb_at_16384_workers() -> None:
    platform = large(workers=MOST, data_blocks=15_360, rows=15_360, columns=1)
    manifest = platform.manifest
    task = {"run": RUN, "attempt": 1, "x_shape": (1,), "x_dtype": "<f4", "x_digest": "sha256:0"}
    tasks = [WorkerTask.of(manifest, worker=w, **task) for w in range(parts(MOST, 32))]
    assert len(json.dumps(tasks[-1].to_event())) < 1_024
    assert len(json.dumps(DispatchEvent.of(tasks).to_json())) < 100_000
    save_manifest(platform.bucket, manifest)
    again: Manifest = load_manifest(platform.bucket, manifest.name)
    assert again.digest == manifest.digest
