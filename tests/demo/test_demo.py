"""The demo, small, from beginning to end in its own local stack."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from click.testing import CliRunner

from polarlambda.cli import command
from polarlambda.demo import play
from polarlambda.errors import BadInput


@pytest.fixture
def no_endpoints(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_LAMBDA"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.slow
def test_the_demo_decodes_numpys_product_and_draws_a_picture(no_endpoints, tmp_path):
    from PIL import Image

    before = dict(os.environ)
    line = ["demo", "--small", "--scale", "0.3", "--output", str(tmp_path / "out")]
    done = CliRunner().invoke(command, line)
    assert done.exit_code == 0, done.output
    checks = re.findall(r"Check against NumPy: relative error (\S+),", done.stdout)
    assert len(checks) == 2
    assert all(float(error) <= 1e-5 for error in checks)
    assert done.stdout.count("decodable: stop the others") == 2
    for line in ("exact after", "answers needed", "would cost on AWS", "95 % bar"):
        assert line in done.stdout
    assert str(tmp_path / "out" / "estimate.png") in done.stdout
    with Image.open(tmp_path / "out" / "estimate.png") as picture:
        assert picture.size == (2400, 1650)
        pixels = np.asarray(picture.convert("L"))
    assert 0.05 < (pixels < 128).mean() < 0.6
    assert dict(os.environ) == before


def test_a_product_that_is_not_numpys_is_an_error(monkeypatch):
    """The check can fail: the demo's own oracle is moved, and exit code 4 is what comes."""
    from polarlambda.demo.play import Problem, run
    from polarlambda.demo.stage import Stage
    from polarlambda.errors import PlatformError

    class Matrix:
        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

        def multiply(self, x, estimator, on_event):
            return type("R", (), {"exact": True, "value": np.ones(4), "run": "r", "state": "exact"})

    monkeypatch.setattr("polarlambda.matrix.CodedMatrix.open", lambda name: Matrix())
    problem = Problem(None, np.ones(2), np.full(4, 1.00002), [])
    with pytest.raises(PlatformError, match="differs from NumPy's by 2"):
        run(Stage(None, None), "demo", problem, print)


def test_delays_are_drawn_from_the_seed_or_read_from_a_file(tmp_path):
    drawn = play.draw_delays("exponential", 2.0, 1)
    assert drawn.shape == (64,)
    assert drawn.min() == 0
    np.testing.assert_array_equal(drawn, play.draw_delays("exponential", 2.0, 1))
    assert not np.array_equal(drawn, play.draw_delays("exponential", 2.0, 2))
    np.testing.assert_allclose(drawn, 2 * play.draw_delays("exponential", 1.0, 1))
    np.savetxt(tmp_path / "d.csv", [[3.0, 5.0] * 40, [1.0] * 80], delimiter=",")
    assert set(play.draw_delays(str(tmp_path / "d.csv"), 1.0, 0)) == {0.0, 2.0}
    assert play.draw_delays("none", 1.0, 0).max() == 0


@pytest.mark.parametrize("scale", [-1, float("nan"), float("inf")])
def test_a_scale_that_is_no_factor_is_refused(scale):
    with pytest.raises(BadInput, match="scale"):
        play.draw_delays("exponential", scale, 0)


@pytest.mark.parametrize("delays", ["gremlins", "no-such-file.csv"])
def test_delays_that_do_not_exist_are_refused(delays):
    done = CliRunner().invoke(command, ["demo", "--delays", delays])
    assert done.exit_code == 2
    assert delays in done.stderr
    with pytest.raises(BadInput):
        play.draw_delays(delays, 1.0, 0)
