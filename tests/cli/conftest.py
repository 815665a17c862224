"""The command in this process, on the local stack, and what it left in the bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from click.testing import CliRunner, Result

from blockstore.bucket import Bucket
from blockstore.connect import s3_client
from polarlambda.cli import command
from polarlambda.local import LocalStack


@pytest.fixture
def cli() -> Callable[..., Result]:
    """Call the command with arguments; `.exit_code`, `.stdout`, `.stderr`."""

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(command, [str(argument) for argument in arguments])

    return call


@pytest.fixture(scope="session")
def session_bucket(session_stack: LocalStack) -> Bucket:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in session_stack.environment.items():
            patch.setenv(name, value)
        return Bucket(s3_client(), session_stack.bucket)


@pytest.fixture
def bucket(session_bucket: Bucket, local_environment: LocalStack) -> Iterator[Bucket]:
    """The stack's bucket, empty before and after the test."""
    session_bucket.delete(info.key for info in session_bucket.list(""))
    yield session_bucket
    session_bucket.delete(info.key for info in session_bucket.list(""))


@pytest.fixture
def files(tmp_path):
    """A matrix (40, 7) uint8 and an x (7,) on disk, in an otherwise empty folder."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "A.npy", rng.integers(0, 255, (40, 7), np.uint8))
    np.save(tmp_path / "x.npy", rng.standard_normal(7))
    return tmp_path


@pytest.fixture
def encoded(cli, bucket, files):
    """The matrix of `files`, encoded as "a" for 8 workers."""
    done = cli("encode", files / "A.npy", "a", "--workers", 8, "--data-blocks", 6)
    assert done.exit_code == 0, done.output
    return files
