"""Products decoded from answers that stay in the store: the same bytes as in memory, window by
window, and what happens when an answer is not what it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from blockstore import decode_keys, keys
from blockstore.arrays import encode_array
from blockstore.products import StoredProduct
from coordinator import budget, cut, decode_stored, estimate_stored, events
from coordinator.answers import DecisiveAnswerLost
from coordinator.decode_options import DecodeOptions
from coordinator.inputs import InputRefused
from coordinator.refusals import PlanRefused
from tests import memory_bucket
from tests.coordinator.fake_platform import Answer, Damaged, Parts, Platform, Silent
from tests.coordinator.one_run import RUN, close, resume, silent, start, store

OTHER = keys.new_run_id(1_700_000_000_001, bytes(10))


def platform(**options) -> Platform:
    return Platform(**{"rows": 85, "k": 5} | options)


@pytest.fixture
def chunked(monkeypatch):
    """Answers stay in the store; `rows` of every block fit into memory, parts have `least` bytes
    or more."""

    def set_up(rows: int, least: int = 64) -> None:
        monkeypatch.setattr(DecodeOptions, "in_memory", lambda self, form, spec: False)
        for module in (decode_stored, estimate_stored):
            monkeypatch.setattr(module, "window_rows", lambda *given: rows)
        monkeypatch.setattr(cut, "PART_BYTES", least)
        monkeypatch.setattr(memory_bucket, "LEAST_PART", least)
        rule = replace(cut.NPY, least=least)
        monkeypatch.setattr("coordinator.targets.NPY", rule)
        monkeypatch.setattr(estimate_stored, "NPY", rule)
        monkeypatch.setattr(cut, "LEAST_CHUNK", 20)

    return set_up


@pytest.fixture(scope="module")
def in_memory():
    made = platform()
    return start(made).value


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("least", [20, 64, 130, 5000])
@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_the_same_bytes_as_in_memory(chunked, in_memory, rows, least, kind):
    chunked(rows, least)
    made = platform()
    outcome = start(made, result=kind)
    assert outcome.exact and outcome.met and outcome.verified
    assert outcome.value is None and outcome.result_key is not None
    found = StoredProduct.open(made.bucket, outcome.result_key)
    assert found.load().tobytes() == in_memory.tobytes()
    assert not [key for key in made.bucket.objects if "/pieces/" in key]
    assert not made.bucket.uploads
    if kind == "npy":
        assert made.bucket.objects[outcome.result_key].body == encode_array(in_memory)


def test_every_answer_is_read_once_and_nothing_else(chunked):
    chunked(3)
    made = platform(k=None, rows=1000)
    read: dict[str, int] = {}
    inner = made.bucket.read_into

    def counted(view, key, first, *, if_match=None):
        if "/results/" in key:
            read[key] = read.get(key, 0) + len(view)
        inner(view, key, first, if_match=if_match)

    made.bucket.read_into = counted
    outcome = start(made)
    decisive = store(made).load_spec().decisive
    assert outcome.exact
    answer = made.manifest.block_rows * 4
    assert read == {keys.result_key(RUN, worker): answer for worker in decisive}


@pytest.mark.parametrize("per_object", [1, 2])
def test_answers_that_share_an_object(chunked, per_object):
    chunked(2)
    made = platform(subtasks=2, per_object=per_object, workers=8, data_blocks=6)
    outcome = start(made)
    assert outcome.exact
    assert close(StoredProduct.open(made.bucket, outcome.result_key).load(), made.product)


@pytest.mark.parametrize("until", ["error=0.9", "seconds=2", "tasks=0.2"])
def test_the_estimate_is_written_by_windows_when_the_run_ends(chunked, until):
    options = {"table": silent(8), "code_name": "uncoded" if until[0] == "t" else "polar"}
    if until[0] == "t":
        options |= {"workers": 11}
    whole = platform(**options)
    wanted = start(whole, until=until)
    chunked(2)
    made, seen = platform(**options), []
    outcome = start(made, until=until, on_event=seen.append)
    assert (outcome.state, outcome.met, outcome.error) == (wanted.state, wanted.met, wanted.error)
    assert outcome.error_upper == wanted.error_upper and outcome.method == wanted.method
    assert outcome.missing_rows == wanted.missing_rows
    found = StoredProduct.open(made.bucket, outcome.result_key).load()
    np.testing.assert_allclose(found, wanted.value, rtol=1e-5, atol=1e-5)
    assert all(e.value is None for e in seen if isinstance(e, events.Estimated))


@pytest.mark.parametrize(
    ("how", "kind"),
    [("shape", "WrongShape"), ("other x", "WrongInput"), ("nan", "NotFinite")],
)
def test_a_wrong_answer_is_shown_and_never_used(chunked, how, kind):
    chunked(3)
    made = platform(table={3: [Damaged(how)]})
    outcome = start(made)
    assert outcome.exact
    assert [e.type for e in outcome.worker_errors] == [kind]


def test_an_answer_that_is_cut_short_is_an_erasure(chunked):
    chunked(3)
    made = platform(table={3: [Damaged("cut"), Answer()], **silent(2)})
    outcome = start(made)
    assert outcome.exact and "CorruptObject" in [e.type for e in outcome.worker_errors]


def damage(made: Platform, how: str) -> None:
    """Damage an answer of the decisive set once it is stored, before it is decoded."""

    def after_put(key: str) -> None:
        if key != keys.run_key(RUN) or store(made).load_spec().decisive is None:
            return
        made.bucket.after_put = lambda key: None
        victim = keys.result_key(RUN, store(made).load_spec().decisive[2])
        stored = made.bucket.objects[victim]
        if how == "deleted":
            del made.bucket.objects[victim]
        elif how == "replaced":
            made.bucket.objects[victim] = replace(stored, body=stored.body[:-4] + b"\0\0\0\0")
        elif how == "cut":
            made.bucket.objects[victim] = replace(stored, body=stored.body[:-8])

    made.bucket.after_put = after_put


@pytest.mark.parametrize("how", ["deleted", "replaced", "cut"])
@pytest.mark.parametrize("rows", [3, 8])
def test_an_answer_that_goes_between_decision_and_decoding_is_named(chunked, how, rows):
    chunked(rows)
    made = platform()
    damage(made, how)
    with pytest.raises(DecisiveAnswerLost, match="worker 2"):
        start(made)
    assert keys.final_result_key(RUN) not in made.bucket.objects


def test_nan_in_a_chunk_that_the_worker_vouched_for_is_named(chunked, monkeypatch):
    chunked(3)
    made = platform(table={3: [Damaged("nan")]})
    true = Platform._answer

    def vouched(self, *given):
        stored = true(self, *given)
        return replace(stored, metadata=stored.metadata | {"finite": "1"})

    monkeypatch.setattr(Platform, "_answer", vouched)
    with pytest.raises(DecisiveAnswerLost, match=r"worker 3 .*NaN"):
        start(made)
    assert keys.final_result_key(RUN) not in made.bucket.objects


@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_a_wrong_answer_contradicts_the_equations_and_nothing_appears(chunked, kind):
    chunked(3)
    made = platform(table={3: [Damaged("wrong")]})
    outcome = start(made, result=kind)
    assert outcome.state == "failed" and "left-over equations" in outcome.message
    assert keys.final_result_key(RUN) not in made.bucket.objects
    assert decode_keys.zarr_metadata_key(decode_keys.zarr_prefix(RUN)) not in made.bucket.objects
    assert not made.bucket.uploads


class KilledError(Exception):
    """The process ends here."""


@pytest.mark.parametrize(("kind", "least"), [("npy", 64), ("npy", 5000), ("zarr", 5000)])
def test_killed_at_any_request_of_the_decoding_another_coordinator_finishes(chunked, kind, least):
    chunked(3, least)
    reference = platform()
    wanted = StoredProduct.open(reference.bucket, start(reference, result=kind).result_key).load()
    requests = [key for _, key in reference.bucket.requests]
    first = requests.index(next(key for key in requests if "/plan/" in key))
    for number in range(first, len(requests), 3):
        made, count = platform(), 0

        def before(kind_, key, number=number):
            nonlocal count
            count += 1
            if count == number:
                raise KilledError

        made.bucket.before = before
        try:
            start(made, result=kind)
        except KilledError:
            made.bucket.before = lambda kind, key: None
            outcome = resume(made)
            assert outcome.exact
            key = keys.final_result_key(RUN) if kind == "npy" else decode_keys.zarr_prefix(RUN)
            assert StoredProduct.open(made.bucket, key).load().tobytes() == wanted.tobytes()


def test_what_is_done_is_not_done_again(chunked):
    chunked(2)
    made, read = platform(), []
    inner = made.bucket.read_into

    def dies_late(view, key, first, *, if_match=None):
        if "/results/" in key:
            read.append((key, first))
            if len(set(first for _, first in read)) == 3:
                raise KilledError
        inner(view, key, first, if_match=if_match)

    made.bucket.read_into = dies_late
    with pytest.raises(KilledError):
        start(made)
    before = {first for _, first in read}
    read.clear()

    def noted(view, key, first, *, if_match=None):
        if "/results/" in key:
            read.append((key, first))
        inner(view, key, first, if_match=if_match)

    made.bucket.read_into = noted
    assert resume(made).exact
    assert len(before) == 3 and len({first for _, first in read} & before) == 1


def test_an_upload_that_was_thrown_away_is_begun_again(chunked):
    chunked(2)
    made = platform()
    inner = made.bucket.finish_upload

    def dies(*given):
        raise KilledError

    made.bucket.finish_upload = dies
    with pytest.raises(KilledError):
        start(made)
    made.bucket.uploads.clear()
    made.bucket.finish_upload = inner
    outcome = resume(made)
    assert outcome.exact
    assert close(StoredProduct.open(made.bucket, outcome.result_key).load(), made.product)


def test_a_time_limit_hands_the_decoding_over(chunked):
    chunked(2)
    made = platform()
    left = iter([100.0] * 30)

    def time_left():
        decided = any("/done/" in key for key in made.bucket.objects)
        return 1.0 if decided else next(left, 100.0)

    outcome = start(made, time_left=time_left)
    assert outcome.state == "running"
    finished = resume(made)
    assert finished.exact
    assert close(StoredProduct.open(made.bucket, finished.result_key).load(), made.product)


def test_memory_that_holds_no_row_is_refused_before_anything_is_written():
    made = platform()
    with pytest.raises(PlanRefused, match="memory"):
        start(made, options=DecodeOptions(memory=1 << 20))
    assert not made.bucket.objects.keys() - {keys.manifest_key("photos")}
    assert made.invoked == []


@pytest.mark.parametrize(
    "options", [{"decode": "moon"}, {"result": "csv"}, {"decode": "lambda"}], ids=str
)
def test_a_wish_that_cannot_be_met_is_refused(options):
    made = platform()
    with pytest.raises(InputRefused, match=next(iter(options))):
        start(made, **options)
    assert made.invoked == []


def test_a_zarr_array_of_a_product_in_memory():
    made = platform()
    outcome = start(made, result="zarr")
    assert close(outcome.value, made.product)
    assert outcome.result_key == decode_keys.zarr_prefix(RUN)
    found = StoredProduct.open(made.bucket, outcome.result_key).load()
    assert found.tobytes() == outcome.value.tobytes()
    assert resume(made).value.tobytes() == outcome.value.tobytes()


def test_an_exact_run_is_read_back_without_its_value_where_memory_is_short():
    made = platform()
    start(made)
    again = resume(made, options=DecodeOptions(memory=1000))
    assert again.exact and again.value is None and again.result_key is not None


def test_the_memory_of_a_coordinator_does_not_depend_on_the_answers_size():
    small, large = platform(rows=85), platform(rows=85 * 64)
    forms = [start_form(each) for each in (small, large)]
    assert budget.chunk_memory(forms[0], 0) == budget.chunk_memory(forms[1], 0)
    assert budget.least_memory(forms[0], 0) == budget.least_memory(forms[1], 0)
    assert budget.whole_memory(forms[0], 0) < budget.whole_memory(forms[1], 0)


def start_form(made: Platform):
    from coordinator.form import AnswerForm

    return AnswerForm.of(made.manifest, made.x.shape, made.x.dtype.str)


def test_workers_with_several_parts_that_die_half_way(chunked):
    chunked(2)
    made = platform(subtasks=2, workers=8, data_blocks=5, table={0: [Parts(1)], 1: [Silent()]})
    outcome = start(made)
    assert outcome.exact
    assert close(StoredProduct.open(made.bucket, outcome.result_key).load(), made.product)


def test_a_zarr_product_can_be_referred_to():
    made = platform()
    start(made, result="zarr")
    change = start(made, run=OTHER, reference=RUN, until="exact")
    assert change.exact and close(change.value, made.product)
