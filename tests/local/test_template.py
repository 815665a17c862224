"""What the local stack reads from a SAM template."""

from __future__ import annotations

from pathlib import Path

import pytest

from polarlambda.local.errors import OptionRefused, TemplateRefused
from polarlambda.local.template import Template, load_template

ROOT = Path(__file__).resolve().parents[2]

HEAD = """
Parameters:
  Size: {Type: Number, Default: 512}
  Reserve: {Type: Number, Default: 0}
Conditions:
  Reserved: !Not [!Equals [!Ref Reserve, 0]]
  Both: !And [!Condition Reserved, !Equals [!Ref Size, "512"]]
Globals:
  Function:
    Timeout: 7
    Environment: {Variables: {SHARED: all, OWN: globals}}
Resources:
  Data: {Type: AWS::S3::Bucket}
  Named: {Type: AWS::S3::Bucket, Properties: {BucketName: !Sub "x-${AWS::StackName}-${Size}"}}
  One:
    Type: AWS::Serverless::Function
    Properties:
      Handler: a.b
      FunctionName: !Sub "${AWS::StackName}-one"
      MemorySize: !Ref Size
      ReservedConcurrentExecutions: !If [Reserved, !Ref Reserve, !Ref AWS::NoValue]
      Environment:
        Variables:
"""


def read(tmp_path: Path, *variables: str, **parameters: str) -> Template:
    path = tmp_path / "template.yaml"
    path.write_text(HEAD + "".join(f"          {line}\n" for line in ("OWN: own", *variables)))
    return load_template(path, parameters)


def test_properties_globals_and_defaults(tmp_path: Path) -> None:
    function = read(tmp_path).functions["One"]
    assert (function.name, function.handler) == ("polarlambda-local-one", "a.b")
    assert (function.memory, function.timeout, function.reserved) == (512, 7, None)
    assert (function.retries, function.event_age) == (2, 21600)
    assert function.environment == {"SHARED": "all", "OWN": "own"}


def test_parameters_replace_defaults(tmp_path: Path) -> None:
    function = read(tmp_path, Size="1024", Reserve="3").functions["One"]
    assert (function.memory, function.reserved) == (1024, 3)
    with pytest.raises(OptionRefused, match="no parameter 'Sise'; it has: Reserve, Size"):
        read(tmp_path, Sise="1")


def test_buckets_have_their_names(tmp_path: Path) -> None:
    buckets = read(tmp_path).buckets
    assert buckets == {"Data": "polarlambda-local-data", "Named": "x-polarlambda-local-512"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("!Ref Data", "polarlambda-local-data"),
        ("!Ref One", "polarlambda-local-one"),
        ("!GetAtt Data.Arn", "arn:aws:s3:::polarlambda-local-data"),
        ("!GetAtt [Data, Arn]", "arn:aws:s3:::polarlambda-local-data"),
        ("!Sub '${One.Arn}/${Size}'",
         "arn:aws:lambda:us-east-1:123456789012:function:polarlambda-local-one/512"),
        ("!Sub ['${A}-${!B}', {A: !Ref Size}]", "512-${B}"),
        ("!Join ['-', [a, !Ref Size]]", "a-512"),
        ("{'Fn::If': [Both, yes, no]}", "false"),
        ("true", "true"),
        ("12", "12"),
    ],
)  # fmt: skip
def test_intrinsic_functions(tmp_path: Path, value: str, expected: str) -> None:
    assert read(tmp_path, f"V: {value}").functions["One"].environment["V"] == expected


def test_no_value_is_no_variable(tmp_path: Path) -> None:
    assert "V" not in read(tmp_path, "V: !Ref AWS::NoValue").functions["One"].environment


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("!Ref Nothing", "Ref to 'Nothing'"),
        ("!GetAtt Data.DomainName", "Data.DomainName"),
        ("!Select [0, [a]]", "Fn::Select"),
    ],
)
def test_what_it_does_not_know_is_refused_by_name(tmp_path: Path, value: str, what: str) -> None:
    with pytest.raises(TemplateRefused, match=what):
        read(tmp_path, f"V: {value}")


@pytest.mark.parametrize(
    "text", ["Resources: {", "[]", "Resources: {}", "Resources: {A: {Type: B}}"]
)
def test_files_that_are_no_template_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(TemplateRefused) as caught:
        load_template(tmp_path / "t.yaml")
    assert "\n" not in str(caught.value)
    with pytest.raises(TemplateRefused, match="no template at"):
        load_template(tmp_path / "absent.yaml")


def test_the_product_s_own_template() -> None:
    template = load_template(ROOT / "template.yaml", {"WorkerConcurrency": "7"})
    worker, coordinator = (template.functions[f"{n}Function"] for n in ("Worker", "Coordinator"))
    assert worker.handler == "functions.worker.app.handler"
    assert coordinator.handler == "functions.coordinator.app.handler"
    assert (worker.reserved, coordinator.reserved) == (7, None)
    assert worker.retries in (0, 1)  # redundancy is our retry
    bucket = template.buckets["BlocksBucket"]
    assert worker.environment["POLARLAMBDA_BUCKET"] == bucket
    assert coordinator.environment["POLARLAMBDA_BUCKET"] == bucket
    assert coordinator.environment["POLARLAMBDA_WORKER"] == worker.name
