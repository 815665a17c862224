"""Source matrix -> coded blocks in a bucket. See `encoder.pipeline.encode`."""

from __future__ import annotations

from encoder.derived import derived_shape
from encoder.errors import (
    EncodeError,
    MemoryTooSmall,
    NameTaken,
    SourceChanged,
    SourceRefused,
    SpoolTooSmall,
    SubtasksRefused,
)
from encoder.pipeline import encode
from encoder.planning import spool_folder
from encoder.progress import EncodeProgress
from encoder.shares import check_subtasks
from encoder.sources import Source, SourceOptions, open_source

__all__ = [
    "EncodeError",
    "EncodeProgress",
    "MemoryTooSmall",
    "NameTaken",
    "Source",
    "SourceChanged",
    "SourceOptions",
    "SourceRefused",
    "SpoolTooSmall",
    "SubtasksRefused",
    "check_subtasks",
    "derived_shape",
    "encode",
    "open_source",
    "spool_folder",
]
