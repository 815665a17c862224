"""The whole path of a person with an AWS account, against MiniStack with IAM and TLS enforced.

In order: scripts/deploy (`sam build`, unmodified `sam deploy`), encode, multiply with the deployed
coordinator, an event written by hand, every permission taken away in turn, scripts/destroy.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from botocore.exceptions import ClientError
from numpy.typing import NDArray

from blockstore.keys import new_run_id, stop_key
from blockstore.manifest import Manifest
from blockstore.sessions import Announcement, ResidentTask
from blockstore.tasks import WorkerTask
from tests.deploy.deployment import SAM, STACK, Deployment
from tests.template.cloudformation import load_template, statements

pytestmark = pytest.mark.deploy

WORKERS, DATA_BLOCKS = 8, 6
INPUT = "inputs/x.npy"
EVENT = {"version": 1, "matrix": "photos", "x": INPUT, "until": "exact", "deadline": 30}
# MiniStack writes the functions' logs itself, whatever their roles allow: WriteLogs is held to its
# own log group by the template tests.
PERMISSIONS = [
    (role, statement["Sid"])
    for role in ("WorkerRole", "CoordinatorRole", "DispatchRole")
    for statement in statements(load_template(), role)
    if statement["Sid"] != "WriteLogs"
]
# Nor does it answer 403 for an object that is not there to those who may not list.
DECODING = [
    statement["Sid"]
    for statement in statements(load_template(), "DecodeRole")
    if statement["Sid"] not in ("WriteLogs", "LookForAnswers")
]
OF_DECODING = ("InvokeDecoders", "FinishUploads")
ENCODING = [each["Sid"] for each in statements(load_template(), "EncodeRole")][:-1]
DENIED = ("AccessDenied", "InvokeDenied", "not allowed")
# Needed when something has gone wrong, by resident workers, or by those that begin late only
OF_THEIR_OWN = ("WriteError", "DeleteDamagedResult", "ReadAnnouncement", "LookForStopMarker")


@pytest.fixture(scope="module")
def a() -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, size=(300, 40), dtype=np.uint8)


@pytest.fixture(scope="module")
def x() -> NDArray[np.float64]:
    return np.random.default_rng(2).standard_normal(40)


@pytest.fixture(scope="module")
def decoding(deployed: Deployment, encoded: Path) -> dict[str, Any]:
    """The event of a decode function that has made all of a product already."""
    answer = deployed.invoke({**EVENT, "decode": "lambda", "result": "zarr"})
    assert answer["state"] == "exact", answer
    [job] = [key for key in deployed.keys(f"runs/{answer['run']}/plan/") if "job.json" in key]
    event = {"version": 1, "run": answer["run"], "decoding": job.split("/")[3]}
    return {**event, "stage": "window", "number": 0, "first": 0, "last": 1, "attempt": 1}


@pytest.fixture(scope="module")
def encoded(
    deployed: Deployment,
    a: NDArray[np.uint8],
    x: NDArray[np.float64],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The matrix, encoded into the stack's bucket, and x uploaded; the folder with both files."""
    folder = tmp_path_factory.mktemp("arrays")
    np.save(folder / "a.npy", a)
    np.save(folder / "x.npy", x)
    shape = ("--workers", str(WORKERS), "--data-blocks", str(DATA_BLOCKS))
    deployed.polarlambda("encode", folder / "a.npy", "photos", *shape)
    deployed.upload(INPUT, x)
    return folder


def test_multiply_with_the_deployed_coordinator(
    deployed: Deployment, encoded: Path, a: NDArray[np.uint8], x: NDArray[np.float64]
) -> None:
    product = encoded / "y.npy"
    said = deployed.polarlambda(
        "multiply", "photos", encoded / "x.npy", "-o", product, "--on", "lambda", "--json"
    )
    result = json.loads(said)
    assert result["exact"] is True
    assert result["workers"] == WORKERS
    _assert_product(np.load(product), a, x)


def test_an_event_written_by_hand(
    deployed: Deployment, encoded: Path, a: NDArray[np.uint8], x: NDArray[np.float64]
) -> None:
    event = encoded / "event.json"
    event.write_text(json.dumps(EVENT))
    said = deployed.run(
        *(SAM, "remote", "invoke", "CoordinatorFunction", "--stack-name", STACK),
        *("--event-file", event),
    )
    answer = json.loads(said)
    assert answer["state"] == "exact"
    assert answer["verified"] or answer["verification"].startswith("not verified")
    _assert_product(deployed.download(answer["result"]), a, x)


def test_a_matrix_that_is_not_there_is_named(deployed: Deployment, encoded: Path) -> None:
    answer = deployed.invoke({**EVENT, "matrix": "nosuch"})
    assert "nosuch" in json.dumps(answer)
    assert answer.get("state") != "exact"


@pytest.mark.parametrize(
    ("role", "sid"), [each for each in PERMISSIONS if each[1] not in OF_THEIR_OWN]
)
def test_no_product_without_this_permission(
    deployed: Deployment, encoded: Path, role: str, sid: str
) -> None:
    event = {**EVENT, "decode": "lambda"} if sid in OF_DECODING else EVENT
    with deployed.without(role, sid):
        denied = deployed.invoke(event)
    assert denied.get("state") not in ("exact", "estimated")
    reasons = json.dumps(denied) + _error_records(deployed, denied)
    assert any(word in reasons for word in DENIED), reasons
    assert deployed.invoke(event)["state"] == "exact"


def test_decode_functions_make_the_product(
    deployed: Deployment, encoded: Path, a: NDArray[np.uint8], x: NDArray[np.float64]
) -> None:
    product = encoded / "decoded.npy"
    deployed.polarlambda(
        *("multiply", "photos", encoded / "x.npy", "-o", product, "--decode", "lambda")
    )
    _assert_product(np.load(product), a, x)


@pytest.mark.parametrize("sid", DECODING)
def test_nothing_is_decoded_without_this_permission(
    deployed: Deployment, decoding: dict[str, Any], sid: str
) -> None:
    assert deployed.invoke_decoder(decoding)["state"] == "done"
    with deployed.without("DecodeRole", sid):
        denied = json.dumps(deployed.invoke_decoder(decoding))
    assert any(word in denied for word in DENIED), denied


def test_an_answer_that_has_gone_is_named(deployed: Deployment, decoding: dict[str, Any]) -> None:
    gone = deployed.keys(f"runs/{decoding['run']}/results/")[0]
    deployed.client("s3").delete_object(Bucket=deployed.bucket, Key=gone)
    assert deployed.invoke_decoder(decoding)["error"]["type"] == "AnswerLost"


def test_a_failure_cannot_be_told_without_the_permission_to_write_it(
    deployed: Deployment, encoded: Path
) -> None:
    shape = ("--workers", str(WORKERS), "--data-blocks", str(WORKERS), "--code", "uncoded")
    deployed.polarlambda("encode", encoded / "a.npy", "uncoded", *shape)
    [tile] = [key for key in deployed.keys("matrices/uncoded/coded/") if "/00003/" in key]
    deployed.client("s3").delete_object(Bucket=deployed.bucket, Key=tile)
    assert any("/errors/00003." in key for key in _without_a_block(deployed))
    with deployed.without("WorkerRole", "WriteError"):
        assert not any("/errors/" in key for key in _without_a_block(deployed))


def test_a_damaged_result_stays_without_the_permission_to_delete_it(
    deployed: Deployment, encoded: Path
) -> None:
    with deployed.without("CoordinatorRole", "DeleteDamagedResult"):
        denied = deployed.invoke({**EVENT, "run": _run_with_damaged_results(deployed)})
    assert denied.get("state") != "exact"
    assert any(word in json.dumps(denied) for word in DENIED), denied
    repaired = deployed.invoke({**EVENT, "run": _run_with_damaged_results(deployed)})
    assert repaired["state"] == "exact"


def test_the_deployed_function_encodes_the_same_bytes(
    deployed: Deployment, encoded: Path, a: NDArray[np.uint8]
) -> None:
    deployed.upload("inputs/a.npy", a)
    _encode_there(deployed, "there")
    here = deployed.keys("matrices/photos/coded/")
    there = [key.replace("/there/", "/photos/") for key in deployed.keys("matrices/there/coded/")]
    assert there == here
    s3 = deployed.client("s3")
    for key in here:
        one, other = (
            s3.get_object(Bucket=deployed.bucket, Key=each)["Body"].read()
            for each in (key, key.replace("/photos/", "/there/"))
        )
        assert one == other


@pytest.mark.parametrize("sid", ENCODING)
def test_nothing_is_encoded_there_without_this_permission(
    deployed: Deployment, encoded: Path, a: NDArray[np.uint8], sid: str
) -> None:
    deployed.upload("inputs/a.npy", a)
    with deployed.without("EncodeRole", sid):
        _encode_there(deployed, f"no-{sid}", expect=4)
    assert f"matrices/no-{sid}/manifest.json" not in deployed.keys(f"matrices/no-{sid}/")


def test_a_resident_ends_with_its_session_and_needs_to_read_what_is_announced(
    deployed: Deployment, encoded: Path
) -> None:
    session = new_run_id(int(time.time() * 1000), os.urandom(10))
    work = _task_of_a_run(deployed)
    resident = ResidentTask(session=session, generation=1, idle_limit=20.0, work=work)
    ended = Announcement(number=1, ended=True).to_json()
    deployed.client("s3").put_object(
        Bucket=deployed.bucket, Key=f"sessions/{session}/latest.json", Body=ended
    )
    answer = deployed.invoke_worker(resident.to_event())
    assert (answer["state"], answer["reason"]) == ("ended", "session")
    with deployed.without("WorkerRole", "ReadAnnouncement"):
        denied = deployed.invoke_worker(resident.to_event())
    assert denied["state"] == "failed" and denied["error"]["type"] == "AccessDenied"
    assert "AccessDenied" in _error_records(deployed, {"run": work.run})


def test_a_worker_that_begins_late_needs_to_look_for_the_stop_marker(
    deployed: Deployment, encoded: Path
) -> None:
    work = _task_of_a_run(deployed)
    marker = stop_key(work.run, work.attempt)
    deployed.client("s3").put_object(Bucket=deployed.bucket, Key=marker, Body=b"stop")
    late = {**work.to_event(), "sent": time.time() - 60.0}
    assert deployed.invoke_worker(late)["state"] == "stopped"
    with deployed.without("WorkerRole", "LookForStopMarker"):
        denied = deployed.invoke_worker(late)
    assert denied["state"] == "failed" and denied["error"]["type"] == "AccessDenied"


def test_the_bucket_is_reached_by_tls_only(deployed: Deployment) -> None:
    iam = deployed.client("iam")
    iam.create_user(UserName="analyst")
    everything = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [everything]})
    iam.put_user_policy(UserName="analyst", PolicyName="s3", PolicyDocument=policy)
    key = iam.create_access_key(UserName="analyst")["AccessKey"]
    s3 = deployed.client(
        "s3",
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )
    s3.list_objects_v2(Bucket=deployed.bucket)

    def as_if_by_http(request: Any, **_: Any) -> None:
        request.headers["X-Forwarded-Proto"] = "http"

    s3.meta.events.register("before-send.s3", as_if_by_http)
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.list_objects_v2(Bucket=deployed.bucket)


def test_destroy_leaves_nothing(deployed: Deployment, encoded: Path) -> None:
    bucket, made = deployed.bucket, deployed.resources()
    deployed.run("scripts/destroy", "--stack", STACK, expect=2)  # asks, and nobody says yes
    assert deployed.keys("matrices/")

    deployed.run("scripts/destroy", "--stack", STACK, "--yes")
    with pytest.raises(ClientError, match="404"):
        deployed.client("s3").head_bucket(Bucket=bucket)
    assert deployed.client("lambda").list_functions()["Functions"] == []
    roles = {role["RoleName"] for role in deployed.client("iam").list_roles()["Roles"]}
    assert not roles & set(made.values())
    assert deployed.client("logs").describe_log_groups()["logGroups"] == []
    with pytest.raises(ClientError, match="does not exist"):
        deployed.client("cloudformation").describe_stacks(StackName=STACK)
    deployed.run("scripts/destroy", "--stack", STACK, "--yes", expect=1)  # says there is none


def _encode_there(deployed: Deployment, name: str, expect: int = 0) -> None:
    url = f"s3://{deployed.bucket}/inputs/a.npy"
    shape = ("--workers", str(WORKERS), "--data-blocks", str(DATA_BLOCKS))
    deployed.polarlambda("encode", url, name, *shape, "--on", "lambda", expect=expect)


def _assert_product(y: NDArray[Any], a: NDArray[np.uint8], x: NDArray[np.float64]) -> None:
    expected = a.astype(np.float64) @ x
    assert np.linalg.norm(y - expected) <= 1e-5 * np.linalg.norm(expected)


def _error_records(deployed: Deployment, answer: dict[str, Any]) -> str:
    """The workers' error records of the run that an answer is about, as one text."""
    if "run" not in answer:
        return ""
    s3 = deployed.client("s3")
    keys = deployed.keys(f"runs/{answer['run']}/errors/")
    bodies = (s3.get_object(Bucket=deployed.bucket, Key=key)["Body"].read() for key in keys)
    return b"".join(bodies).decode()


def _task_of_a_run(deployed: Deployment) -> WorkerTask:
    """A worker's task on the matrix that is there, of a run that nobody has begun."""
    s3 = deployed.client("s3")
    body = s3.get_object(Bucket=deployed.bucket, Key="matrices/photos/manifest.json")["Body"].read()
    manifest = Manifest.from_json(body)
    x = {"x_shape": (manifest.columns,), "x_dtype": "<f8", "x_digest": ""}
    run = new_run_id(int(time.time() * 1000), os.urandom(10))
    return WorkerTask.of(manifest, run=run, attempt=1, worker=0, **x)


def _without_a_block(deployed: Deployment) -> list[str]:
    """Run an uncoded product of which a block is missing, which fails; the keys of the run."""
    answer = deployed.invoke({**EVENT, "matrix": "uncoded", "deadline": 5})
    assert answer["state"] not in ("exact", "running")
    return deployed.keys(f"runs/{answer['run']}/")


def _run_with_damaged_results(deployed: Deployment) -> str:
    """A new run id, for which results lie in the bucket that are cut short."""
    run = new_run_id(int(time.time() * 1000), os.urandom(10))
    for worker in range(WORKERS):
        key = f"runs/{run}/results/{worker:05d}.npy"
        deployed.client("s3").put_object(Bucket=deployed.bucket, Key=key, Body=b"\x93NUMPY")
    return run
