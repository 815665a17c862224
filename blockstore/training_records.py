"""The JSON records of a training: what was asked (spec.json) and how it is going (status.json)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from blockstore.documents import Fields
from blockstore.errors import NameRefused, RunRecordError
from blockstore.training_keys import validate_training

VERSION = 1
FORMS = ("samples", "gram")
STATES = (
    "running",
    "converged",
    "iterations",
    "seconds",
    "dollars",
    "diverged",
    "stagnated",
    "stopped",
    "failed",
)


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """What was asked: spec.json.

    form : "samples", products with `matrix` and `transpose`, or "gram", products with `matrix`
    alone; matrix, transpose : names, with the digests of their manifests, transpose None where none
    is needed; source_digest : of the data X; labels_digest : of labels.npy; features, samples,
    outputs : d, n, k; classes : the labels' values for a classifier, else None; step : "line" or a
    length; anytime : products may end as estimates; stop : goals and limits by name, None where
    there is none; mode : how workers are kept; notes : what whoever trains should know of the data.
    """

    training: str
    created: str
    form: str
    matrix: str
    matrix_digest: str
    transpose: str | None
    transpose_digest: str | None
    source_digest: str
    labels_digest: str
    samples: int
    features: int
    outputs: int
    model: str
    classes: tuple[float, ...] | None
    l2: float
    intercept: bool
    step: float | str
    momentum: str | None
    beta: float
    tolerance: float
    tighten: float
    anytime: bool
    stop: dict[str, Any]
    deadline: float | None
    mode: str
    notes: tuple[str, ...] = ()
    version: int = VERSION

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrainingSpec:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "training's spec.json", RunRecordError)
        try:
            training = validate_training(fields.text("training"))
        except NameRefused as exc:
            raise RunRecordError(f"training's spec.json: {exc}") from exc
        step = fields.text("step") if isinstance(data.get("step"), str) else fields.number("step")
        return cls(
            version=fields.version(VERSION),
            training=training,
            created=fields.text("created"),
            form=fields.choice("form", FORMS),
            matrix=fields.text("matrix"),
            matrix_digest=fields.text("matrix_digest"),
            transpose=fields.text_or_none("transpose"),
            transpose_digest=fields.text_or_none("transpose_digest"),
            source_digest=fields.text("source_digest"),
            labels_digest=fields.text("labels_digest"),
            samples=fields.integer("samples", low=1),
            features=fields.integer("features", low=1),
            outputs=fields.integer("outputs", low=1),
            model=fields.text("model"),
            classes=fields.numbers_or_none("classes"),
            l2=fields.number("l2"),
            intercept=fields.boolean("intercept"),
            step=step,
            momentum=fields.text_or_none("momentum"),
            beta=fields.number("beta"),
            tolerance=fields.number("tolerance"),
            tighten=fields.number("tighten"),
            anytime=fields.boolean("anytime"),
            stop=fields.object("stop"),
            deadline=fields.number_or_none("deadline"),
            mode=fields.text("mode"),
            notes=fields.texts("notes"),
        )


@dataclass(frozen=True, kw_only=True)
class TrainingStatus:
    """How a training is going: status.json, written when a coordinator begins and when it ends.

    state : one of `STATES`; best : the iteration whose theta is the result, None while it runs.
    What happens in between is told by the checkpoints.
    """

    training: str
    state: str
    message: str = ""
    best: int | None = None
    version: int = VERSION

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrainingStatus:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "training's status.json", RunRecordError)
        return cls(
            version=fields.version(VERSION),
            training=fields.text("training"),
            state=fields.choice("state", STATES),
            message=fields.text("message"),
            best=fields.integer("best") if data.get("best") is not None else None,
        )
