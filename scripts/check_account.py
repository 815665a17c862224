"""Refuse, before anything is built, an environment that names no AWS region or no credentials."""

from __future__ import annotations

import sys

import boto3
from botocore.exceptions import BotoCoreError


def main() -> None:
    """Exit with one line when something is missing; no request is made to AWS."""
    try:
        session = boto3.Session()
        region, credentials = session.region_name, session.get_credentials()
    except BotoCoreError as error:  # a profile that does not exist, a file that cannot be read
        sys.exit(f"deploy: {error}")
    if region is None:
        sys.exit("deploy: no AWS region: set AWS_DEFAULT_REGION, or run `aws configure`")
    if credentials is None:
        sys.exit("deploy: no AWS credentials: set AWS_PROFILE, or run `aws configure`")


if __name__ == "__main__":
    main()
