"""Delete every object of a stack's bucket, so that CloudFormation can delete the bucket.

python scripts/empty_bucket.py STACK
"""

from __future__ import annotations

import sys

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from polarlambda.errors import BadInput, PlatformError
from polarlambda.settings import load_settings


def main() -> None:
    """Find the stack's bucket and empty it; a bucket that is gone already is empty."""
    if len(sys.argv) != 2:
        sys.exit((__doc__ or "").strip())
    try:
        name = load_settings(stack=sys.argv[1]).need("bucket")
        batches = boto3.resource("s3").Bucket(name).objects.delete()
    except (BadInput, PlatformError, BotoCoreError) as error:
        sys.exit(f"destroy: {error}")
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "NoSuchBucket":
            sys.exit(f"destroy: {error}")
        batches = []
    failures = [failure for batch in batches for failure in batch.get("Errors", ())]
    if failures:
        first = failures[0]
        sys.exit(f"destroy: {first['Key']} cannot be deleted: {first.get('Message')}")
    count = sum(len(batch.get("Deleted", ())) for batch in batches)
    print(f"Deleted {count} objects.")


if __name__ == "__main__":
    main()
