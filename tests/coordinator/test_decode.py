"""Decoding and estimating answers: a function of the set alone, by chunks of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockstore.answers import AnswerMetadata
from coordinator import answers as module
from coordinator import estimate as estimates
from coordinator.answers import Answers
from coordinator.decode import decode
from coordinator.estimate import check_estimator, estimate
from coordinator.form import AnswerForm
from coordinator.inputs import InputRefused
from polarcodes import NotDecodable, make_code
from polarcodes.estimators import choose_estimator
from tests.coordinator.fake_platform import ENCODING, Platform

PLATFORM = Platform(rows=200, k=3)
EXACT = (PLATFORM.coded.astype("f8") @ PLATFORM.x.astype("f8")).astype("f4")


def arrived(order, change=None) -> Answers:
    answers = Answers(AnswerForm.of(PLATFORM.manifest, PLATFORM.x.shape, PLATFORM.x.dtype.str))
    for worker in order:
        value = EXACT[worker].copy()
        if worker == change:
            value[0, 0] += 1.0
        metadata = AnswerMetadata(x_digest="", encoding=ENCODING, scale=1.0)
        answers.add(worker, value, metadata)
    return answers


@given(st.permutations(range(16)), st.integers(1, 70), st.integers(13, 16))
def test_order_and_chunk_size_do_not_change_a_byte(order, columns, count):
    decisive = sorted(order)[:count]
    reference = decode(PLATFORM.code, arrived(range(16)), decisive).value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK_BYTES", 8 * count * columns)
        found = decode(PLATFORM.code, arrived(order), [w for w in order if w in decisive])
    assert found.value.tobytes() == reference.tobytes()
    np.testing.assert_allclose(found.value, PLATFORM.product, rtol=1e-4, atol=1e-4)


def test_answers_are_held_without_a_copy():
    answers = Answers(AnswerForm.of(PLATFORM.manifest, PLATFORM.x.shape, "<f4"))
    value = EXACT[0].copy()
    answers.add(0, value, AnswerMetadata(x_digest="", encoding=ENCODING))
    assert np.shares_memory(answers._held[0], value)
    answers.add(0, value + 1, AnswerMetadata(x_digest="", encoding=ENCODING))
    np.testing.assert_array_equal(answers.gather([0], 0, answers.form.length)[0], value.reshape(-1))


def test_one_wrong_entry_is_noticed_in_its_chunk(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", 8 * 16 * 10)
    found = decode(PLATFORM.code, arrived(range(16), change=5), range(16))
    assert not found.verified and found.contradiction is not None


def test_a_set_that_does_not_decode_is_an_error():
    with pytest.raises(NotDecodable):
        decode(PLATFORM.code, arrived(range(5)), range(5))


def test_the_estimate_has_the_products_shape_and_its_error_is_that_of_the_set(monkeypatch):
    whole = estimate(PLATFORM.code, arrived(range(12)), range(12))
    monkeypatch.setattr(module, "CHUNK_BYTES", 8 * 12 * 7)
    parts = estimate(PLATFORM.code, arrived(range(12)), range(12))
    assert whole.value.shape == (200, 3) and whole.value.dtype == "f4"
    np.testing.assert_allclose(whole.value, parts.value, rtol=1e-5, atol=1e-5)
    assert (whole.error, whole.error_upper) == (parts.error, parts.error_upper)
    name, error = choose_estimator(PLATFORM.code, range(12))
    assert (whole.method, whole.error) == (name, pytest.approx(error))
    assert whole.error < PLATFORM.code.predicted_error(12)
    assert whole.absolute == pytest.approx(parts.absolute)
    true = np.linalg.norm(whole.value - PLATFORM.product) / np.linalg.norm(PLATFORM.product)
    assert true < whole.error_upper


def test_the_papers_estimator_can_be_asked_for():
    paper = estimate(PLATFORM.code, arrived(range(12)), range(12), "paper")
    assert paper.method == "sketch"
    assert paper.error == pytest.approx(PLATFORM.code.predicted_error(12))


def test_large_answers_get_the_estimate_that_costs_little(monkeypatch):
    assert estimate(PLATFORM.code, arrived(range(6)), range(6)).method == "least-squares"
    monkeypatch.setattr(estimates, "MOST_BYTES", 0)
    assert estimate(PLATFORM.code, arrived(range(6)), range(6)).method == "shrinkage"


@pytest.mark.parametrize("name", ["median", "", "sketch"])
def test_an_estimator_that_there_is_not_is_refused(name):
    with pytest.raises(InputRefused, match="estimator must be one of best, paper, shrinkage"):
        check_estimator(PLATFORM.code, name)


def test_codes_with_one_estimator_refuse_another_one():
    code = make_code("mds", workers=6, data_blocks=4)
    assert check_estimator(code, "best") == "best"
    with pytest.raises(InputRefused, match="'mds' has one estimator"):
        check_estimator(code, "paper")


def test_the_rounding_error_predicted_for_the_answers_is_that_of_the_product():
    ratios = []
    for count in (13, 14, 16):
        found = decode(PLATFORM.code, arrived(range(16)), range(16 - count, 16))
        exact = PLATFORM.product
        true = np.linalg.norm(found.value - exact) / np.linalg.norm(exact)
        assert found.how.startswith(f"{found.method} decoder, predicted rounding error")
        ratios.append(true / found.error)
    assert min(ratios) > 0.02 and max(ratios) < 3
