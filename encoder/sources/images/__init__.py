"""Images as rows of a matrix: a folder, or WebDataset shards, of JPEG and PNG files."""

from __future__ import annotations

from encoder.sources.images.source import ImageSource

__all__ = ["ImageSource"]
