"""One stack, deployed once, for all deploy tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.deploy.deployment import SAM, STACK, Deployment
from tests.deploy.ministack import VENV, MiniStack


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The stack, built and deployed by scripts/deploy. Never skipped in CI."""
    missing = [str(path.name) for path in (VENV, SAM.parents[1]) if not path.exists()]
    if missing:
        reason = f"{' and '.join(missing)} missing: run make setup, and see what it says"
        if os.environ.get("CI"):
            pytest.fail(f"the deploy test must run in CI, but {reason}")
        pytest.skip(reason)
    with MiniStack(tmp_path_factory.mktemp("ministack")) as ministack:
        deployment = Deployment(ministack)
        # DispatchFrom: the few workers of these tests are invoked by a dispatch function.
        settings = ("WorkerMemory=512", "WorkerTimeout=60", "DispatchFrom=2")
        deployment.run("scripts/deploy", "--stack", STACK, *settings)
        yield deployment
