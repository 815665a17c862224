"""What template.yaml says about the functions: the subset of SAM that decides how a function runs.

Parameters take their defaults (or the value given), ``Ref``, ``Fn::Sub``, ``Fn::GetAtt``,
``Fn::Join`` and ``Fn::If`` are resolved; anything else that a needed property uses is refused by
name, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from polarlambda.local.errors import OptionRefused, TemplateRefused

ACCOUNT = "123456789012"
REGION = "us-east-1"
STACK_NAME = "polarlambda-local"
_NO_VALUE = object()


@dataclass(frozen=True)
class FunctionConfig:
    """How one function runs. ``memory`` in MB, ``timeout`` in seconds, ``reserved`` None when
    unreserved.
    """

    logical_id: str
    name: str
    handler: str
    runtime: str
    memory: int
    timeout: float
    environment: dict[str, str]
    reserved: int | None
    retries: int
    event_age: float

    @property
    def arn(self) -> str:
        """Its ARN in the local stack's made-up account."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.name}"


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short tags (``!Ref X`` is ``{"Ref": "X"}``)."""


def _short_tag(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)  # type: ignore[arg-type]
    if suffix in ("Ref", "Condition"):
        return {suffix: value}
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_tag)


@dataclass(frozen=True)
class Template:
    """The functions, and the names of the buckets, by logical id."""

    functions: dict[str, FunctionConfig]
    buckets: dict[str, str]


def load_template(path: Path, parameters: Mapping[str, str] | None = None) -> Template:
    """Read the template at ``path`` with these ``parameters`` instead of their defaults."""
    try:
        template = yaml.load(path.read_text(), Loader=_Loader)  # noqa: S506 - it is a SafeLoader
    except FileNotFoundError:
        raise TemplateRefused(
            f"no template at {path}: run inside a checkout of polarlambda, or pass --template"
        ) from None
    except yaml.YAMLError as error:
        line = " ".join(str(error).split())
        raise TemplateRefused(f"{path} is not valid YAML: {line}") from None
    if not isinstance(template, dict) or not isinstance(template.get("Resources"), dict):
        raise TemplateRefused(f"{path} has no Resources")
    resources = template["Resources"].items()
    resolver = _Resolver(template, dict(parameters or {}), path)
    functions = {
        logical_id: resolver.function(logical_id, resource.get("Properties") or {})
        for logical_id, resource in resources
        if resource.get("Type") == "AWS::Serverless::Function"
    }
    if not functions:
        raise TemplateRefused(f"{path} has no AWS::Serverless::Function")
    buckets = {
        logical_id: resolver.bucket(logical_id)
        for logical_id, resource in resources
        if resource.get("Type") == "AWS::S3::Bucket"
    }
    return Template(functions, buckets)


class _Resolver:
    def __init__(self, template: dict[str, Any], given: dict[str, str], path: Path) -> None:
        self._path = path
        self._resources: dict[str, Any] = template["Resources"]
        self._conditions: dict[str, Any] = template.get("Conditions") or {}
        self._globals: dict[str, Any] = (template.get("Globals") or {}).get("Function") or {}
        declared: dict[str, Any] = template.get("Parameters") or {}
        for key in given:
            if key not in declared:
                known = ", ".join(sorted(declared)) or "none"
                raise OptionRefused(f"{path.name} has no parameter {key!r}; it has: {known}")
        self._values: dict[str, Any] = {
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": STACK_NAME,
            "AWS::NoValue": _NO_VALUE,
            **{key: spec["Default"] for key, spec in declared.items() if "Default" in spec},
            **given,
        }

    def function(self, logical_id: str, own: dict[str, Any]) -> FunctionConfig:
        """The function with these properties, the template's Globals below them."""
        properties = {**self._globals, **own}
        variables = {
            **((self._globals.get("Environment") or {}).get("Variables") or {}),
            **((own.get("Environment") or {}).get("Variables") or {}),
        }
        invoke = self._get(properties, "EventInvokeConfig", {})
        reserved = self._get(properties, "ReservedConcurrentExecutions", None)
        handler = self._get(properties, "Handler", None)
        if not handler:
            raise TemplateRefused(f"{logical_id} in {self._path} has no Handler")
        values = {key: self._resolve(value) for key, value in variables.items()}
        return FunctionConfig(
            logical_id=logical_id,
            name=self._name(logical_id),
            handler=str(handler),
            runtime=str(self._get(properties, "Runtime", "")),
            memory=int(self._get(properties, "MemorySize", 128)),
            timeout=float(self._get(properties, "Timeout", 3)),
            environment={k: _text(v) for k, v in values.items() if v is not _NO_VALUE},
            reserved=None if reserved is None else int(reserved),
            retries=int(self._get(invoke, "MaximumRetryAttempts", 2)),
            event_age=float(self._get(invoke, "MaximumEventAgeInSeconds", 21600)),
        )

    def bucket(self, logical_id: str) -> str:
        """Name of a bucket: BucketName, or one made from the stack's name."""
        given = (self._resources[logical_id].get("Properties") or {}).get("BucketName")
        default = f"{STACK_NAME}-{logical_id.lower()}"
        return default if given is None else _text(self._resolve(given))

    def _get(self, properties: dict[str, Any], key: str, default: Any) -> Any:
        value = self._resolve(properties.get(key, default))
        return default if value is _NO_VALUE else value

    def _name(self, logical_id: str) -> str:
        given = (self._resources[logical_id].get("Properties") or {}).get("FunctionName")
        return logical_id if given is None else str(self._resolve(given))

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            key, argument = next(iter(value.items()))
            if key == "Ref":
                return self._ref(argument)
            if key.startswith("Fn::"):
                return self._call(key, argument)
        return {key: self._resolve(item) for key, item in value.items()}

    def _ref(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        kind = (self._resources.get(name) or {}).get("Type")
        if kind == "AWS::Serverless::Function":
            return self._name(name)
        if kind == "AWS::S3::Bucket":
            return self.bucket(name)
        raise TemplateRefused(f"{self._path}: the local stack cannot resolve a Ref to {name!r}")

    def _call(self, name: str, argument: Any) -> Any:
        if name == "Fn::Sub":
            return self._sub(argument)
        if name == "Fn::GetAtt":
            return self._attribute(argument)
        if name == "Fn::Join":
            separator, items = argument
            return separator.join(_text(item) for item in self._resolve(items))
        if name == "Fn::If":
            condition, yes, no = argument
            return self._resolve(yes if self._holds({"Condition": condition}) else no)
        raise TemplateRefused(f"{self._path}: the local stack does not know {name}")

    def _sub(self, argument: Any) -> str:
        text, local = argument if isinstance(argument, list) else (argument, {})

        def replace(match: re.Match[str]) -> str:
            name = match.group(1).strip()
            if name.startswith("!"):
                return "${" + name[1:] + "}"
            if name in local:
                return _text(self._resolve(local[name]))
            return _text(self._attribute(name.split(".", 1)) if "." in name else self._ref(name))

        return re.sub(r"\$\{([^}]+)\}", replace, text)

    def _attribute(self, argument: list[str]) -> str:
        resource, attribute = argument
        kind = (self._resources.get(resource) or {}).get("Type")
        if attribute == "Arn" and kind == "AWS::Serverless::Function":
            return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self._name(resource)}"
        if attribute == "Arn" and kind == "AWS::S3::Bucket":
            return f"arn:aws:s3:::{self.bucket(resource)}"
        raise TemplateRefused(
            f"{self._path}: the local stack cannot resolve {resource}.{attribute}"
        )

    def _holds(self, condition: dict[str, Any]) -> bool:
        key, argument = next(iter(condition.items()))
        if key == "Condition":
            return self._holds(self._conditions[argument])
        if key == "Fn::Equals":
            left, right = self._resolve(argument)
            return _text(left) == _text(right)
        if key == "Fn::Not":
            return not self._holds(argument[0])
        if key in ("Fn::And", "Fn::Or"):
            results = [self._holds(item) for item in argument]
            return all(results) if key == "Fn::And" else any(results)
        raise TemplateRefused(f"{self._path}: the local stack does not know the condition {key}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
