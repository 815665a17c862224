from __future__ import annotations

import numpy as np
import pytest

from polarlambda.demo import photographs
from polarlambda.demo.photographs import COLUMNS, FULL, PATCH, SMALL, Photograph
from polarlambda.errors import BadInput


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "A.npy"
    grids = photographs.write_patches(path, SMALL, seed=3)
    return np.load(path, mmap_mode="r"), grids


def test_rows_are_patches_of_the_photographs_and_every_row_has_its_place(small):
    matrix, grids = small
    assert matrix.dtype == np.uint8
    assert matrix.shape[1] == COLUMNS == 12_288
    places = np.concatenate([grid.rows.reshape(-1) for grid in grids])
    np.testing.assert_array_equal(np.sort(places), np.arange(len(matrix)))


def test_a_row_is_the_patch_at_its_place_of_the_grid(small):
    matrix, grids = small
    grid = grids[0]
    image = photographs.open_image(grid.photograph)
    large = image.resize((image.width * grid.photograph.enlarge,) * 2, 3)  # 3: bicubic
    top, left = 5 * grid.photograph.step, 7 * grid.photograph.step
    patch = np.asarray(large)[top : top + PATCH, left : left + PATCH]
    np.testing.assert_array_equal(matrix[grid.rows[5, 7]].reshape(PATCH, PATCH, 3), patch)


def test_the_full_matrix_has_16000_rows_of_several_photographs():
    rows = 0
    for photograph in FULL:
        image = photographs.open_image(photograph)
        sides = (image.height * photograph.enlarge, image.width * photograph.enlarge)
        high, wide = ((side - PATCH) // photograph.step + 1 for side in sides)
        rows += high * wide
    assert rows >= 16_000
    assert len(FULL) > 1


def test_the_filter_is_the_first_principal_component_of_the_sample(small):
    matrix, _ = small
    rows = matrix[:300].astype(float)
    x = photographs.first_component(matrix[:300], sample=300, seed=0)
    assert x.dtype == np.float32
    centred = rows - rows.mean(axis=0)
    explained = np.linalg.norm(centred @ x) ** 2
    largest = np.linalg.eigvalsh(centred @ centred.T)[-1]
    assert explained == pytest.approx(largest, rel=1e-5)
    assert x.sum() > 0


def test_the_oracle_is_numpys_product(small):
    matrix, _ = small
    x = np.random.default_rng(0).standard_normal(COLUMNS).astype(np.float32)
    wanted = matrix[:600].astype(float) @ x.astype(float)
    np.testing.assert_allclose(photographs.product_in_numpy(matrix[:600], x), wanted, rtol=1e-12)


def test_a_photograph_that_is_not_installed_is_one_line():
    with pytest.raises(BadInput, match=r"pip install 'polarlambda\[report\]'"):
        photographs.open_image(Photograph("nothing", "nothing.png", 1, 1))
