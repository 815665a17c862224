"""``python -m polarlambda`` is the command ``polarlambda``."""

from __future__ import annotations

from polarlambda.cli import main

main()
