"""Decoded blocks as the product: below one another or in a grid, whole or some rows at a time."""

from __future__ import annotations

import numpy as np
import pytest

from blockstore.documents import Fields
from coordinator.layout import Layout

LAYOUTS = [
    Layout((31,), 11, 1, 3, 1),
    Layout((31, 4), 11, 1, 3, 4),
    Layout((10, 13), 3, 4, 4, 4),  # padding below and beside
    Layout((8, 6), 2, 3, 4, 2),
    Layout((5, 2), 2, 2, 3, 1),
]


def decoded(layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """(product, its blocks as a decoder gives them), padding being -1."""
    product = np.arange(np.prod(layout.shape)).reshape(layout.shape)
    height, width = layout.down * layout.block_rows, layout.across * layout.block_columns
    padded = np.full((height, width), -1)
    padded[: layout.rows, : layout.columns] = product.reshape(layout.rows, -1)
    blocks = [
        padded[i : i + layout.block_rows, j : j + layout.block_columns].ravel()
        for i in range(0, height, layout.block_rows)
        for j in range(0, width, layout.block_columns)
    ]
    return product, np.array(blocks)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_the_blocks_make_up_the_product(layout):
    product, blocks = decoded(layout)
    assert blocks.shape == (layout.blocks, layout.length)
    np.testing.assert_array_equal(layout.assemble(blocks), product)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_some_rows_of_every_block_are_bands_of_the_product(layout):
    product, blocks = decoded(layout)
    rows = product.reshape(layout.rows, -1)
    for first in range(layout.block_rows):
        part = slice(first * layout.block_columns, layout.length)
        for i, band in enumerate(layout.bands(blocks[:, part])):
            top = i * layout.block_rows
            wanted = rows[top + first : top + layout.block_rows]
            np.testing.assert_array_equal(band[: len(wanted)], wanted)


def test_blocks_below_one_another_are_not_copied():
    layout = LAYOUTS[1]
    blocks = decoded(layout)[1]
    assert np.shares_memory(layout.assemble(blocks), blocks)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_it_is_read_back_from_json(layout):
    assert Layout.from_fields(Fields(layout.to_json(), "layout", ValueError)) == layout
