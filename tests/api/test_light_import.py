"""`import polarlambda` and `polarlambda -h` cost nothing: people do both all the time."""

from __future__ import annotations

import subprocess
import sys

import pytest

import polarlambda

HEAVY = ("numpy", "boto3", "botocore", "rich", "matplotlib", "skimage", "moto")


@pytest.mark.parametrize(
    "statement",
    [
        "import polarlambda",
        "import polarlambda; dir(polarlambda); polarlambda.BadInput",
        "import polarlambda.cli",
    ],
)
def test_nothing_heavy_is_imported(statement):
    code = f"{statement}\nimport sys\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there():
    for name in polarlambda.__all__:
        assert getattr(polarlambda, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'matmul_fast'"):
        _ = polarlambda.matmul_fast
