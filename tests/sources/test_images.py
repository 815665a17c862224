"""Folders of images become matrices of their resized pixels, with labels; broken ones are named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from blockstore.bucket import Bucket
from encoder import EncodeError, MemoryTooSmall, SourceChanged, SourceRefused
from encoder.sources.images.listing import FolderListing
from tests.sources.encoded import companion, encode_path, labels

SIZE = 8


def picture(seed: int, width: int = 20, height: int = 14) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(pixels)


def expected(path: Path) -> NDArray[np.uint8]:
    """Shorter side to SIZE, centre SIZE x SIZE, as the torchvision transforms of that name do."""
    image = Image.open(path).convert("RGB")
    w, h = image.size
    scale = SIZE / min(w, h)
    resized = (SIZE, int(SIZE * h / w)) if w <= h else (int(SIZE * w / h), SIZE)
    assert abs(resized[0] - w * scale) < 1 and abs(resized[1] - h * scale) < 1
    image = image.resize(resized, Image.Resampling.BILINEAR)
    left, top = round((resized[0] - SIZE) / 2), round((resized[1] - SIZE) / 2)
    return np.asarray(image)[top : top + SIZE, left : left + SIZE].reshape(-1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes in folders, of several formats and shapes."""
    root = tmp_path / "photos"
    for name in ("dog", "cat", "dog/deep"):
        (root / name).mkdir(parents=True, exist_ok=True)
    picture(0).save(root / "dog" / "b.JPEG", quality=95)
    picture(1, 9, 30).save(root / "dog" / "a.png")
    picture(2, 8, 8).save(root / "dog" / "deep" / "c.jpg")
    picture(3).convert("L").save(root / "cat" / "grey.png")
    picture(4).convert("CMYK").save(root / "cat" / "print.jpg")
    picture(5).convert("RGBA").save(root / "cat" / "clear.png")
    picture(6).convert("P").save(root / "cat" / "palette.png")
    return root


NAMES = [
    "cat/clear.png",
    "cat/grey.png",
    "cat/palette.png",
    "cat/print.jpg",
    "dog/a.png",
    "dog/b.JPEG",
    "dog/deep/c.jpg",
]


def test_rows_are_the_pixels_and_the_labels_are_the_folders(bucket: Bucket, folder: Path) -> None:
    manifest, matrix = encode_path(bucket, folder, images=True, size=SIZE)
    assert manifest.shape == (7, 3 * SIZE * SIZE)
    assert np.dtype(manifest.source_dtype) == np.uint8
    np.testing.assert_array_equal(matrix, [expected(folder / name) for name in NAMES])
    assert labels(bucket, manifest) == [0, 0, 0, 0, 1, 1, 1]
    assert companion(bucket, manifest, "names.txt").decode().splitlines() == NAMES
    described = json.loads(companion(bucket, manifest, "images.json"))
    assert described == {"version": 1, "size": SIZE, "classes": ["cat", "dog"], "skipped": []}


def test_sixteen_bit_grey_is_scaled_and_not_clipped(bucket: Bucket, tmp_path: Path) -> None:
    grey = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    Image.fromarray(grey).save(tmp_path / "x.png")
    manifest, matrix = encode_path(bucket, tmp_path, images=True, size=SIZE)
    np.testing.assert_array_equal(matrix.reshape(64, 3)[:, 0], grey.reshape(-1) // 256)
    assert labels(bucket, manifest) == [-1]  # no folder, no class


def test_other_labels_are_other_content(bucket: Bucket, folder: Path) -> None:
    first, _ = encode_path(bucket, folder, images=True, size=SIZE)
    again, _ = encode_path(bucket, folder, images=True, size=SIZE)
    assert again.encoding == first.encoding
    (folder / "dog").rename(folder / "wolf")
    with pytest.raises(EncodeError, match="taken"):
        encode_path(bucket, folder, images=True, size=SIZE)
    second, _ = encode_path(bucket, folder, images=True, size=SIZE, replace=True)
    assert json.loads(companion(bucket, second, "images.json"))["classes"] == ["cat", "wolf"]
    left = [info.key for info in bucket.list("") if first.encoding in info.key]
    assert left == []


def broken(folder: Path) -> dict[str, bytes]:
    whole = (folder / "dog" / "b.JPEG").read_bytes()
    png = (folder / "dog" / "a.png").read_bytes()
    return {
        "cat/cut.jpg": whole[: len(whole) // 2],
        "cat/empty.png": b"",
        "dog/page.jpg": b"<html>404</html>",
        "dog/crc.png": png[:40] + bytes([png[40] ^ 0xFF]) + png[41:],
        "dog/gif.png": b"GIF89a" + b"\0" * 50,
    }


def test_a_broken_image_is_named_and_nothing_is_written(bucket: Bucket, folder: Path) -> None:
    for name, body in broken(folder).items():
        (folder / name).write_bytes(body)
        with pytest.raises(SourceRefused, match=f"{name}.*--skip-broken"):
            encode_path(bucket, folder, images=True, size=SIZE)
        (folder / name).unlink()
    assert list(bucket.list("")) == []


def test_broken_images_are_left_out_and_listed(bucket: Bucket, folder: Path) -> None:
    for name, body in broken(folder).items():
        (folder / name).write_bytes(body)
    manifest, matrix = encode_path(bucket, folder, images=True, size=SIZE, skip_broken=True)
    np.testing.assert_array_equal(matrix, [expected(folder / name) for name in NAMES])
    assert labels(bucket, manifest) == [0, 0, 0, 0, 1, 1, 1]
    described = json.loads(companion(bucket, manifest, "images.json"))
    assert sorted(each["name"] for each in described["skipped"]) == sorted(broken(folder))
    assert all(each["reason"] for each in described["skipped"])


def test_when_all_are_broken_none_is_left(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"no")
    with pytest.raises(SourceRefused, match="none is left"):
        encode_path(bucket, tmp_path, images=True, size=SIZE, skip_broken=True)


def test_folders_without_images_say_what_is_there(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "a.webp").write_bytes(b"x")
    (tmp_path / "b.webp").write_bytes(b"x")
    (tmp_path / "README").write_bytes(b"x")
    (tmp_path / "._c.jpg").write_bytes(b"macOS")
    with pytest.raises(SourceRefused, match=r"1 without a suffix, 2 \.webp"):
        encode_path(bucket, tmp_path, images=True, size=SIZE)
    with pytest.raises(SourceRefused, match=r"folder.*shard"):
        encode_path(bucket, tmp_path / "none", images=True, size=SIZE)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"images": True}, "--size"),
        ({"images": True, "size": 0}, "1..4096"),
        ({"size": 64}, "--images"),
        ({"skip_broken": True}, "--images"),
        ({"images": True, "size": 8, "columns": ("a",)}, "Parquet"),
    ],
)
def test_options_that_do_not_go_together(
    bucket: Bucket, folder: Path, options: dict[str, Any], rule: str
) -> None:
    with pytest.raises(SourceRefused, match=rule):
        encode_path(bucket, folder, **options)


def test_an_image_that_changes_is_noticed(folder: Path) -> None:
    listing = FolderListing(str(folder))
    path = folder / NAMES[1]
    assert listing.read(1) == path.read_bytes()
    os.utime(path, ns=(0, 0))
    with pytest.raises(SourceChanged, match="grey"):
        listing.read(1)


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    picture(0).save(tmp_path / "a" / "x.png")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    assert FolderListing(str(tmp_path)).names == ["a/x.png", "b/x.png"]


def test_a_huge_image_is_broken_and_too_little_memory_is_refused(
    bucket: Bucket, tmp_path: Path
) -> None:
    Image.new("1", (6000, 4000)).save(tmp_path / "huge.png")  # 3 KB on disk
    with pytest.raises(SourceRefused, match=r"huge\.png is broken: its 6000 x 4000 pixels"):
        encode_path(bucket, tmp_path, images=True, size=SIZE, memory=256 << 20)
    with pytest.raises(MemoryTooSmall, match="at least"):
        encode_path(bucket, tmp_path, images=True, size=SIZE, memory=130 << 20)
    assert list(bucket.list("")) == []
