"""Read template.yaml as CloudFormation does: `!Ref X` is {"Ref": "X"}, `!Sub` {"Fn::Sub": ...}."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]


class _Loader(yaml.SafeLoader):
    """Safe YAML plus CloudFormation's short forms."""


def _short_form(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
        if suffix == "GetAtt":
            value = value.split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)


def load_template(path: Path = ROOT / "template.yaml") -> dict[str, Any]:
    """template.yaml as plain dictionaries and lists."""
    template: dict[str, Any] = yaml.load(path.read_text(), Loader=_Loader)  # noqa: S506 (a SafeLoader)
    return template


def references(node: Any) -> Iterator[str]:
    """Logical ids and parameters that a part of the template refers to."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("Ref", "DependsOn") and isinstance(value, str):
                yield value
            elif key == "Fn::GetAtt":
                yield value[0]
            elif key == "Fn::Sub":
                text = value if isinstance(value, str) else value[0]
                yield from (name.split(".")[0] for name in re.findall(r"\$\{([^!}]+)\}", text))
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def statements(template: dict[str, Any], role: str) -> list[dict[str, Any]]:
    """All statements of a role's inline policies."""
    policies = template["Resources"][role]["Properties"]["Policies"]
    return [each for policy in policies for each in policy["PolicyDocument"]["Statement"]]
