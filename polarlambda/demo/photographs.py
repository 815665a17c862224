"""A real image matrix: overlapping patches of the photographs in the scikit-image wheel.

Each row of the matrix is one 64 x 64 x 3 patch, flattened: 12,288 uint8 values, the row length of
ImageNet-64. The patches of one photograph are taken on a grid, so the product of its rows with one
filter x, folded back to the grid, is the filter's response map of that photograph. The rows of all
photographs are shuffled, as in a training set: what is missing from a block of rows, or estimated
for it, is then spread over the pictures and not a stripe in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polarlambda.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

PATCH = 64
COLUMNS = PATCH * PATCH * 3


@dataclass(frozen=True)
class Photograph:
    """A file of the scikit-image wheel, how often it is enlarged, and the step of its grid.

    Enlarging makes a window of 64 pixels see a detail (a face) instead of half of the picture.
    """

    title: str
    file: str
    enlarge: int
    step: int


@dataclass(frozen=True)
class Grid:
    """Where the patches of one photograph are: ``rows`` (height, width) of the matrix."""

    photograph: Photograph
    rows: np.ndarray[Any, Any]

    def fold(self, product: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Response map (height, width) out of the product (n,) of the whole matrix."""
        folded: np.ndarray[Any, Any] = product[self.rows]
        return folded


FULL = (
    Photograph("astronaut", "astronaut.png", 3, 14),
    Photograph("cat", "chelsea.png", 3, 16),
    Photograph("coffee", "coffee.png", 2, 16),
)
SMALL = (
    Photograph("astronaut", "astronaut.png", 3, 40),
    Photograph("cat", "chelsea.png", 3, 48),
    Photograph("coffee", "coffee.png", 2, 48),
)


def write_patches(path: Path, photographs: tuple[Photograph, ...], *, seed: int) -> list[Grid]:
    """Write the patches of ``photographs`` to ``path`` as .npy, (n, 12288) uint8, rows shuffled.

    Returns the grid of every photograph. Memory: the photographs and the pages being written.
    Raises `BadInput` when the photographs are not installed.
    """
    import numpy as np

    windows = [_windows(photograph) for photograph in photographs]
    counts = [window.shape[0] * window.shape[1] for window in windows]
    order = np.random.default_rng(seed).permutation(sum(counts))
    matrix = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(len(order), COLUMNS))
    grids = []
    for photograph, window in zip(photographs, windows, strict=True):
        rows, order = np.split(order, [window.shape[0] * window.shape[1]])
        grid = Grid(photograph, rows.reshape(window.shape[:2]))
        for line, patches in zip(grid.rows, window, strict=True):
            matrix[line] = patches.reshape(len(line), COLUMNS)
        grids.append(grid)
    matrix.flush()
    return grids


def first_component(
    matrix: np.ndarray[Any, Any], *, sample: int, seed: int
) -> np.ndarray[Any, Any]:
    """First principal component of ``sample`` random rows of ``matrix``, (d,) float32, norm 1.

    Found in the sample x sample Gram matrix, because sample << d. Its sum is positive, so a bright
    patch has a large response.
    """
    import numpy as np

    chosen = np.random.default_rng(seed).choice(len(matrix), size=sample, replace=False)
    rows = matrix[np.sort(chosen)].astype(np.float64)
    rows -= rows.mean(axis=0)
    component = np.linalg.eigh(rows @ rows.T)[1][:, -1] @ rows
    component *= np.sign(component.sum()) / np.linalg.norm(component)
    return component.astype(np.float32)


def product_in_numpy(matrix: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The oracle: ``matrix @ x`` in float64, a few hundred rows at a time, (n,)."""
    import numpy as np

    chunks = range(0, len(matrix), 256)
    wide = x.astype(np.float64)
    return np.concatenate([matrix[i : i + 256].astype(np.float64) @ wide for i in chunks])


def open_image(photograph: Photograph) -> Image:
    """The photograph as it ships, RGB. Raises `BadInput` when it is not installed."""
    try:
        from importlib.resources import as_file, files

        import PIL.Image

        shipped = files("skimage") / "data" / photograph.file
        with as_file(shipped) as path, PIL.Image.open(path) as file:
            return file.convert("RGB")
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise BadInput(
            f"the demo needs the photographs of scikit-image ({error}): "
            "pip install 'polarlambda[report]'"
        ) from error


def _windows(photograph: Photograph) -> np.ndarray[Any, Any]:
    """All patches on the grid as a view (height, width, 64, 64, 3) of the enlarged photograph."""
    import numpy as np
    from PIL.Image import Resampling

    image = open_image(photograph)
    size = (image.width * photograph.enlarge, image.height * photograph.enlarge)
    pixels = np.asarray(image.resize(size, Resampling.BICUBIC))
    view = np.lib.stride_tricks.sliding_window_view(pixels, (PATCH, PATCH, 3))
    return view[:: photograph.step, :: photograph.step, 0]
