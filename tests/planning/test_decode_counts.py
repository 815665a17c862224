"""The plan of putting a product together, against what the coordinator and its decode functions
really send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import moto.s3.models
import numpy as np
import pytest

from blockstore import decode_keys, keys
from blockstore.answers import AnswerMetadata
from blockstore.arrays import encode_array
from blockstore.bucket import Bucket
from blockstore.products import StoredProduct
from blockstore.subtasks import Subtasks
from coordinator import budget, cut, decode_plan, decode_stored, targets
from coordinator.budget import share_of
from coordinator.cost import Usage
from coordinator.decode_fleet import DecodeFunctions
from coordinator.decode_plan import plan_decode, plan_decodings
from coordinator.decode_stored import StoredDecoder
from coordinator.decode_tasks import DecodeTask
from coordinator.decode_wish import DecodePlan, DecodeWish
from coordinator.form import AnswerForm
from coordinator.layout import Layout
from coordinator.meter import MeteredBucket
from coordinator.planning import Platform, load_prices, plan_encoding, plan_multiply
from coordinator.ports import InvokeReport
from coordinator.refusals import PlanRefused
from coordinator.stored_answers import StoredAnswer, StoredAnswers
from coordinator.windows import WindowMemory
from functions.decode.work import OutOfTime, work
from polarcodes import ErasureCode, make_code
from polarcodes.grid import GridCode
from tests.coordinator.fake_platform import FakeClock
from tests.counted_requests import Requests, counted

RUN = keys.new_run_id(1_700_000_000_000, bytes(10))
GB = 1 << 30
RATES = ("s3_read_rate", "s3_write_rate", "client_rate", "decode_rate")
SECONDS = ("s3_request_seconds", "start_seconds", "worker_overhead_seconds", "invoke_seconds")
AT_ONCE = Platform(**dict.fromkeys(RATES, 1e18), **dict.fromkeys(SECONDS, 1e-9))


class InProcess:
    """Does the tasks when they are submitted."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.calls = 0

    def check(self) -> None: ...

    def close(self) -> None: ...

    def reports(self) -> list[InvokeReport]:
        return []

    def submit(self, tasks: Sequence[DecodeTask]) -> None:
        for task in tasks:
            self.calls += 1
            work(self.bucket, task, lambda: 900.0, WindowMemory())


def answered(
    bucket: Bucket, code: ErasureCode, rows: int, k: int
) -> tuple[StoredAnswers, list[int]]:
    """Answers of a random product of `rows` x `k`, and a set of them that decodes."""
    rng = np.random.default_rng(5)
    s, b = code.data_blocks, -(-rows // code.data_blocks)
    product = np.zeros((s * b, k), np.float32)
    product[:rows] = rng.standard_normal((rows, k))
    form = AnswerForm(
        (b, k),
        np.dtype("<f4"),
        float(np.finfo(np.float32).eps),
        Subtasks.single(code.workers),
        Layout((rows, k), s, 1, b, k),
    )
    answers = StoredAnswers(form, bucket)
    order = rng.permutation(code.workers).tolist()
    m = next(m for m in range(s + 1, code.workers + 1) if code.decodable(order[:m]))
    coded = code.encode(product.reshape(s, b * k))
    for place in order[:m]:
        key = keys.result_key(RUN, place)
        etag = bucket.put(key, encode_array(coded[place].astype("<f4").reshape(b, k)))
        answers.add(
            place, StoredAnswer(key, 128, etag), AnswerMetadata(x_digest="", encoding="", scale=9.0)
        )
    return answers, sorted(order[:m])


@pytest.mark.parametrize("rows_at_a_time", [1, 3, 8])
@pytest.mark.parametrize("least", [60, 400])
@pytest.mark.parametrize("kind", ["npy", "zarr"])
@pytest.mark.parametrize("where", ["local", "lambda"])
def test_requests_and_bytes_are_those_of_the_plan(
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    rows_at_a_time: int,
    least: int,
    kind: str,
    where: str,
) -> None:
    monkeypatch.setattr(moto.s3.models, "S3_UPLOAD_PART_MIN_SIZE", 1)
    monkeypatch.setattr(cut, "PART_BYTES", least)
    monkeypatch.setattr(cut, "LEAST_CHUNK", 20)
    monkeypatch.setattr(targets, "NPY", replace(cut.NPY, least=least))
    monkeypatch.setattr(budget, "LEAST_SHARE", 1)
    for module in (decode_stored, decode_plan):
        monkeypatch.setattr(module, "window_rows", lambda *given: rows_at_a_time)
    code = make_code("hadamard", workers=16, data_blocks=11, seed=1)
    answers, decisive = answered(bucket, code, 85, 5)
    invoker = InProcess(bucket)
    functions = DecodeFunctions(lambda: invoker, GB, 60.0, most=3)
    metered = MeteredBucket(bucket)
    decoder = StoredDecoder(
        metered, code, answers, RUN, "npy" if kind == "npy" else "zarr", FakeClock(), GB,
        functions=functions if where == "lambda" else None,
    )  # fmt: skip
    with counted(bucket.client) as sent:
        assert decoder.decode(decisive) is not None
    wish = DecodeWish(where, kind, memory=1, function_memory_mb=1024, most=3)
    plan = plan_decode(answers.form, code, len(decisive), 0, wish, load_prices(), AT_ONCE)
    assert plan.where == ("lambda" if where == "lambda" else "windows")
    compare(plan, sent, invoker)
    billed = decoder.usage + Usage(puts=metered.puts, gets=metered.gets, lists=metered.lists)
    assert (billed.puts, billed.gets, billed.lists) == (sent.puts, sent.gets, sent.lists)
    assert billed.invokes == plan.calls


@pytest.mark.parametrize("rows_at_a_time", [2, 4])
def test_those_of_a_product_of_two_matrices_too(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, rows_at_a_time: int
) -> None:
    monkeypatch.setattr(moto.s3.models, "S3_UPLOAD_PART_MIN_SIZE", 1)
    monkeypatch.setattr(cut, "PART_BYTES", 300)
    monkeypatch.setattr(targets, "NPY", replace(cut.NPY, least=300))
    monkeypatch.setattr(budget, "LEAST_SHARE", 1)
    for module in (decode_stored, decode_plan):
        monkeypatch.setattr(module, "window_rows", lambda *given: rows_at_a_time)
    sides = [make_code("hadamard", workers=n, data_blocks=s, seed=1) for n, s in ((6, 4), (5, 3))]
    code = GridCode(*sides)
    form = AnswerForm(
        (4, 5), np.dtype("<f8"), 1e-16, Subtasks.single(30), Layout((15, 14), 4, 3, 4, 5)
    )
    coded = code.encode(np.random.default_rng(3).standard_normal((12, 20)))
    answers = StoredAnswers(form, bucket)
    for place in range(30):
        key = keys.result_key(RUN, place)
        etag = bucket.put(key, encode_array(coded[place].reshape(4, 5)))
        told = AnswerMetadata(x_digest="", encoding="", scale=9.0)
        answers.add(place, StoredAnswer(key, 128, etag), told)
    decisive = [place for place in range(30) if place not in (1, 7)]
    invoker = InProcess(bucket)
    functions = DecodeFunctions(lambda: invoker, GB, 60.0, most=3)
    decoder = StoredDecoder(bucket, code, answers, RUN, "npy", FakeClock(), GB, functions=functions)
    with counted(bucket.client) as sent:
        assert decoder.decode(decisive) is not None
    wish = DecodeWish("lambda", function_memory_mb=1024, most=3)
    plan = plan_decode(form, code, len(decisive), 0, wish, load_prices(), AT_ONCE)
    compare(plan, sent, invoker)


def compare(plan: DecodePlan, sent: Requests, invoker: InProcess) -> None:
    usage = plan.usage
    assert (sent.gets, sent.lists) == (usage.gets, usage.lists)
    assert sent.puts == usage.puts - 1, "the status is written by the run"
    assert invoker.calls == plan.calls == usage.invokes
    ranged = {key: size for key, size in sent.ranged.items() if not key.endswith("result.npy")}
    assert sum(ranged.values()) == plan.read
    moved = sum(size for key, size in sent.sent.items() if "result" in key or "pieces" in key)
    headers = 128 * (1 + plan.pieces) + 2048
    assert plan.written <= moved < plan.written + headers


class Late(InProcess):
    """Every function is first told that its time is up, before its first window or part, or before
    the second one."""

    def submit(self, tasks: Sequence[DecodeTask]) -> None:
        for task in tasks:
            for enough in range(min(2, task.last - task.first)):
                left = iter([900.0] * enough)
                with pytest.raises(OutOfTime, match=f"{task.stage} {task.first + enough}:"):
                    work(self.bucket, task, lambda known=left: next(known, 1.0), WindowMemory())
                done = decode_keys.done_key(task.run, task.decoding, task.stage, task.worker)
                assert self.bucket.head(done) is None
        super().submit(tasks)


def test_a_function_near_its_time_limit_says_so_and_nothing_is_called_done(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moto.s3.models, "S3_UPLOAD_PART_MIN_SIZE", 1)
    monkeypatch.setattr(cut, "PART_BYTES", 400)
    monkeypatch.setattr(targets, "NPY", replace(cut.NPY, least=400))
    monkeypatch.setattr(budget, "LEAST_SHARE", 1)
    monkeypatch.setattr(decode_stored, "window_rows", lambda *given: 1)
    code = make_code("hadamard", workers=16, data_blocks=11, seed=1)
    answers, decisive = answered(bucket, code, 85, 5)
    invoker = Late(bucket)
    functions = DecodeFunctions(lambda: invoker, GB, 60.0, most=2)
    decoder = StoredDecoder(bucket, code, answers, RUN, "npy", FakeClock(), GB, functions=functions)
    made = decoder.decode(decisive)
    assert made is not None and made[0].contradiction is None and invoker.calls == 4
    assert StoredProduct.open(bucket, made[1]).load().shape == (85, 5)


@pytest.mark.parametrize("name", ["hadamard", "polar", "mds", "lt", "uncoded", "replication"])
def test_the_arrays_of_a_plan_are_counted_for_every_code(bucket: Bucket, name: str) -> None:
    sizes = {"uncoded": (12, 12), "replication": (12, 6)}
    workers, data_blocks = sizes.get(name, (16, 11))
    code = make_code(name, workers=workers, data_blocks=data_blocks)
    form = AnswerForm(
        (8, 5), np.dtype("<f4"), 1e-7, Subtasks.single(workers),
        Layout((8 * data_blocks, 5), data_blocks, 1, 8, 5),
    )  # fmt: skip
    order = np.random.default_rng(7).permutation(workers).tolist()
    m = next(m for m in range(data_blocks, workers + 1) if code.decodable(order[:m]))
    stored = code.plan(sorted(order[:m])).to_arrays()
    del stored["method"]
    count, size = decode_plan.plan_arrays(code, form, m, seed=7)
    assert count == len(stored)
    assert size == pytest.approx(sum(a.nbytes for a in stored.values()), rel=0.3)


def encoded(**options: Any) -> Any:
    sizes = {"workers": 64, "data_blocks": 56}
    return plan_encoding((401_408, 512), "f4", **sizes | options).manifest


def test_the_seconds_of_functions_follow_the_formula() -> None:
    """docs/cost.md, by hand: windows that are parts of a Zarr array at once."""
    run = plan_multiply(encoded(), (512, 600), "f4", wish=DecodeWish("lambda", "zarr"))
    plan, platform = run.decode, Platform()
    assert (plan.where, plan.pieces) == ("lambda", 0) and run.decode_lambda is None
    m, b = plan.answers, run.block_rows
    answers, product = m * b * 600 * 4, 401_408 * 600 * 4
    assert (plan.read, plan.written) == (answers, product)
    arrays, size = decode_plan.plan_arrays(
        make_code("hadamard", workers=64, data_blocks=56), _form(run), m, decode_plan.SEED
    )
    work = plan.windows * m * 0.1 / 16 + answers / 95e6 + 2 * answers / 300e6
    work += plan.parts * 0.1 / 4 + product / 90e6
    each = 1.0 + 0.05 + (2 + arrays) * 0.1 + size / 95e6
    assert plan.call_seconds == pytest.approx(
        each + work * -(-plan.windows // plan.calls) / plan.windows
    )
    busy = plan.calls * each + work
    assert plan.usage.decode_gb_seconds == pytest.approx(2 * busy)
    assert run.usage.decode_gb_seconds == plan.usage.decode_gb_seconds
    heard = -(-plan.calls // platform.invoke_threads) * 0.05 + 0.2 + -(-plan.calls // 16) * 0.1
    assert plan.seconds == pytest.approx((6 + arrays) * 0.1 + heard + plan.call_seconds)


def _form(run: Any) -> AnswerForm:
    return AnswerForm.of(encoded(), run.x_shape, "<f4")


def test_a_coordinator_function_that_cannot_hold_the_product_decodes_windows() -> None:
    small, large = ((512, k) for k in (4, 1500))
    assert plan_multiply(encoded(), small, "f4", on="lambda").decode.where == "memory"
    run = plan_multiply(encoded(), large, "f4", on="lambda", worker_timeout=900)
    assert run.decode.where == "windows" and run.decode.memory <= 0.9 * 2048 * (1 << 20)
    assert run.decode_lambda is not None and run.decode_lambda.seconds < run.decode.seconds
    asked = plan_multiply(
        encoded(), large, "f4", on="lambda", worker_timeout=900, wish=DecodeWish("lambda")
    )
    assert asked.decode == run.decode_lambda
    saved = run.decode.seconds - asked.decode.seconds
    assert run.time.coded - asked.time.coded == pytest.approx(saved)
    assert asked.usage.invokes == run.usage.invokes + asked.decode.calls


def test_what_functions_decode_does_not_leave_aws() -> None:
    here = plan_multiply(encoded(), (512, 100), "f4")
    there = plan_multiply(encoded(), (512, 100), "f4", wish=DecodeWish("lambda"))
    assert here.usage.transfer_out_gb == pytest.approx(64 * here.block_rows * 400 / GB)
    assert there.usage.transfer_out_gb == pytest.approx(64 * 256 / GB)


def test_memory_for_not_even_a_row_is_refused_with_what_would_do() -> None:
    with pytest.raises(PlanRefused, match=r"memory = 1000: .*would fit") as refusal:
        plan_multiply(encoded(), (512, 100), "f4", wish=DecodeWish(memory=1000))
    fits = DecodeWish(memory=refusal.value.fits)
    plan_multiply(encoded(), (512, 100), "f4", wish=fits)
    nothing = plan_decodings(
        _form(plan_multiply(encoded(), (512, 100), "f4")),
        make_code("hadamard", workers=64, data_blocks=56), 57, 0,
        DecodeWish(memory=refusal.value.fits, function_memory_mb=128), load_prices(), Platform(),
    )  # fmt: skip
    assert nothing[1] is None


def test_functions_share_the_rows_even_where_memory_holds_no_whole_parts() -> None:
    """Long parts would be made at once by 4 functions, if they had the memory; if not, 64 are
    better than the few that it makes."""
    form = AnswerForm(
        (2762, 1000), np.dtype("f8"), 1e-16, Subtasks.single(512),
        Layout((1_281_167, 1000), 464, 1, 2762, 1000),
    )  # fmt: skip
    assert share_of(form, 464, 64, 2762, cut.NPY) == 691
    assert share_of(form, 464, 64, 429, cut.NPY) == 44
    assert share_of(form, 464, 64, 2762, cut.ZARR) == 44
    assert share_of(form, 464, 64, 7, cut.ZARR) == 7
