"""A stack deployed to MiniStack, and what a person does with it: scripts, commands, SAM."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
import numpy as np
from numpy.typing import NDArray

from tests.deploy.ministack import REGION, ROOT, MiniStack

STACK = "deploy-test"
BIN = ROOT / ".venv" / "bin"
SAM = ROOT / ".venv-sam" / "bin" / "sam"
ROLE_POLICIES = {
    "DecodeRole": "decode",
    "WorkerRole": "worker",
    "CoordinatorRole": "coordinator",
    "EncodeRole": "encode",
    "DispatchRole": "dispatch",
}


class Deployment:
    """The stack `deploy-test`; every command runs in a process of its own, as a person's would."""

    def __init__(self, ministack: MiniStack) -> None:
        self.ministack = ministack

    def run(self, *command: str | Path, expect: int = 0) -> str:
        """Run a command in the checkout; its standard output. Raises with all output otherwise."""
        done = subprocess.run(
            [str(part) for part in command],
            cwd=ROOT,
            env=self.ministack.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != expect:
            said = f"{done.stdout[-4000:]}{done.stderr[-4000:]}"
            log = self.ministack.log()[-3000:]
            raise AssertionError(f"{command} exited {done.returncode}:\n{said}\nMiniStack:\n{log}")
        return done.stdout

    def polarlambda(self, *arguments: str | Path, expect: int = 0) -> str:
        """Run the command against the stack."""
        return self.run(BIN / "polarlambda", *arguments, "--stack", STACK, expect=expect)

    def client(self, service: str, **options: Any) -> Any:
        """A client of the account's owner."""
        environment = self.ministack.environment
        credentials = {
            "aws_access_key_id": environment["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": environment["AWS_SECRET_ACCESS_KEY"],
        }
        return boto3.client(
            service,
            endpoint_url=environment["AWS_ENDPOINT_URL"],
            verify=environment["AWS_CA_BUNDLE"],
            region_name=REGION,
            **{**credentials, **options},
        )

    @cached_property
    def outputs(self) -> dict[str, str]:
        """The stack's outputs by name."""
        [stack] = self.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}

    @property
    def bucket(self) -> str:
        return self.outputs["BucketName"]

    def resources(self) -> dict[str, str]:
        """Physical names of the stack's resources by logical id."""
        found = self.client("cloudformation").describe_stack_resources(StackName=STACK)
        return {
            each["LogicalResourceId"]: each["PhysicalResourceId"]
            for each in found["StackResources"]
        }

    def keys(self, prefix: str) -> list[str]:
        """Keys of the bucket's objects below a prefix."""
        listing = self.client("s3").list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return [each["Key"] for each in listing.get("Contents", ())]

    def upload(self, key: str, array: NDArray[Any]) -> None:
        """Put an array as .npy."""
        body = io.BytesIO()
        np.save(body, array, allow_pickle=False)
        self.client("s3").put_object(Bucket=self.bucket, Key=key, Body=body.getvalue())

    def download(self, key: str) -> NDArray[Any]:
        """Get an array."""
        body = self.client("s3").get_object(Bucket=self.bucket, Key=key)["Body"].read()
        array: NDArray[Any] = np.load(io.BytesIO(body), allow_pickle=False)
        return array

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """Invoke the deployed coordinator and wait; what it returns, or the error it raises."""
        return self._invoke("CoordinatorName", event)

    def invoke_worker(self, event: dict[str, Any]) -> dict[str, Any]:
        """The same with the worker."""
        return self._invoke("WorkerName", event)

    def invoke_decoder(self, event: dict[str, Any]) -> dict[str, Any]:
        """The same with the decode function."""
        return self._invoke("DecodeName", event)

    def _invoke(self, output: str, event: dict[str, Any]) -> dict[str, Any]:
        answer = self.client("lambda").invoke(
            FunctionName=self.outputs[output], Payload=json.dumps(event).encode()
        )
        returned: dict[str, Any] = json.loads(answer["Payload"].read())
        return returned

    @contextmanager
    def without(self, role: str, sid: str) -> Iterator[None]:
        """Take one statement out of a role's policy for the length of a block."""
        iam = self.client("iam")
        place = {"RoleName": self.resources()[role], "PolicyName": ROLE_POLICIES[role]}
        whole = iam.get_role_policy(**place)["PolicyDocument"]
        left = [each for each in whole["Statement"] if each["Sid"] != sid]
        assert len(left) == len(whole["Statement"]) - 1
        iam.put_role_policy(**place, PolicyDocument=json.dumps({**whole, "Statement": left}))
        try:
            yield
        finally:
            iam.put_role_policy(**place, PolicyDocument=json.dumps(whole))
