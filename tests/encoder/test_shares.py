"""Blocks shared out to workers: places, tiles, ids, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blockstore import keys
from blockstore.arrays import decode_array
from blockstore.errors import ManifestError
from blockstore.manifest import Manifest, load_manifest
from blockstore.subtasks import Subtasks
from encoder import SubtasksRefused, encode
from encoder.shares import share_out
from polarcodes import make_code
from tests.memory_bucket import MemoryBucket


class EncoderBucket(MemoryBucket):
    """What the encoder asks of a bucket beyond the runs."""

    client = None

    def check(self) -> None:
        """There."""

    def folders(self, prefix: str) -> list[str]:
        """Nothing was there before."""
        return []


def encoded(**options):
    A = np.random.default_rng(0).standard_normal((45, 6))
    code = make_code("hadamard", workers=32, data_blocks=20, seed=options.pop("seed", 0))
    bucket = EncoderBucket()
    return A, code, bucket, encode(A, bucket, "m", code, **options)  # type: ignore[arg-type]


def test_every_block_lies_in_its_workers_folder_and_stands_at_its_place():
    A, code, bucket, manifest = encoded(subtasks=4)
    assert (manifest.workers, manifest.blocks, manifest.data_blocks) == (8, 32, 20)
    padded = np.zeros((60, 6))
    padded[:45] = A
    coded = code.encode(padded.reshape(20, -1)).reshape(32, 3, 6)
    for block, place in enumerate(manifest.shares.places):
        body = bucket.objects[keys.tile_key("m", manifest.encoding, block, 0)].body
        np.testing.assert_array_equal(decode_array(body), coded[place])
        assert manifest.shares.owner(place) == divmod(block, 4)
    assert load_manifest(bucket, "m") == manifest  # type: ignore[arg-type]


def test_places_are_drawn_from_the_seed_and_are_part_of_the_id():
    first, again, other = (encoded(subtasks=4, seed=s)[3] for s in (0, 0, 1))
    assert first.subtasks == again.subtasks != other.subtasks
    assert first.encoding == again.encoding
    assert first.shares.places != tuple(range(32))
    apart = encoded(subtasks=2)[3], encoded()[3]
    assert len({first.encoding, *(m.encoding for m in apart)}) == 3 or (
        apart[0].shares.places == first.shares.places
    )
    assert apart[1].subtasks is None and b"subtasks" not in apart[1].to_json()


@pytest.mark.parametrize(
    ("subtasks", "per_object", "rule"),
    [
        (0, 1, "subtasks must be an integer in 1..64, got 0"),
        (-1, 1, "subtasks"),
        (65, 1, "subtasks"),
        (2.0, 1, "subtasks"),
        (True, 1, "subtasks"),
        (3, 1, "cannot be shared out 3 to a worker"),
        (4, 3, "results per object must divide subtasks = 4, got 3"),
        (4, 0, "results per object"),
    ],
)
def test_bad_numbers_are_refused_before_anything_is_written(subtasks, per_object, rule):
    bucket = EncoderBucket()
    code = make_code("hadamard", workers=32, data_blocks=20)
    with pytest.raises(SubtasksRefused, match=rule):
        encode(np.ones((45, 6)), bucket, "m", code, subtasks=subtasks, per_object=per_object)
    assert bucket.objects == {}


def test_more_data_blocks_than_rows_names_the_most_subtasks():
    code = make_code("hadamard", workers=32, data_blocks=20)
    bucket = EncoderBucket()
    with pytest.raises(SubtasksRefused, match=r"20 data blocks for 8 workers.*rows \(17\): use 3"):
        encode(np.ones((17, 6)), bucket, "m", code, subtasks=4)
    assert bucket.objects == {}
    assert share_out(code, 20, 4) is not None


@pytest.mark.parametrize(
    "damage",
    [
        lambda s: s.update(per_worker=3),
        lambda s: s.update(per_worker=0),
        lambda s: s.update(per_object=3),
        lambda s: s["places"].pop(),
        lambda s: s["places"].__setitem__(0, s["places"][1]),
        lambda s: s.pop("places"),
    ],
)
def test_a_damaged_manifest_is_refused(damage):
    document = json.loads(encoded(subtasks=4)[3].to_json())
    damage(document["subtasks"])
    with pytest.raises(ManifestError, match=r"subtasks|per_object|results per object"):
        Manifest.from_json(document)


def test_one_block_for_each_worker_is_the_identity():
    single = Subtasks.single(5)
    assert [single.owner(place) for place in range(5)] == [(w, 0) for w in range(5)]
    assert single.describe_all([3, 4]) == "workers [3, 4]" and single.describe(2) == "worker 2"
    assert Subtasks(1, 2, 1, (1, 0)).describe_all([0]) == "worker 0, task 1"
