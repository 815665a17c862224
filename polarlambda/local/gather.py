"""Which functions a stack has, and in which folder each of them is built."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from polarlambda.local.errors import OptionRefused
from polarlambda.local.template import Template, load_template

_OBJECTIVE = "Objective"  # how the parameters and functions of an objective's template begin


def gather(
    template: str | os.PathLike[str] | None,
    parameters: Mapping[str, str],
    objective: str | os.PathLike[str] | None,
) -> tuple[Template, dict[str, Path]]:
    """The functions of `template` and of the folder `objective`, and the folder of each.

    Parameters whose names begin with Objective are the objective's. Raises `TemplateRefused`,
    `OptionRefused`.
    """
    path = Path(template) if template is not None else _find_template()
    if objective is None:
        found = load_template(path, parameters)
        return found, dict.fromkeys(found.functions, path.resolve().parent)
    its = {name: value for name, value in parameters.items() if name.startswith(_OBJECTIVE)}
    found = load_template(path, {k: v for k, v in parameters.items() if k not in its})
    folder = Path(objective).resolve()
    if not (folder / "template.yaml").is_file():
        raise OptionRefused(
            f"there is no template.yaml in {folder}: make an objective with "
            "scripts/new_objective.py, and give its folder"
        )
    bucket = next(iter(found.buckets.values()))
    more = load_template(folder / "template.yaml", {"BlocksBucket": bucket, **its})
    roots = dict.fromkeys(found.functions, path.resolve().parent)
    roots |= dict.fromkeys(more.functions, folder)
    return Template({**found.functions, **more.functions}, found.buckets), roots


def _find_template() -> Path:
    checkout = Path(__file__).resolve().parents[2]
    for folder in (checkout, Path.cwd()):
        if (folder / "template.yaml").is_file():
            return folder / "template.yaml"
    return checkout / "template.yaml"
