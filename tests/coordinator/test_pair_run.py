"""Products of two encoded matrices: the run machine, the collector and the decoder on a grid."""

from __future__ import annotations

import numpy as np
import pytest

from blockstore.errors import ManifestError
from blockstore.manifest import delete_matrix
from blockstore.pairs import MatrixPair, load_subject
from blockstore.runs import RunStore
from coordinator.inputs import InputRefused, MatrixReplaced
from coordinator.run import cancel_run, resume_run
from polarcodes import make_code
from tests.coordinator.pair_platform import RUN, PairPlatform, encoded


def code(workers, blocks, seed=0, name="hadamard", **options):
    return make_code(name, workers=workers, data_blocks=blocks, seed=seed, **options)


def platform(**options) -> PairPlatform:
    return PairPlatform(code(4, 3), code(6, 4, 1), **options)


@pytest.mark.parametrize("dtype", ["<f8", "<i2", "<u2", "<f8"])
def test_it_is_exact_and_verified_with_dead_workers(dtype):
    lines = code(4, 3), code(6, 4, 1)
    if dtype != "<f8":
        lines = tuple(code(n, s, name="mds", basis="integer") for n, s in ((4, 3), (6, 4)))
    made = PairPlatform(*lines, dtype=dtype, dead=frozenset({0, 1, 6, 7}))
    outcome = made.start()
    assert (outcome.state, outcome.exact, outcome.met) == ("exact", True, True)
    assert outcome.method == "alternating" and outcome.workers == 24
    scale = np.abs(made.product).max()
    np.testing.assert_allclose(outcome.value, made.product, atol=1e-12 * scale)
    spec = RunStore(made.bucket, RUN).load_spec()
    assert (spec.matrix, spec.right, spec.x_shape) == ("left", "right2", (5, 11))
    report = RunStore(made.bucket, RUN).get_report()
    assert report["right"] == "right2" and report["usage"]["invokes"] == 24


def test_what_reads_and_invokes_is_counted():
    made = platform()
    made.start()
    report = RunStore(made.bucket, RUN).get_report()
    tiles = 3 + 3  # of two columns each, of five, of both blocks
    answered = report["arrivals"]
    own = sum(kind == "get" for kind, key in made.bucket.requests if "/coded/" not in key)
    assert report["usage"]["gets"] >= answered * tiles
    assert report["usage"]["gets"] <= answered * tiles + own + 5


def test_a_stopping_set_is_invoked_once_more_and_ends_with_an_estimate():
    made = platform(dead=frozenset({0, 1, 2, 6, 7, 8}))
    outcome = made.start(deadline=400.0)
    assert (outcome.state, outcome.met, outcome.arrivals) == ("estimated", False, 18)
    again = sorted(worker for worker, attempt in made.invoked if attempt == 2)
    assert again == [0, 1, 2, 6, 7, 8]
    size = np.linalg.norm(made.product)
    assert np.linalg.norm(outcome.value - made.product) <= outcome.error_upper * size
    assert outcome.value.shape == made.product.shape


def test_a_run_that_ended_short_is_resumed_from_what_is_there():
    made = platform(dead=frozenset({0, 1, 2, 6, 7, 8}))
    made.start(deadline=400.0)
    made.dead, before = frozenset(), len(made.invoked)
    outcome = resume_run(made.bucket, RUN, invoker=made, clock=made.clock)
    assert outcome.exact
    assert {worker for worker, _ in made.invoked[before:]} <= {0, 1, 2, 6, 7, 8}
    np.testing.assert_allclose(outcome.value, made.product, atol=1e-9)
    again = resume_run(made.bucket, RUN, invoker=made, clock=made.clock)
    assert np.array_equal(again.value, outcome.value)


def test_a_resumed_run_wants_the_same_matrices():
    made = platform(dead=frozenset(range(20)))
    made.start(deadline=5.0)
    other = np.ascontiguousarray(made.B.T) + 1
    changed = encoded(made.bucket, "right2", other, code(6, 4, 2))
    assert changed.digest != made.pair.right.digest
    with pytest.raises(MatrixReplaced, match="'left' or 'right2'"):
        resume_run(made.bucket, RUN, invoker=made, clock=made.clock)
    delete_matrix(made.bucket, "right2")
    with pytest.raises(Exception, match="right2"):
        load_subject(made.bucket, RunStore(made.bucket, RUN).load_spec())


def test_a_wrong_answer_is_found_by_the_left_over_equations():
    made = platform(spoil=lambda worker, answer: answer + 100.0 * (worker == 5))
    outcome = made.start()
    assert outcome.state == "failed" and not outcome.exact
    assert "left-over equations" in outcome.message


def test_it_is_cancelled_like_any_run():
    made = platform(dead=frozenset(range(24)))
    made.start(deadline=1.0)
    assert cancel_run(made.bucket, RUN).state in ("failed", "estimated", "cancelled")


def test_what_it_cannot_do_is_refused_before_anything_is_written():
    made = platform()
    for options, word in (
        ({"until": "tasks=0.5"}, "rows"),
        ({"estimator": "hybrid"}, "hybrid"),
        ({"deadline": -1}, "deadline"),
        ({"decode": "elsewhere"}, "decode"),
    ):
        with pytest.raises(ValueError, match=word):
            made.start(**options)
    assert not any(kind == "put" for kind, _ in made.bucket.requests)
    assert made.invoked == []
    made.start()
    with pytest.raises(InputRefused, match="begun already"):
        made.start()


def test_matrices_that_do_not_fit_together_are_no_pair():
    made = platform()
    other = encoded(made.bucket, "other", np.ones((4, 6)), code(4, 3))
    with pytest.raises(ManifestError, match="inner dimension"):
        MatrixPair(made.pair.left, other)
