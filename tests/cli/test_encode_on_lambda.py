"""`encode --on lambda` on the local stack: the built function, called through the Lambda API."""

from __future__ import annotations

import json

import numpy as np

SHAPE = ("--workers", 8, "--data-blocks", 6)


def test_the_built_function_writes_the_same_bytes_and_they_are_multiplied(cli, bucket, tmp_path):
    a = np.random.default_rng(0).integers(0, 256, (901, 700), np.uint8)
    x = np.random.default_rng(1).standard_normal(700)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "x.npy", x)
    bucket.put("inputs/a.npy", (tmp_path / "a.npy").read_bytes())
    found = {}
    for name, source, where in (
        ("far", f"s3://{bucket.name}/inputs/a.npy", "lambda"),
        ("near", tmp_path / "a.npy", "local"),
    ):
        done = cli("encode", source, name, *SHAPE, "--on", where, "--json")
        assert done.exit_code == 0, done.output
        prefix = f"matrices/{name}/coded/{json.loads(done.stdout)['encoding']}/"
        found[name] = {i.key[len(prefix) :]: bucket.get(i.key) for i in bucket.list(prefix)}
    assert found["far"] == found["near"]
    assert len(found["far"]) == 8
    done = cli("multiply", "far", tmp_path / "x.npy", "-o", tmp_path / "y.npy")
    assert done.exit_code == 0, done.output
    y = np.load(tmp_path / "y.npy")
    assert np.linalg.norm(y - a @ x) < 1e-5 * np.linalg.norm(a @ x)


def test_what_functions_cannot_read_is_refused_with_the_fix(cli, bucket, files):
    done = cli("encode", files / "A.npy", "a", *SHAPE, "--on", "lambda")
    assert done.exit_code == 2
    assert f"aws s3 cp A.npy s3://{bucket.name}/inputs/" in done.stderr
    done = cli("encode", files / "A.npy", "a", *SHAPE, "--on", "lambda", "--transpose")
    assert done.exit_code == 2
    assert list(bucket.list("")) == []


def test_a_function_that_is_not_there_is_named(cli, bucket, files, monkeypatch):
    monkeypatch.setenv("POLARLAMBDA_ENCODE", "nobody")
    done = cli("encode", f"s3://{bucket.name}/inputs/a.npy", "a", "--on", "lambda")
    assert done.exit_code == 2
    assert "nobody" in done.stderr and "POLARLAMBDA_ENCODE" in done.stderr
    monkeypatch.delenv("POLARLAMBDA_ENCODE")
    done = cli("encode", f"s3://{bucket.name}/inputs/a.npy", "a", "--on", "lambda")
    assert done.exit_code == 2
    assert "EncodeName" in done.stderr
