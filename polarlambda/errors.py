"""What the Python API raises itself; errors of the layers below pass through unchanged."""

from __future__ import annotations


class PolarlambdaError(Exception):
    """Base of the API's own errors."""


class BadInput(PolarlambdaError, ValueError):
    """An argument cannot be used. Raised before anything is written or invoked."""


class SettingMissing(BadInput):
    """Nothing says which bucket or function to use."""


class PlatformError(PolarlambdaError):
    """AWS, or what stands in for it, did not do what it was asked."""
