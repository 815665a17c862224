from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockstore import keys
from blockstore.errors import NameRefused

RUN = keys.new_run_id(1_700_000_000_000, bytes(range(10)))


@pytest.mark.parametrize("name", ["m", "ImageNet-64", "a.b_c", "0", "x" * 100, "k=1+v@2"])
def test_names_that_keys_keep_are_accepted(name: str) -> None:
    assert keys.validate_name(name) == name


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", "empty"),
        ("a/b", "slash"),
        ("a\\b", "slash"),
        (".", "dot"),
        ("..", "'..'"),
        ("a..b", "'..'"),
        (".hidden", "dot"),
        ("end.", "dot"),
        (" a", "white space"),
        ("a ", "white space"),
        ("a\n", "white space"),
        ("a\x00b", "control"),
        ("a\x7fb", "control"),
        ("matrice-é", "ASCII"),
        ("a b", "letters"),
        ("a%20b", "letters"),
        ("a&b", "letters"),
        ("a?b", "letters"),
        ("-a", "begin"),
        ("x" * 101, "100"),
    ],
)
def test_names_that_keys_would_mangle_are_refused_with_a_name_that_is_not(
    name: str, rule: str
) -> None:
    with pytest.raises(NameRefused, match=rule) as refused:
        keys.validate_name(name)
    suggestion = str(refused.value).split("Try '")[1].split("'")[0]
    assert keys.validate_name(suggestion) == suggestion


@pytest.mark.parametrize("name", [None, 3, b"m"])
def test_a_name_that_is_not_text_is_refused(name: object) -> None:
    with pytest.raises(NameRefused, match="text"):
        keys.validate_name(name)  # type: ignore[arg-type]


@given(st.text(max_size=120))
def test_every_refusal_suggests_a_name_that_is_accepted(name: str) -> None:
    try:
        keys.validate_name(name)
    except NameRefused as refused:
        suggestion = str(refused).rsplit("Try '", 1)[1][:-2]
        assert keys.validate_name(suggestion) == suggestion
    else:
        assert keys.manifest_key(name).split("/") == ["matrices", name, "manifest.json"]


@given(
    st.integers(0, 2**48 - 2),
    st.binary(min_size=10, max_size=16),
    st.binary(min_size=10, max_size=16),
)
def test_run_ids_sort_by_time(now: int, entropy: bytes, other: bytes) -> None:
    earlier, later = keys.new_run_id(now, entropy), keys.new_run_id(now + 1, other)
    assert earlier < later
    assert keys.validate_run(earlier) == earlier


def test_run_ids_of_one_millisecond_differ_by_their_entropy() -> None:
    assert keys.new_run_id(5, bytes(10)) != keys.new_run_id(5, bytes(9) + b"\x01")


@pytest.mark.parametrize("now, entropy", [(-1, bytes(10)), (2**48, bytes(10)), (0, bytes(9))])
def test_a_run_id_needs_a_time_and_ten_random_bytes(now: int, entropy: bytes) -> None:
    with pytest.raises(ValueError):
        keys.new_run_id(now, entropy)


@pytest.mark.parametrize("run", ["", "x", RUN.upper(), RUN + "0", "../" + RUN[3:], "u" * 26])
def test_what_is_not_a_run_id_is_refused(run: str) -> None:
    assert not keys.is_run(run)
    with pytest.raises(NameRefused, match="26"):
        keys.validate_run(run)


@given(st.integers(0, 200_000), st.integers(0, 50), st.integers(0, 20_000))
def test_numbers_come_back_from_the_keys_they_are_in(worker: int, attempt: int, tile: int) -> None:
    assert keys.parse_result_key(keys.result_key(RUN, worker)) == worker
    assert keys.parse_error_key(keys.error_key(RUN, worker, attempt)) == (worker, attempt)
    key = keys.tile_key("m", "0123456789abcdef", worker, tile)
    assert keys.parse_tile_key(key) == (worker, tile)


@pytest.mark.parametrize("key", ["runs/r/results/x.npy", "runs/r/x.npy", "results/00001.npy", ""])
def test_other_keys_are_not_taken_for_results_errors_or_tiles(key: str) -> None:
    for parse in (keys.parse_result_key, keys.parse_error_key, keys.parse_tile_key):
        with pytest.raises(ValueError):
            parse(key)


def test_the_keys_are_those_the_documentation_names() -> None:
    assert keys.tile_key("m", "0123456789abcdef", 7, 12) == (
        "matrices/m/coded/0123456789abcdef/00007/0012.npy"
    )
    assert keys.result_key(RUN, 7) == f"runs/{RUN}/results/00007.npy"
    assert keys.error_key(RUN, 7, 2) == f"runs/{RUN}/errors/00007.2.json"
    assert keys.stop_key(RUN, 2) == f"runs/{RUN}/stop.2"
    assert keys.run_key(RUN) == f"runs/{RUN}/run.json"
    assert keys.report_key(RUN, "html") == f"runs/{RUN}/report.html"
