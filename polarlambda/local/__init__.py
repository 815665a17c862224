"""The local stack: an S3 server and a Lambda service on loopback, for runs without an AWS account.

    from polarlambda.local import LocalStack

    with LocalStack(delays="delays.csv", scale=0.1, seed=1) as stack:
        subprocess.run(["polarlambda", "multiply", ...], env={**os.environ, **stack.environment})

S3 is moto's server. Lambda is ours (nothing else runs handlers behind the Invoke API without
Docker): the Invoke API in front of the Lambda Runtime API, with AWS's own ``awslambdaric``
running the *built* artifact in one process per environment. The product has no local branch:
plain boto3 finds both through ``AWS_ENDPOINT_URL_S3`` and ``AWS_ENDPOINT_URL_LAMBDA``.
"""

from __future__ import annotations

from polarlambda.local.errors import LocalStackError
from polarlambda.local.stack import LocalStack

__all__ = ["LocalStack", "LocalStackError"]
