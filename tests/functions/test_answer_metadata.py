"""Metadata that S3 keeps as text: a round trip, and figures that are damaged are unknown."""

from __future__ import annotations

import pytest

from blockstore.answers import AnswerMetadata

GOOD = AnswerMetadata(
    x_digest="sha256:1",
    encoding="0123456789abcdef",
    attempt=2,
    cold=True,
    seconds_read=0.25,
    seconds_multiply=0.5,
    seconds_total=1.0,
    peak_memory=1 << 27,
    scale=12.5,
    looks=2,
)


def test_round_trip_and_header_case():
    assert AnswerMetadata.from_metadata(GOOD.to_metadata()) == GOOD
    shouted = {name.title(): value for name, value in GOOD.to_metadata().items()}
    assert AnswerMetadata.from_metadata(shouted) == GOOD


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "-1"])
def test_a_damaged_figure_is_unknown_and_the_digests_stay(text):
    damaged = {name: text for name in GOOD.to_metadata()} | {"x-digest": "sha256:1"}
    found = AnswerMetadata.from_metadata(damaged)
    assert found.x_digest == "sha256:1"
    assert (found.attempt, found.seconds_total, found.scale) == (0, 0.0, 0.0)
    assert AnswerMetadata.from_metadata({}).x_digest == ""
