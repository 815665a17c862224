"""WebDataset shards, written by webdataset itself."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import webdataset
from PIL import Image

from blockstore.bucket import Bucket
from encoder import SourceRefused
from tests.sources.encoded import companion, encode_path, labels

SIZE = 6
COUNT = 11


def pixels(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (SIZE, SIZE, 3), np.uint8)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Three shards, the labels whole numbers; one sample without a label."""
    with webdataset.ShardWriter(f"{tmp_path}/train-%03d.tar", maxcount=4, verbose=0) as sink:
        for i in range(COUNT):
            sample = {"__key__": f"n{i % 3}/img{i:04d}", "png": Image.fromarray(pixels(i))}
            if i != 5:
                sample["cls"] = 10 * i
            sample["json"] = {"caption": "x"}
            sink.write(sample)
    return tmp_path


@pytest.mark.parametrize("path", ["", "train-{000..002}.tar"])
def test_rows_in_the_order_of_the_shards(bucket: Bucket, shards: Path, path: str) -> None:
    manifest, matrix = encode_path(bucket, shards / path, images=True, size=SIZE)
    np.testing.assert_array_equal(matrix, [pixels(i).reshape(-1) for i in range(COUNT)])
    assert labels(bucket, manifest) == [-1 if i == 5 else 10 * i for i in range(COUNT)]
    names = companion(bucket, manifest, "names.txt").decode().splitlines()
    assert names[4] == "train-001.tar/n1/img0004.png"
    assert json.loads(companion(bucket, manifest, "images.json"))["classes"] is None


def test_one_shard(bucket: Bucket, shards: Path) -> None:
    _, matrix = encode_path(bucket, shards / "train-001.tar", images=True, size=SIZE)
    np.testing.assert_array_equal(matrix, [pixels(i).reshape(-1) for i in range(4, 8)])


def test_labels_may_be_words(bucket: Bucket, tmp_path: Path) -> None:
    with webdataset.TarWriter(f"{tmp_path}/x.tar") as sink:
        for i, word in enumerate(("wolf", "bear", "wolf")):
            sink.write({"__key__": f"{i}", "jpg": Image.fromarray(pixels(i)), "cls": word.encode()})
    manifest, _ = encode_path(bucket, tmp_path / "x.tar", images=True, size=SIZE)
    assert labels(bucket, manifest) == [1, 0, 1]
    assert json.loads(companion(bucket, manifest, "images.json"))["classes"] == ["bear", "wolf"]


def test_broken_samples_are_left_out_and_listed(bucket: Bucket, tmp_path: Path) -> None:
    with webdataset.TarWriter(f"{tmp_path}/x.tar", encoder=False) as sink:
        sink.write({"__key__": "bad", "jpg": b"\xff\xd8 not a jpeg", "cls": b"1"})
    with webdataset.TarWriter(f"{tmp_path}/y.tar") as sink:
        sink.write({"__key__": "good", "png": Image.fromarray(pixels(0)), "cls": 2})
    with pytest.raises(SourceRefused, match=r"x\.tar/bad\.jpg"):
        encode_path(bucket, tmp_path, images=True, size=SIZE)
    manifest, matrix = encode_path(bucket, tmp_path, images=True, size=SIZE, skip_broken=True)
    np.testing.assert_array_equal(matrix, [pixels(0).reshape(-1)])
    assert labels(bucket, manifest) == [2]


def test_two_images_of_a_sample_are_refused(bucket: Bucket, tmp_path: Path) -> None:
    with webdataset.TarWriter(f"{tmp_path}/x.tar") as sink:
        image = Image.fromarray(pixels(0))
        sink.write({"__key__": "s", "png": image, "mask.png": image})
    with pytest.raises(SourceRefused, match=r"two images.*s\.mask\.png"):
        encode_path(bucket, tmp_path / "x.tar", images=True, size=SIZE)


def test_shards_that_are_not_whole_are_refused(bucket: Bucket, shards: Path) -> None:
    shard = shards / "train-001.tar"
    whole = shard.read_bytes()
    with tarfile.open(shard) as tar:
        members = tar.getmembers()
    after_one = members[3].offset
    for damaged in (
        whole[: members[-1].offset_data + 100],
        whole[:after_one],  # between two members: only the end marker is missing
        whole + whole,  # put together with cat: a reader of tar stops at the first end
        b"",
        b"\x1f\x8b" + whole[2:],
    ):
        shard.write_bytes(damaged)
        with pytest.raises(SourceRefused, match=r"train-001\.tar.*whole tar"):
            encode_path(bucket, shards, images=True, size=SIZE)
    with pytest.raises(SourceRefused, match=r"train-003\.tar"):
        encode_path(bucket, shards / "train-{002..003}.tar", images=True, size=SIZE)
    assert list(bucket.list("")) == []


def test_shards_and_images_in_one_folder_are_refused(bucket: Bucket, shards: Path) -> None:
    Image.fromarray(pixels(0)).save(shards / "x.png")
    with pytest.raises(SourceRefused, match="one or the other"):
        encode_path(bucket, shards, images=True, size=SIZE)
