"""Fixtures and settings that every area uses."""

from __future__ import annotations

from hypothesis import settings

from tests.local_stack import local_environment, local_stack, session_stack

__all__ = ["local_environment", "local_stack", "session_stack"]

settings.register_profile("suite", deadline=None)  # timing never decides a test
settings.load_profile("suite")
