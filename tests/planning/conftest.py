"""Plans are compared with what is done on moto."""

from __future__ import annotations

from tests.moto_bucket import bucket, moto_client

__all__ = ["bucket", "moto_client"]
