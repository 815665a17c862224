"""scripts/deploy and scripts/destroy refuse what cannot work before they touch anything."""

from __future__ import annotations

import subprocess

import pytest

from tests.deploy.ministack import ROOT


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script where no AWS could be reached, with nobody to answer questions."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env={
            "PATH": "/usr/bin:/bin",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/nowhere",
            "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )


@pytest.mark.parametrize(
    "name", ["Upper", "under_score", "1st", "", "dot.ted", "a" * 28, "trailing space "]
)
def test_a_name_that_no_bucket_can_have_is_refused(name: str) -> None:
    done = run("scripts/deploy", "--stack", name)
    assert done.returncode == 2
    assert f"stack name '{name}' must be" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("argument", ["WorkerMemory", "--guided", "polarlambda"])
def test_an_argument_that_means_nothing_is_refused(argument: str) -> None:
    done = run("scripts/deploy", argument)
    assert done.returncode == 2
    assert argument in done.stderr and "--help" in done.stderr


@pytest.mark.parametrize(
    ("environment", "word"),
    [
        ({}, "AWS_DEFAULT_REGION"),
        ({"AWS_DEFAULT_REGION": "us-east-1"}, "credentials"),
        ({"AWS_PROFILE": "nobody"}, "nobody"),
    ],
)
def test_nothing_is_built_for_an_account_that_nobody_named(environment, word: str) -> None:
    done = run("scripts/deploy", **environment)
    assert done.returncode == 2
    assert done.stderr.startswith("deploy: ") and word in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_destroy_asks_a_person_or_needs_to_be_sure() -> None:
    done = run("scripts/destroy", "--stack", "precious")
    assert done.returncode == 2
    assert "deletes every matrix and run of stack precious" in done.stderr
    assert "--yes" in done.stderr


@pytest.mark.parametrize("script", ["scripts/deploy", "scripts/destroy"])
def test_help_says_how_it_is_called(script: str) -> None:
    done = run(script, "--help")
    assert done.returncode == 0
    assert f"{script} [--stack NAME]" in done.stdout
