"""What is to be decoded, and how, as it lies in the store for whoever takes part or carries on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from blockstore import decode_keys, documents
from blockstore.arrays import get_array, put_array
from blockstore.bucket import Bucket
from blockstore.documents import Fields
from blockstore.errors import ObjectMissing, RunRecordError
from coordinator.check import Check
from coordinator.cut import Cut
from coordinator.decode import Decoder
from coordinator.layout import Layout
from coordinator.stored_answers import StoredAnswer
from coordinator.targets import Kind, Target, open_target
from coordinator.windows import Pools, Solve, Stages
from polarcodes import DecodingPlan, code_from_manifest

__all__ = ["AT_ONCE", "DecodeJob", "get_checks", "put_done"]

VERSION = 1
AT_ONCE = 16  # records being read
JSON = "application/json"
LARGEST = 1e300  # of a residual in a record: JSON has no infinity


@dataclass(frozen=True, kw_only=True)
class DecodeJob:
    """One decisive set, where its answers lie, and how its product is cut and written.

    places, answers : the set in the plan's order; predicted, epsilon, scale : of `Decoder`; upload
    : id of the upload of an .npy result; decoding : digest of all but the upload, so that another
    coordinator with the same memory finds what is done.
    """

    run: str
    code: Mapping[str, Any]
    places: tuple[int, ...]
    answers: tuple[StoredAnswer, ...]
    dtype: str
    epsilon: float
    scale: float
    predicted: float
    layout: Layout
    cut: Cut
    kind: Kind
    upload: str = ""

    @cached_property
    def decoding(self) -> str:
        """The id of this decoding, 16 hex digits."""
        body = documents.dump(replace(self, upload="").to_json())
        return hashlib.sha256(body).hexdigest()[:16]

    @property
    def key(self) -> str:
        """Where the product goes: key of an .npy, or prefix of a Zarr array."""
        return decode_keys.product_key(self.run, self.kind)

    def target(self, bucket: Bucket) -> Target:
        """Where the product is written; begins an upload if the job has none."""
        dtype = np.dtype(self.dtype)
        return open_target(bucket, self.kind, self.key, self.layout, dtype, self.cut, self.upload)

    def stages(self, bucket: Bucket, solve: Solve, target: Target, pools: Pools) -> Stages:
        """Makes the windows and parts of this job."""
        return Stages(
            bucket,
            self.layout,
            self.cut,
            np.dtype(self.dtype),
            self.answers,
            self.places,
            solve,
            target,
            self.run,
            self.decoding,
            pools,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; answers of one object share its name."""
        return {
            "version": VERSION,
            "run": self.run,
            "code": dict(self.code),
            "places": list(self.places),
            "objects": [answer.key for answer in self.answers],
            "offsets": [answer.offset for answer in self.answers],
            "etags": [answer.etag for answer in self.answers],
            "dtype": self.dtype,
            "epsilon": self.epsilon,
            "scale": self.scale,
            "predicted": self.predicted,
            "layout": self.layout.to_json(),
            "cut": self.cut.to_json(),
            "kind": self.kind,
            "upload": self.upload,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DecodeJob:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "job.json", RunRecordError)
        fields.version(VERSION)
        objects, etags = fields.texts("objects"), fields.texts("etags")
        offsets, places = fields.integers("offsets"), fields.integers("places")
        if not len(objects) == len(etags) == len(offsets) == len(places):
            raise fields.fail("objects", f"as many as there are places ({len(places)})")
        answers = tuple(StoredAnswer(*each) for each in zip(objects, offsets, etags, strict=True))
        return cls(
            run=fields.text("run"),
            code=fields.object("code"),
            places=places,
            answers=answers,
            dtype=fields.text("dtype"),
            epsilon=fields.number("epsilon"),
            scale=fields.number("scale"),
            predicted=fields.number("predicted"),
            layout=Layout.from_fields(Fields(data.get("layout"), "job's layout", RunRecordError)),
            cut=Cut.from_fields(Fields(data.get("cut"), "job's cut", RunRecordError)),
            kind="npy" if fields.choice("kind", ("npy", "zarr")) == "npy" else "zarr",
            upload=fields.text("upload"),
        )

    def store(self, bucket: Bucket, plan: DecodingPlan | None) -> bool:
        """Write the job, and the plan's arrays before it if others need them; False if the job is
        there already."""
        if plan is not None:
            arrays = plan.to_arrays()
            method = str(arrays.pop("method"))
            names: dict[str, Any] = {"method": method, "arrays": sorted(arrays)}
            for name, values in arrays.items():
                put_array(bucket, decode_keys.plan_array_key(self.run, self.decoding, name), values)
        else:
            names = {}
        body = documents.dump(self.to_json() | {"plan": names})
        key = decode_keys.job_key(self.run, self.decoding)
        return bool(bucket.put(key, body, if_none_match=True, content_type=JSON))

    @classmethod
    def load(cls, bucket: Bucket, run: str, decoding: str) -> tuple[DecodeJob, Mapping[str, Any]]:
        """(job, names of its plan's arrays); raises `ObjectMissing`, `RunRecordError`."""
        body = bucket.get(decode_keys.job_key(run, decoding))
        data = documents.parse(body, "job.json", RunRecordError)
        return cls.from_json(data), Fields(data, "job.json", RunRecordError).object("plan")

    def load_decoder(self, bucket: Bucket, names: Mapping[str, Any]) -> Decoder:
        """The decoder, from the arrays that the coordinator stored: nothing is computed again.

        Raises `polarcodes.InvalidPlan` if they do not fit together.
        """
        decoding = self.decoding
        arrays = {
            name: get_array(bucket, decode_keys.plan_array_key(self.run, decoding, name))
            for name in names["arrays"]
        }
        plan = DecodingPlan.from_arrays({"method": np.array(names["method"]), **arrays})
        code = code_from_manifest(dict(self.code))
        return Decoder(code, plan, epsilon=self.epsilon, scale=self.scale, predicted=self.predicted)


def put_done(bucket: Bucket, job: DecodeJob, stage: str, number: int, check: Check) -> None:
    """Write down that a range of a stage is done, and what its equations say."""
    worst = check.worst if math.isfinite(check.worst) else LARGEST
    record = {"version": VERSION, "worst": worst, "suspect": check.suspect}
    key = decode_keys.done_key(job.run, job.decoding, stage, number)
    bucket.put(key, documents.dump(record), content_type=JSON)


def get_checks(
    bucket: Bucket, job: DecodeJob, stage: str, known: dict[int, Check]
) -> dict[int, Check]:
    """`known`, and the records that are there besides: what is done, by number. New ones are read
    side by side, `AT_ONCE` of them."""
    prefix = decode_keys.done_prefix(job.run, job.decoding, stage)
    listed = [info.key.removeprefix(prefix).removesuffix(".json") for info in bucket.list(prefix)]
    new = [n for n in listed if n.isdecimal() and int(n) not in known]

    def read(number: str) -> Check | None:
        try:
            body = bucket.get(f"{prefix}{number}.json")
        except ObjectMissing:
            return None
        data = documents.parse(body, "done record", RunRecordError)
        fields = Fields(data, "done record", RunRecordError)
        fields.version(VERSION)
        suspect = None if data.get("suspect") is None else fields.integer("suspect")
        return Check(fields.number("worst"), suspect)

    if not new:
        return known
    with ThreadPoolExecutor(min(AT_ONCE, len(new)), thread_name_prefix="checks") as pool:
        found = zip(new, pool.map(read, new), strict=True)
        known |= {int(number): check for number, check in found if check is not None}
    return known
