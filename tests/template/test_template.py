"""What template.yaml promises: private, bounded, least privilege, nothing left behind."""

from __future__ import annotations

import ast
import graphlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.template.cloudformation import ROOT, load_template, references, statements

TEMPLATE = load_template()
RESOURCES: dict[str, Any] = TEMPLATE["Resources"]
FUNCTIONS = {
    name: each["Properties"]
    for name, each in RESOURCES.items()
    if each["Type"] == "AWS::Serverless::Function"
}
BUCKET = RESOURCES["BlocksBucket"]["Properties"]
ROLES = {
    "WorkerFunction": "WorkerRole",
    "CoordinatorFunction": "CoordinatorRole",
    "EncodeFunction": "EncodeRole",
    "DispatchFunction": "DispatchRole",
    "DecodeFunction": "DecodeRole",
}
LISTING = ("WorkerRole", "CoordinatorRole", "DecodeRole")


def test_sam_finds_nothing_to_say_about_it() -> None:
    sam = ROOT / ".venv-sam" / "bin" / "sam"
    if not sam.exists():
        assert not os.environ.get("CI"), "make setup has not made .venv-sam"
        pytest.skip("the SAM CLI is missing: run make setup")
    done = subprocess.run(
        [sam, "validate", "--lint"],
        cwd=ROOT,
        env={**os.environ, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is a valid SAM Template" in done.stdout + done.stderr


@pytest.mark.parametrize("name", TEMPLATE["Parameters"])
def test_a_parameter_has_a_description_and_a_default_within_bounds(name: str) -> None:
    parameter = TEMPLATE["Parameters"][name]
    assert parameter["Description"].endswith(".")
    if "AllowedValues" in parameter:
        assert parameter["Default"] in parameter["AllowedValues"]
    else:
        assert parameter["Type"] == "Number"
        assert parameter["MinValue"] <= parameter["Default"] <= parameter["MaxValue"]


def test_every_parameter_is_used() -> None:
    used = set(references(RESOURCES)) | set(references(TEMPLATE["Globals"]))
    used |= set(references(TEMPLATE["Conditions"]))
    assert set(TEMPLATE["Parameters"]) <= used


def test_outputs_are_what_the_settings_read() -> None:
    assert set(TEMPLATE["Outputs"]) == {
        "BucketName",
        "WorkerName",
        "CoordinatorName",
        "DispatchName",
        "EncodeName",
        "DecodeName",
    }
    source = (ROOT / "polarlambda" / "settings.py").read_text()
    for output in TEMPLATE["Outputs"]:
        assert f'"{output}"' in source


@pytest.mark.parametrize("role", ROLES.values())
def test_a_role_names_exactly_what_it_may_touch(role: str) -> None:
    for statement in statements(TEMPLATE, role):
        assert statement["Effect"] == "Allow"
        for action in _listed(statement["Action"]):
            assert re.fullmatch(r"[a-z0-9]+:[A-Za-z]+", action), f"{action} is not one action"
        for resource in _listed(statement["Resource"]):
            assert isinstance(resource, dict), f"{resource!r} names no resource of this stack"
            if "Fn::Sub" in resource:
                assert re.fullmatch(
                    r"\$\{BlocksBucket\.Arn\}/(matrices|runs|inputs|sessions)/.+",
                    resource["Fn::Sub"],
                )
            else:
                assert resource["Fn::GetAtt"][0] in RESOURCES


@pytest.mark.parametrize("role", LISTING)
def test_a_bucket_is_listed_by_prefix_only(role: str) -> None:
    listings = [s for s in statements(TEMPLATE, role) if "s3:ListBucket" in _listed(s["Action"])]
    assert listings
    for statement in listings:
        # Without IfExists, S3 answers 403 for a missing object, which would not be an erasure.
        assert set(statement["Condition"]) == {"StringLikeIfExists"}
        prefixes = [
            prefix
            for operator in statement["Condition"].values()
            for prefix in _listed(operator["s3:prefix"])
        ]
        assert prefixes and all(prefix.startswith("runs/") for prefix in prefixes)


def test_a_dispatch_function_can_invoke_workers_and_nothing_else() -> None:
    logs, invoke = sorted(statements(TEMPLATE, "DispatchRole"), key=lambda s: str(s["Action"]))
    assert logs["Sid"] == "WriteLogs"
    assert invoke["Action"] == "lambda:InvokeFunction"
    assert invoke["Resource"] == {"Fn::GetAtt": ["WorkerFunction", "Arn"]}


def test_a_worker_can_neither_read_results_nor_invoke_nor_delete() -> None:
    allowed = json.dumps(statements(TEMPLATE, "WorkerRole"))
    assert "InvokeFunction" not in allowed
    assert "DeleteObject" not in allowed
    reads = [
        s["Resource"]["Fn::Sub"]
        for s in statements(TEMPLATE, "WorkerRole")
        if s["Action"] == "s3:GetObject"
    ]
    assert sorted(reads) == [
        "${BlocksBucket.Arn}/matrices/*/coded/*",
        "${BlocksBucket.Arn}/runs/*/x.npy",
        "${BlocksBucket.Arn}/sessions/*/latest.json",
    ]


def test_a_function_that_encodes_reads_inputs_and_writes_coded_blocks() -> None:
    allowed = {s["Sid"]: s for s in statements(TEMPLATE, "EncodeRole")}
    assert set(allowed) == {"ReadSource", "ReadJob", "WriteCodedBlocks", "WriteLogs"}
    places = {sid: s["Resource"].get("Fn::Sub") for sid, s in allowed.items()}
    assert places["ReadSource"] == "${BlocksBucket.Arn}/inputs/*"
    assert places["ReadJob"] == "${BlocksBucket.Arn}/matrices/*/coded/*/encode.json"
    assert places["WriteCodedBlocks"] == "${BlocksBucket.Arn}/matrices/*/coded/*"
    assert allowed["WriteCodedBlocks"]["Action"] == "s3:PutObject"


def test_the_bucket_is_private_encrypted_and_reached_by_tls_only() -> None:
    assert set(BUCKET["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(BUCKET["PublicAccessBlockConfiguration"]) == 4
    [rule] = BUCKET["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    [policy] = [r for r in RESOURCES.values() if r["Type"] == "AWS::S3::BucketPolicy"]
    [statement] = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Principal"] == "*"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": False}}
    assert len(statement["Resource"]) == 2  # the bucket and the objects in it


def test_runs_expire_and_matrices_do_not() -> None:
    rules = BUCKET["LifecycleConfiguration"]["Rules"]
    assert all(rule["Status"] == "Enabled" for rule in rules)
    expiring = {r["Prefix"]: r["ExpirationInDays"] for r in rules if "ExpirationInDays" in r}
    assert expiring == {
        "runs/": {"Ref": "RunRetentionDays"},
        "sessions/": {"Ref": "RunRetentionDays"},
        "inputs/": {"Ref": "RunRetentionDays"},
        "optimizations/": {"Ref": "RunRetentionDays"},
    }
    assert any("AbortIncompleteMultipartUpload" in rule for rule in rules)


def test_the_bucket_is_deleted_with_the_stack() -> None:
    assert RESOURCES["BlocksBucket"]["DeletionPolicy"] == "Delete"
    assert "VersioningConfiguration" not in BUCKET  # old versions would keep it from being deleted


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_logs_into_a_group_that_forgets(name: str) -> None:
    group = RESOURCES[FUNCTIONS[name]["LoggingConfig"]["LogGroup"]["Ref"]]
    assert group["Type"] == "AWS::Logs::LogGroup"
    assert group["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    assert group["DeletionPolicy"] == "Delete"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_lambda_does_not_retry_by_itself(name: str) -> None:
    assert FUNCTIONS[name]["EventInvokeConfig"]["MaximumRetryAttempts"] == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_handler_is_there(name: str) -> None:
    module, _, attribute = FUNCTIONS[name]["Handler"].rpartition(".")
    path = ROOT / Path(*module.split(".")).with_suffix(".py")
    defined = {node.name for node in ast.parse(path.read_text()).body if hasattr(node, "name")}
    assert attribute in defined


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_function_is_given_every_setting_it_reads(name: str) -> None:
    folder = ROOT / "functions" / FUNCTIONS[name]["Handler"].split(".")[1]
    sources = "".join(path.read_text() for path in sorted(folder.glob("*.py")))
    read = set(re.findall(r"POLARLAMBDA_[A-Z_]+", sources))
    common = set(TEMPLATE["Globals"]["Function"]["Environment"]["Variables"])
    given = set(FUNCTIONS[name].get("Environment", {}).get("Variables", {}))
    assert given <= read <= given | common


def test_the_environment_names_the_bucket_that_is_made() -> None:
    variables = TEMPLATE["Globals"]["Function"]["Environment"]["Variables"]
    assert variables["POLARLAMBDA_BUCKET"] == BUCKET["BucketName"]


def test_artifacts_are_built_for_the_runtime_of_the_template() -> None:
    runtime = TEMPLATE["Globals"]["Function"]["Runtime"]
    version = re.search(r"^PYTHON_VERSION \?= (\S+)$", (ROOT / "Makefile").read_text(), re.M)
    assert version and runtime == f"python{version[1]}"
    assert tuple(map(int, version[1].split("."))) >= (3, 12)


def test_nothing_waits_for_itself() -> None:
    """CloudFormation refuses circular dependencies, and no linter of SAM templates sees them."""
    graph = {name: set(references(each)) & set(RESOURCES) for name, each in RESOURCES.items()}
    inherited = set(references(TEMPLATE["Globals"])) & set(RESOURCES)
    for name in FUNCTIONS:
        graph[name] |= inherited
    order = list(graphlib.TopologicalSorter(graph).static_order())
    assert sorted(order) == sorted(RESOURCES)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
