"""The S3 client: one per process, thread safe, with a connection for every thread.

Endpoint, region and credentials come from the standard AWS variables and files, so that the
same code talks to AWS and to a local S3 server.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import botocore.session
import botocore.utils
from botocore.config import Config
from botocore.exceptions import BotoCoreError, NoRegionError

from blockstore.errors import CredentialsMissing, StoreUnavailable

DEFAULT_REGION = "us-east-1"


def s3_client(*, pool: int = 32, attempts: int = 5, region: str | None = None) -> Any:
    """Build an S3 client.

    Parameters
    ----------
    pool : connections kept open, at least the number of threads that share the client
    attempts : tries per request, the first included; waits between them back off, and adapt to
        throttling (503 SlowDown)
    region : AWS region; the standard variables and files decide when it is None

    Uses botocore without boto3: the same client, but without the transfer manager's imports, which
    a cold worker would pay for and never use.
    """
    config = Config(
        max_pool_connections=pool,
        retries={"mode": "adaptive", "total_max_attempts": attempts},
        connect_timeout=5,
        read_timeout=60,
        tcp_keepalive=True,
    )
    session = botocore.session.get_session()
    parsers = session.get_component("response_parser_factory")
    parsers.set_parser_defaults(timestamp_parser=_parse_time)
    try:
        return session.create_client("s3", region_name=region, config=config)
    except NoRegionError:
        return session.create_client("s3", region_name=DEFAULT_REGION, config=config)
    except BotoCoreError as exc:
        if "rofile" in str(exc) or "redential" in str(exc):
            raise CredentialsMissing(f"AWS credentials cannot be loaded: {exc}") from exc
        raise StoreUnavailable(f"an S3 client cannot be made: {exc}") from exc
    except ValueError as exc:  # botocore's word for an endpoint that is no URL
        raise StoreUnavailable(f"{exc}: AWS_ENDPOINT_URL_S3 must be a URL or not be set") from exc


def _parse_time(value: Any) -> datetime:
    """The time of an object. A page of a listing has 1,000 of them, and botocore's parser, which
    knows every format, takes two thirds of the time that a page costs."""
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        parsed: datetime = botocore.utils.parse_timestamp(value)
        return parsed
