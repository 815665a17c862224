"""Which bucket and functions to use: arguments, then a stack's outputs, then the environment.

This is the only module of the API and the command that reads environment variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polarlambda.errors import BadInput, PlatformError, SettingMissing

# field: (environment variable, output of the CloudFormation stack, what it is)
_SOURCES = {
    "bucket": ("POLARLAMBDA_BUCKET", "BucketName", "the bucket"),
    "worker": ("POLARLAMBDA_WORKER", "WorkerName", "the worker function"),
    "coordinator": ("POLARLAMBDA_COORDINATOR", "CoordinatorName", "the coordinator function"),
    "encode": ("POLARLAMBDA_ENCODE", "EncodeName", "the encode function"),
    "dispatch": ("POLARLAMBDA_DISPATCH", "DispatchName", "the dispatch function"),
    "decode": ("POLARLAMBDA_DECODE", "DecodeName", "the decode function"),
}
_MAY_BE_MISSING = {
    "dispatch",
    "decode",
    "encode",
}  # of a stack: what works without them goes on working


@dataclass(frozen=True)
class Settings:
    """Names of the bucket and of the functions; one that nobody named is empty."""

    bucket: str = ""
    worker: str = ""
    coordinator: str = ""
    encode: str = ""
    dispatch: str = ""
    decode: str = ""

    def need(self, field: str) -> str:
        """The name in ``field``. Raises `SettingMissing` that says both ways to give it."""
        name: str = getattr(self, field)
        if not name:
            variable, output, what = _SOURCES[field]
            raise SettingMissing(
                f"nothing names {what}: give --stack NAME (its output {output} is used) "
                f"or set {variable}. Without an AWS account: polarlambda local run -- COMMAND"
            )
        return name


def load_settings(
    *,
    stack: str | None = None,
    bucket: str | None = None,
    worker: str | None = None,
    coordinator: str | None = None,
    encode: str | None = None,
    environ: Mapping[str, str] = os.environ,
    cloudformation: Any = None,
) -> Settings:
    """Settings from the arguments, else from the outputs of ``stack``, else from ``environ``.

    ``cloudformation`` is a boto3 client; one is made when a stack is named and none is given.
    Raises `BadInput` when there is no such stack or an output is missing.
    """
    outputs = stack_outputs(stack, cloudformation) if stack else {}
    given = {"bucket": bucket, "worker": worker, "coordinator": coordinator, "encode": encode}
    names = {}
    for field, (variable, output, _) in _SOURCES.items():
        known = given.get(field) or field in _MAY_BE_MISSING
        if stack and not known and output not in outputs:
            raise BadInput(
                f"stack {stack!r} has no output {output}: is it a polarlambda stack? "
                f"Deploy template.yaml, or set {variable} and leave --stack out"
            )
        found = outputs.get(output, "") if stack else environ.get(variable, "")
        names[field] = given.get(field) or found
    return Settings(**names)


def objective_function(
    function: str | None = None,
    stack: str | None = None,
    environ: Mapping[str, str] = os.environ,
    cloudformation: Any = None,
) -> str:
    """Name of an objective's function: the one given, the output ObjectiveName of the objective's
    own ``stack``, or POLARLAMBDA_OBJECTIVE. Raises `SettingMissing`, `BadInput`."""
    name = function or ""
    if not name and stack:
        name = stack_outputs(stack, cloudformation).get("ObjectiveName", "")
        if not name:
            raise BadInput(
                f"stack {stack!r} has no output ObjectiveName: is it the stack of an objective "
                "(scripts/new_objective.py)?"
            )
    name = name or environ.get("POLARLAMBDA_OBJECTIVE", "")
    if not name:
        raise SettingMissing(
            "nothing names the objective's function: give --objective-stack NAME or set "
            "POLARLAMBDA_OBJECTIVE. Without an AWS account: "
            "polarlambda local run --objective FOLDER -- COMMAND"
        )
    return name


def stack_outputs(stack: str, cloudformation: Any = None) -> dict[str, str]:
    """Outputs of a CloudFormation stack by name. Raises `BadInput` when there is no such stack."""
    from botocore.exceptions import ClientError

    if cloudformation is None:
        import boto3

        cloudformation = boto3.client("cloudformation")
    try:
        described = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        reason = error.response.get("Error", {})
        # CloudFormation answers a name that it does not know with a ValidationError.
        if reason.get("Code") == "ValidationError":
            raise BadInput(
                f"there is no CloudFormation stack {stack!r} in this account and region: "
                "deploy it, or give another --stack"
            ) from error
        raise PlatformError(
            f"the outputs of stack {stack!r} cannot be read: {reason.get('Message', error)}"
        ) from error
    return {o["OutputKey"]: o["OutputValue"] for o in described[0].get("Outputs", [])}
