"""Fixtures and settings that every area uses."""

from __future__ import annotations

import signal

from hypothesis import settings

from tests.local_stack import local_environment, local_stack, session_stack

__all__ = ["local_environment", "local_stack", "session_stack"]

settings.register_profile("suite", deadline=None)  # timing never decides a test
settings.load_profile("suite")

# A job in the background of a shell ignores Ctrl-C, and so would every process that a test starts
# and interrupts. A handler of our own is not inherited: they begin with the default.
signal.signal(signal.SIGINT, signal.default_int_handler)
