"""Why a matrix is not encoded. All but `SourceChanged` are raised before anything is written."""

from __future__ import annotations


class EncodeError(ValueError):
    """Base of every refusal of the encoder."""


class SourceRefused(EncodeError):
    """The source is not a finite, real, two-dimensional array: the message says which rule."""


class SubtasksRefused(EncodeError):
    """The number of tasks for each worker does not fit the matrix, the code or the format."""


class NameTaken(EncodeError):
    """The name belongs to a matrix of other content or another code."""


class MemoryTooSmall(EncodeError):
    """The memory given does not suffice: the message names the number needed."""


class SpoolTooSmall(EncodeError):
    """The disk spool's folder has too little room: the message names the number needed."""


class SourceChanged(EncodeError):
    """The source changed between the pass that checked it and the pass that encoded it."""
