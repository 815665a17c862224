"""A stack of toy functions, started once for this area."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from polarlambda.local import LocalStack

TOY = Path(__file__).parent / "toy"


@pytest.fixture(scope="session")
def toy_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(TOY, tmp_path_factory.mktemp("project") / "toy"))


@pytest.fixture(scope="session")
def session_toy(toy_project: Path) -> Iterator[LocalStack]:
    with LocalStack(template=toy_project / "template.yaml", retry_delay=0.1) as stack:
        yield stack


@pytest.fixture
def toy(session_toy: LocalStack) -> Iterator[LocalStack]:
    session_toy.set_chaos()
    yield session_toy
    session_toy.set_chaos()
    session_toy.drain()


def make_client(stack: LocalStack, service: str = "lambda") -> Any:
    """A client that tries once: what the service says is what the test sees."""
    endpoint = stack.endpoint_lambda if service == "lambda" else stack.endpoint_s3
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1}),
    )


@pytest.fixture(scope="session")
def session_client(session_toy: LocalStack) -> Any:
    return make_client(session_toy)


@pytest.fixture
def client(toy: LocalStack, session_client: Any) -> Any:
    return session_client


@pytest.fixture(scope="session")
def new_client() -> Callable[..., Any]:
    return make_client
