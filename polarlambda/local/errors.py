"""What can go wrong with the local stack itself; every message is one line that says what to do."""

from __future__ import annotations


class LocalStackError(Exception):
    """The local stack cannot start or cannot answer (platform error, exit code 4)."""


class OptionRefused(LocalStackError, ValueError):
    """An option makes no sense; nothing has been started (bad input, exit code 2)."""


class TemplateRefused(LocalStackError):
    """template.yaml is missing, or says something that the local stack does not understand."""


class BuildFailed(LocalStackError):
    """``make build-<LogicalId>`` did not produce an artifact."""
