"""Fixtures that every area may use."""

from __future__ import annotations

from tests.local_stack import local_environment, local_stack, session_stack

__all__ = ["local_environment", "local_stack", "session_stack"]
