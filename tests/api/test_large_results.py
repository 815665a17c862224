"""Products that do not fit the coordinator: in chunks and by decode functions, on the local stack,
with the command and the API; read back by NumPy and by the zarr library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from numpy.typing import NDArray

import polarlambda
from blockstore import decode_keys, keys
from coordinator import budget, decode_stored
from coordinator.answers import DecisiveAnswerLost
from coordinator.decode_options import DecodeOptions
from polarlambda.cli import command
from polarlambda.errors import BadInput
from polarlambda.local import LocalStack
from polarlambda.result import Result


@pytest.fixture(scope="module")
def problem() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((6000, 8)).astype(np.float32)
    return A, rng.standard_normal((8, 700)).astype(np.float32)


@pytest.fixture
def wide(local_environment: LocalStack, problem: Any) -> LocalStack:
    """12 of 16 blocks of 500 rows, whose products with 700 columns have 1.4 MB each."""
    polarlambda.encode(problem[0], "wide", workers=16, data_blocks=12, replace=True)
    return local_environment


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that fits no answers, and room for 100 of 500 rows of every block, which are
    less than a part of an .npy: it is made in two stages."""
    monkeypatch.setattr(DecodeOptions, "in_memory", lambda self, form, spec: False)
    monkeypatch.setattr(decode_stored, "window_rows", lambda *given: 100)
    monkeypatch.setattr(budget, "LEAST_SHARE", 100 * 16 * 700 * 4)


def multiply(problem: Any, **options: Any) -> Result:
    with polarlambda.CodedMatrix.open("wide") as matrix:
        return matrix.multiply(problem[1], **options)


def right(value: Any, problem: Any) -> bool:
    expected = problem[0].astype(np.float64) @ problem[1].astype(np.float64)
    return bool(np.linalg.norm(value - expected) <= 1e-4 * np.linalg.norm(expected))


@pytest.mark.parametrize(
    ("decode", "kind"), [("local", "npy"), ("lambda", "npy"), ("local", "zarr")]
)
def test_a_product_larger_than_memory(
    wide: LocalStack, problem: Any, short: None, tmp_path: Path, decode: Any, kind: Any
) -> None:
    result = multiply(problem, decode=decode, result=kind, memory="1GB")
    assert result.exact and result.met and result.stored is not None
    path = result.download(tmp_path / f"y.{kind}")
    assert result.stored is not None, "downloading does not read the value into memory"
    found = np.load(path) if kind == "npy" else zarr.open_array(path, mode="r")[:]
    assert right(found, problem) and found.shape == (6000, 700)
    np.testing.assert_array_equal(result.value, found)
    assert result.stored is None and result.has_value


def test_the_zarr_library_reads_what_lies_in_the_bucket(
    wide: LocalStack, problem: Any, short: None, tmp_path: Path
) -> None:
    result = multiply(problem, decode="lambda", result="zarr")
    bucket = polarlambda.connect.Place().open_bucket()
    prefix = decode_keys.zarr_prefix(result.run)
    for info in bucket.list(prefix):
        target = tmp_path / "stored.zarr" / info.key.removeprefix(prefix)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(bucket.get(info.key))
    array = zarr.open_array(tmp_path / "stored.zarr", mode="r")
    assert right(array[:], problem)
    assert np.isnan(array.fill_value)
    (tmp_path / "stored.zarr" / "c" / "0" / "0").unlink()
    assert np.isnan(zarr.open_array(tmp_path / "stored.zarr", mode="r")[0, 0])


def test_the_command_writes_what_the_name_says(
    wide: LocalStack, problem: Any, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", problem[1])
    path, words = tmp_path / "y.zarr", ["multiply", "wide", str(tmp_path / "x.npy")]
    for _ in range(2):  # over the one that is there
        ran = CliRunner().invoke(
            command,
            [*words, "-o", str(path), "--json", "--decode", "lambda"],
        )
        assert ran.exit_code == 0, ran.output
    said = json.loads(ran.stdout)
    assert said["value_path"] == str(path) and said["exact"]
    assert right(zarr.open_array(path, mode="r")[:], problem)
    resumed = CliRunner().invoke(
        command, ["runs", "resume", said["run"], "-o", str(tmp_path / "y.npy"), "--memory", "1GB"]
    )
    assert resumed.exit_code == 0, resumed.output
    assert right(np.load(tmp_path / "y.npy"), problem)


def test_the_deployed_coordinator_has_decode_functions_do_it(
    wide: LocalStack, problem: Any
) -> None:
    result = multiply(problem, on="lambda", decode="lambda", result="zarr")
    assert result.exact and right(result.value, problem)
    functions = [record.function for record in wide.invocations()]
    assert "DecodeFunction" in functions


def test_a_decode_function_that_dies_is_started_once_more(
    wide: LocalStack, problem: Any, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coordinator import decode_fleet

    true = decode_fleet.Fleet._start
    lost: list[int] = []

    def without_the_first(self: Any, invoker: Any, stage: str, *rest: Any) -> None:
        submit = invoker.submit

        def dropped(tasks: Any) -> None:
            if stage == "window" and not lost:
                lost.append(tasks[0].worker)
                tasks = tasks[1:]  # accepted by nobody, reported by nobody
            submit(tasks)

        invoker.submit = dropped
        true(self, invoker, stage, *rest)

    monkeypatch.setattr(decode_fleet.Fleet, "_start", without_the_first)
    monkeypatch.setattr(decode_fleet, "LEAST_PATIENCE", 1.0)
    result = multiply(problem, decode="lambda")
    assert lost and result.exact and right(result.value, problem)


def test_an_answer_that_goes_before_the_functions_read_it_is_named(
    wide: LocalStack, problem: Any, short: None
) -> None:
    from coordinator import events

    bucket = polarlambda.connect.Place().open_bucket()

    def replace(event: Any) -> None:
        if isinstance(event, events.Decodable):
            victim = keys.result_key(event.run, event.decisive[0])
            bucket.put(victim, bucket.get(victim)[:-4] + b"\0\0\0\0")

    with pytest.raises(DecisiveAnswerLost, match="replaced"):
        multiply(problem, decode="lambda", on_event=replace)


def test_memory_is_the_functions_own_where_it_runs_there(wide: LocalStack, problem: Any) -> None:
    with pytest.raises(BadInput, match="memory"):
        multiply(problem, on="lambda", memory="1GB")
    with pytest.raises(BadInput, match="decode must be"):
        multiply(problem, decode="moon")


def test_nothing_is_invoked_when_nobody_names_the_decode_function(
    wide: LocalStack, problem: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POLARLAMBDA_DECODE")
    before = len(wide.invocations())
    with pytest.raises(BadInput, match="POLARLAMBDA_DECODE"):
        multiply(problem, decode="lambda")
    assert len(wide.invocations()) == before
