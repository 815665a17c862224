"""What is particular to one code: parameters, golden codewords, manifests, error bars."""

from __future__ import annotations

import numpy as np
import pytest

from polarcodes import InvalidBlocks, InvalidCode, InvalidManifest, code_from_manifest, make_code
from polarcodes.polar import PolarCode


def test_golden_codeword_of_two_workers():
    code = make_code("polar", workers=2, data_blocks=2, seed=0)
    d = code.signs.astype(int)
    U = np.array([[3, 5], [10, 20]])
    wanted = np.array([d[0] * U[0] + d[1] * U[1], d[0] * U[0] - d[1] * U[1]])
    assert np.array_equal(code.encode(U), wanted)


@pytest.mark.parametrize("workers", [3, 48, 65, 1000])
def test_the_class_for_powers_of_two_names_the_nearest_ones(workers):
    below = 1 << (workers.bit_length() - 1)
    with pytest.raises(InvalidCode, match=f"{workers}: take {below} or {2 * below}"):
        PolarCode(workers, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"workers": 1, "data_blocks": 1},
        {"workers": 0, "data_blocks": 1},
        {"workers": -4, "data_blocks": 1},
        {"workers": 4.0, "data_blocks": 2},
        {"workers": "4", "data_blocks": 2},
        {"workers": True, "data_blocks": 1},
        {"workers": 4, "data_blocks": 0},
        {"workers": 4, "data_blocks": 5},
        {"workers": 4, "data_blocks": 2, "seed": -1},
        {"workers": 4, "data_blocks": 2, "seed": 0.5},
        {"workers": 4, "data_blocks": 2, "epsilon": 0},
        {"workers": 4, "data_blocks": 2, "epsilon": 1.0},
        {"workers": 4, "data_blocks": 2, "epsilon": float("nan")},
        {"workers": 4, "data_blocks": 2, "epsilon": "a"},
        {"workers": 4, "data_blocks": 2, "rate": 0.5},
    ],
)
def test_impossible_polar_codes_are_refused(arguments):
    with pytest.raises(InvalidCode):
        make_code("polar", **arguments)


def test_impossible_uncoded_runs_and_unknown_names_are_refused():
    with pytest.raises(InvalidCode, match="equal workers"):
        make_code("uncoded", workers=4, data_blocks=3)
    with pytest.raises(InvalidCode, match="no option"):
        make_code("uncoded", workers=4, data_blocks=4, epsilon=0.5)
    with pytest.raises(InvalidCode, match=r"hadamard.*polar.*uncoded, got 'turbo'"):
        make_code("turbo", workers=4, data_blocks=4)


def test_the_same_arguments_give_the_same_code_and_other_seeds_other_signs():
    first = make_code("polar", workers=64, data_blocks=48, seed=1)
    assert first == make_code("polar", workers=64, data_blocks=48, seed=1)
    other = make_code("polar", workers=64, data_blocks=48, seed=2)
    assert first != other
    assert np.array_equal(first.slots, other.slots)
    assert first != "polar"


def test_epsilon_chooses_the_slots():
    default = make_code("polar", workers=256, data_blocks=128)
    assert default.epsilon == 0.5
    low = make_code("polar", workers=256, data_blocks=128, epsilon=0.01)
    assert low.slots.tolist() != default.slots.tolist()
    assert code_from_manifest(low.to_manifest()) == low


@pytest.mark.parametrize(
    "source,low,high,blocks,wanted",
    [
        ("uint8", 0, 255, 128, "int16"),
        ("uint8", 0, 255, 129, "int32"),
        ("uint8", 0, 254, 129, "int16"),
        ("int8", -128, 127, 256, "int32"),
        ("bool", 0, 1, 256, "int16"),
        ("uint16", 0, 65535, 256, "int32"),
        ("int32", -(2**31), 0, 256, "int64"),
        ("int64", -(2**63), 0, 2, "float64"),
        ("uint64", 0, 2**64 - 1, 2, "float64"),
        ("uint64", 0, 2**62, 1, "int64"),
        ("float16", -65504, 65504, 256, "float32"),
        ("float32", -1, 1, 256, "float32"),
        ("float32", 0, 3e38, 2, "float64"),
        ("float64", 0, 1e300, 256, "float64"),
    ],
)
def test_the_coded_dtype_holds_every_sum(source, low, high, blocks, wanted):
    code = make_code("polar", workers=256, data_blocks=blocks)
    assert code.encoded_dtype(np.dtype(source), low, high) == np.dtype(wanted)


def test_numpy_scalars_do_not_wrap_in_the_range():
    code = make_code("polar", workers=512, data_blocks=256)
    assert code.encoded_dtype("int8", np.int8(-128), np.int8(-128)) == np.dtype("int32")


@pytest.mark.parametrize("source", ["complex64", "object", "S3", "datetime64[s]"])
def test_other_kinds_of_numbers_are_refused(source):
    with pytest.raises(InvalidBlocks, match="real numbers"):
        make_code("polar", workers=4, data_blocks=2).encoded_dtype(source, 0, 1)


def test_ranges_that_are_not_finite_or_overflow_are_refused():
    code = make_code("polar", workers=4, data_blocks=3)
    with pytest.raises(InvalidBlocks, match="finite"):
        code.encoded_dtype("float32", 0, np.inf)
    with pytest.raises(InvalidBlocks, match="finite"):
        code.encoded_dtype("float32", np.nan, 1)
    with pytest.raises(InvalidBlocks, match="overflow"):
        code.encoded_dtype("float64", 0, 1e308)


def test_data_that_are_not_finite_name_the_block():
    code = make_code("polar", workers=8, data_blocks=4)
    U = np.zeros((4, 50_000), np.float32)
    U[2, 49_999] = np.nan
    with pytest.raises(InvalidBlocks, match="data block 2"):
        code.encode(U)


def changed(manifest, field, index, value):
    return {
        **manifest,
        field: [value if i == index else old for i, old in enumerate(manifest[field])],
    }


@pytest.mark.parametrize(
    "field,index,value",
    [
        ("slots", 0, 7),
        ("slots", 0, 8),
        ("slots", 0, -1),
        ("slots", 0, 1.0),
        ("slots", 0, True),
        ("signs", 0, 0),
        ("signs", 0, 2),
        ("signs", 0, "1"),
        ("signs", 0, 1.0),
    ],
)
def test_wrong_slots_and_signs_are_refused(field, index, value):
    manifest = make_code("polar", workers=8, data_blocks=4).to_manifest()
    assert manifest["slots"] == [3, 5, 6, 7]
    with pytest.raises(InvalidManifest, match=field):
        code_from_manifest(changed(manifest, field, index, value))


@pytest.mark.parametrize(
    "manifest", [None, [], "polar", {}, {"name": 3}, {"name": "turbo"}, {"name": ["polar"]}]
)
def test_what_is_not_a_code_is_refused(manifest):
    with pytest.raises(InvalidManifest):
        code_from_manifest(manifest)


def test_a_manifest_of_another_version_or_length_is_refused():
    manifest = make_code("polar", workers=8, data_blocks=4).to_manifest()
    with pytest.raises(InvalidManifest, match="version"):
        code_from_manifest({**manifest, "version": 2})
    with pytest.raises(InvalidManifest, match="power of two"):
        code_from_manifest({**manifest, "workers": 9})
    with pytest.raises(InvalidManifest, match="signs"):
        code_from_manifest({**manifest, "workers": 16})
    with pytest.raises(InvalidManifest, match="slots"):
        code_from_manifest({**manifest, "data_blocks": 3})


def test_stored_slots_and_signs_rule_over_those_of_the_seed():
    manifest = make_code("polar", workers=4, data_blocks=2).to_manifest()
    code = code_from_manifest({**manifest, "slots": [0, 3], "signs": [1, -1, -1, -1]})
    assert code.generator().tolist() == [[1, -1], [1, 1], [1, 1], [1, -1]]
    assert code.to_manifest()["slots"] == [0, 3]


def test_uncoded_estimates_put_zeros_where_answers_are_missing():
    code = make_code("uncoded", workers=4, data_blocks=4)
    Y = np.array([[1.0, 2.0], [3.0, 4.0]])
    estimate = code.estimate([2, 0], Y)
    assert estimate.value.tolist() == [[3, 4], [0, 0], [1, 2], [0, 0]]
    assert estimate.relative_error == pytest.approx(np.sqrt(0.5))
    assert estimate.relative_error_upper == 1
    assert estimate.absolute_error == pytest.approx(np.sqrt(0.5 * 4 * 15))
    assert estimate.method == "zero-fill"


def test_arrivals_refuse_impossible_tolerances():
    code = make_code("polar", workers=4, data_blocks=2)
    for options in ({"answer_error": 0}, {"tolerance": -1}, {"tolerance": "a"}):
        with pytest.raises(InvalidCode, match=next(iter(options))):
            code.arrivals(**options)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_plain_blocks_keep_their_integers(dtype):
    """Nothing is added, so nothing needs room for sums: the baseline reads no byte too many."""
    code = make_code("uncoded", workers=4, data_blocks=4)
    limits = np.iinfo(dtype)
    U = np.array([[limits.min], [limits.max], [0], [1]], dtype=">" + dtype)
    coded = code.encode(U)
    assert coded.dtype == np.dtype(dtype)
    assert coded.dtype.isnative
    assert np.array_equal(coded, U)
    buffer = coded.copy()
    code.encode_inplace(buffer)
    assert np.array_equal(buffer, coded)


def test_plain_booleans_become_bytes():
    coded = make_code("uncoded", workers=2, data_blocks=2).encode([[True], [False]])
    assert coded.dtype == np.uint8
    assert coded.tolist() == [[1], [0]]
