from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarlambda.errors import BadInput
from polarlambda.sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1GB", 10**9),
        ("1 GiB", 2**30),
        ("512 MiB", 512 << 20),
        ("1.5k", 1500),
        (".5 MB", 500_000),
        ("  7b ", 7),
        ("123", 123),
        (1 << 30, 1 << 30),
    ],
)
def test_sizes_as_people_write_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0", "1 PB", "1e9", "nan", "one", True, None])
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(BadInput, match="memory must be a positive size such as 1GB"):
        parse_size(text)


@given(st.integers(1, 10**15))
def test_formatted_sizes_are_within_half_a_percent(size):
    assert abs(parse_size(format_size(size).replace(",", "")) - size) <= max(0.5, 0.0051 * size)
