"""What cannot be trained on or asked for is refused, with the rule and the fix."""

from __future__ import annotations

import numpy as np
import pytest

from blockstore.derived import Derived
from polarlambda.errors import BadInput
from polarlambda.training.data_facts import column_notes
from polarlambda.training.labels import read_labels
from polarlambda.training.recipe import check_recipe, make_stop

Y = np.arange(6.0)
C = np.array([0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize(
    ("labels", "model", "classes", "words"),
    [
        (Y[:5], "ridge", None, r"\(5,\).*6 rows"),
        (np.zeros((6, 0)), "ridge", None, "6 rows"),
        (np.zeros((6, 2, 2)), "ridge", None, "6 rows"),
        (np.zeros((6, 2)), "multinomial", None, "6 rows"),
        (np.array([0, 1, 2, np.nan, 4, 5]), "ridge", None, "row 3"),
        (np.array([0, 1, 2, 3, 4, -np.inf]), "least-squares", None, "row 5"),
        (np.array(["a"] * 6), "ridge", None, "text"),
        (np.array([None] * 6), "ridge", None, "pickle"),
        (np.ones(6, complex), "ridge", None, "complex"),
        ([[1, 2], [3]], "ridge", None, "cannot be used"),
        (np.ma.masked_array(Y, Y > 3), "ridge", None, "masked"),
        ("nowhere.npy", "ridge", None, "cannot be read"),
        (Y, "ridge", 3, "classes are for"),
        (Y, "logistic", None, "two values, got 6"),
        (np.ones(6), "logistic", None, "missing"),
        (C, "logistic", 3, "multinomial"),
        (Y + 0.5, "multinomial", None, "row 0 is 0.5"),
        (C - 1, "multinomial", None, "-1"),
        (C * 10**9, "multinomial", None, "number the classes"),
        (np.where(C == 1, 2, C), "multinomial", None, "class 1 does not"),
        (C, "multinomial", 5, "classes 3, 4 do not"),
        (C, "multinomial", 2, "below 2"),
        (np.zeros(6), "multinomial", None, "class 1 does not"),
    ],
)
def test_labels_that_cannot_be_used(labels, model, classes, words):
    with pytest.raises(BadInput, match=words):
        read_labels(labels, model, 6, classes=classes)


def test_labels_become_targets(tmp_path):
    np.save(tmp_path / "y.npy", C.astype(">i2"))
    found = read_labels(tmp_path / "y.npy", "multinomial", 6)
    np.testing.assert_array_equal(found.values, np.eye(3)[C])
    assert (found.classes, found.given.dtype) == ((0, 1, 2), np.dtype("i2"))
    assert found.digest == read_labels(C.astype("i2"), "multinomial", 6, classes=3).digest
    two = read_labels([7, -2, 7, 7, -2, 7], "logistic", 6)
    assert two.classes == (-2, 7) and two.values[:, 0].tolist() == [1, 0, 1, 1, 0, 1]
    assert read_labels(Y[:, None], "ridge", 6).given.shape == (6,)
    assert read_labels(np.ones((6, 3)), "ridge", 6).values.shape == (6, 3)
    assert read_labels(C > 0, "logistic", 6).values.sum() == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "forest"}, "multinomial"),
        ({"model": "ridge"}, "penalty"),
        ({"model": "ridge", "l2": -1.0}, "at least 0"),
        ({"model": "ridge", "l2": float("nan")}, "at least 0"),
        ({"l2": 1.0}, "use ridge"),
        ({"tolerance": 1.0}, r"\[0, 1\)"),
        ({"tolerance": -0.1}, r"\[0, 1\)"),
        ({"tighten": 0.0}, "tighten"),
        ({"step": -1.0}, "positive"),
        ({"momentum": "nesterov"}, "fixed step"),
    ],
)
def test_recipes_that_cannot_be(options, words):
    recipe = {
        "model": "least-squares",
        "l2": 0.0,
        "step": "line",
        "momentum": None,
        "beta": 0.9,
        "tolerance": 0.0,
        "tighten": 1.0,
    }
    check_recipe(**recipe)
    with pytest.raises(BadInput, match=words):
        check_recipe(**{**recipe, **options})


def test_a_limit_is_an_end_as_good_as_a_goal_where_no_goal_was_given():
    stop, wanted = make_stop({"iterations": 5, "seconds": None})
    assert (stop.iterations, stop.gradient_norm, wanted) == (5, 1e-4, False)
    stop, wanted = make_stop({})
    assert (stop.iterations, stop.gradient_norm, wanted) == (1000, 1e-4, True)
    stop, wanted = make_stop({"loss": 0.5, "dollars": 1.0})
    assert (stop.iterations, stop.gradient_norm, stop.loss, wanted) == (None, None, 0.5, True)


def test_notes_name_constant_columns_and_suggest_ridge_unless_there_is_one():
    derived = Derived("gram", "sha256:0", 9, tuple(range(3, 15)), 14)
    constant, others, ridge = column_notes(derived, l2=0.0)
    assert "3, 4, 5" in constant and constant.endswith("... (from 0)")
    assert ": 2 (" in others and "--l2" in ridge
    assert column_notes(derived, l2=1e-9) == column_notes(None, l2=0.0) == ()
    assert column_notes(Derived("gram", "sha256:0", 9, (), 0), l2=0.0) == ()
