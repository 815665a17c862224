"""The product on a local stack, for tests of whole runs.

`local_stack` is one stack for the session, quiet again after each test. `local_environment` points
plain boto3 in this process to it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from polarlambda.local import LocalStack


@pytest.fixture(scope="session")
def session_stack() -> Iterator[LocalStack]:
    # a test of code that is not the checkout's is worse than none: build when the sources differ
    with LocalStack(build="stale") as stack:
        yield stack


@pytest.fixture
def local_stack(session_stack: LocalStack) -> Iterator[LocalStack]:
    """The running stack, without delays or failures; `set_chaos` holds until the test ends."""
    session_stack.set_chaos()
    yield session_stack
    session_stack.set_chaos()
    session_stack.drain()


@pytest.fixture
def local_environment(local_stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> LocalStack:
    """The running stack, with this process's environment variables pointing to it."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in local_stack.environment.items():
        monkeypatch.setenv(name, value)
    return local_stack
