"""Images by the command: what is left out is told, what belongs to the rows can be fetched."""

from __future__ import annotations

import json

import numpy as np
from PIL import Image

SHAPE = ("--workers", 4, "--data-blocks", 3)


def test_images_are_encoded_and_their_labels_fetched(cli, bucket, tmp_path):
    for name, grey in (("cat/a.png", 10), ("cat/b.png", 20), ("dog/c.jpg", 30)):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (9, 12), (grey, grey, grey)).save(path)
    (tmp_path / "photos" / "dog" / "d.jpg").write_bytes(b"no image")
    encode = ("encode", "--images", tmp_path / "photos", "--size", 4, "photos", *SHAPE)
    done = cli(*encode)
    assert done.exit_code == 2
    assert "dog/d.jpg" in done.stderr and "--skip-broken" in done.stderr
    assert list(bucket.list("")) == []
    done = cli(*encode, "--skip-broken")
    assert done.exit_code == 0, done.output
    assert "1 broken image(s) left out: dog/d.jpg" in done.stderr
    assert "3 x 48 uint8" in done.stdout
    done = cli("matrices", "get", "photos", "labels.npy", "-o", tmp_path / "labels.npy")
    assert done.exit_code == 0, done.output
    assert np.load(tmp_path / "labels.npy").tolist() == [0, 0, 1]
    shown = json.loads(cli("matrices", "show", "photos", "--json").stdout)
    assert shown["companions"] == ["images.json", "labels.npy", "names.txt"]
    done = cli("matrices", "get", "photos", "captions.txt", "-o", tmp_path / "x")
    assert done.exit_code == 2
    assert "labels.npy" in done.stderr
