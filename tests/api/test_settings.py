from __future__ import annotations

import boto3
import pytest
from moto import mock_aws

from polarlambda.errors import BadInput, SettingMissing
from polarlambda.settings import Settings, load_settings

NAMES = {
    "POLARLAMBDA_BUCKET": "b",
    "POLARLAMBDA_WORKER": "w",
    "POLARLAMBDA_COORDINATOR": "c",
}
TEMPLATE = """{"Resources": {"T": {"Type": "AWS::SNS::Topic"}}, "Outputs": {
  "BucketName": {"Value": "stack-bucket"}, "WorkerName": {"Value": "stack-worker"}%s}}"""


def test_names_come_from_the_environment():
    assert load_settings(environ=NAMES) == Settings("b", "w", "c")


def test_arguments_win_over_the_environment():
    assert load_settings(environ=NAMES, worker="mine") == Settings("b", "mine", "c")


@pytest.mark.parametrize(
    ("field", "variable", "output"),
    [
        ("bucket", "POLARLAMBDA_BUCKET", "BucketName"),
        ("worker", "POLARLAMBDA_WORKER", "WorkerName"),
        ("coordinator", "POLARLAMBDA_COORDINATOR", "CoordinatorName"),
    ],
)
def test_a_missing_name_is_one_line_that_says_both_ways(field, variable, output):
    with pytest.raises(SettingMissing) as refusal:
        load_settings(environ={}).need(field)
    message = str(refusal.value)
    assert "\n" not in message
    assert all(word in message for word in ("--stack NAME", variable, output))


@pytest.fixture
def cloudformation():
    with mock_aws():
        yield boto3.client("cloudformation", region_name="us-east-1")


def test_names_come_from_the_outputs_of_a_stack(cloudformation):
    outputs = ', "CoordinatorName": {"Value": "stack-coordinator"}'
    cloudformation.create_stack(StackName="mine", TemplateBody=TEMPLATE % outputs)
    settings = load_settings(stack="mine", environ=NAMES, cloudformation=cloudformation)
    assert settings == Settings("stack-bucket", "stack-worker", "stack-coordinator")


def test_a_stack_that_does_not_exist_is_bad_input(cloudformation):
    with pytest.raises(BadInput, match="no CloudFormation stack 'nowhere'"):
        load_settings(stack="nowhere", environ=NAMES, cloudformation=cloudformation)


def test_a_stack_of_something_else_is_bad_input(cloudformation):
    cloudformation.create_stack(StackName="other", TemplateBody=TEMPLATE % "")
    with pytest.raises(BadInput, match="no output CoordinatorName: is it a polarlambda stack"):
        load_settings(stack="other", environ=NAMES, cloudformation=cloudformation)
