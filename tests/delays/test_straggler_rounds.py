"""The rounds that benchmarks/stragglers.py replays; the runs themselves are timed there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.stragglers import DRAWS, PROFILE, main, measured_rounds, modelled_rounds
from polarcodes.delays import make_delays


def test_every_measured_round_is_drawn_five_times_without_repeating_a_worker(
    tmp_path: Path,
) -> None:
    table = np.arange(3 * 256.0).reshape(3, 256)
    np.savetxt(tmp_path / PROFILE, table, delimiter=",")
    rounds = measured_rounds(tmp_path / PROFILE)
    assert rounds.shape == (3 * DRAWS, 64)
    assert all(len(set(row)) == 64 for row in rounds)
    assert rounds.min() >= 0 and rounds.max() <= 255, "value minus row minimum"
    assert len({tuple(row) for row in rounds}) == len(rounds), "draws differ"


def test_modelled_rounds_keep_the_share_of_stalls() -> None:
    """Systematic in the largest delay: the mean of the maxima is off by less than one stall in
    12."""
    chosen = modelled_rounds(12)
    assert chosen.shape == (12, 64)
    all_rounds = make_delays("lambda-rare-tail").sample(np.random.default_rng(5), 20_000, 64)
    share = (all_rounds.max(axis=1) > 5).mean()
    assert abs((chosen.max(axis=1) > 5).mean() - share) <= 1 / 12


def test_without_the_measurements_the_benchmark_says_why_it_skips(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(tmp_path)]) == 0
    assert f"skipped: no {PROFILE} in {tmp_path}" in capsys.readouterr().out
