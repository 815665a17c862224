"""What can go wrong with the local stack itself; every message is one line that says what to do."""

from __future__ import annotations

from polarlambda.errors import BadInput, PlatformError


class LocalStackError(PlatformError):
    """The local stack cannot start or cannot answer."""


class OptionRefused(LocalStackError, BadInput):
    """An option makes no sense; nothing has been started."""


class TemplateRefused(LocalStackError, BadInput):
    """template.yaml is missing, or says something that the local stack does not understand."""


class BuildFailed(LocalStackError):
    """``make build-<LogicalId>`` did not produce an artifact."""
