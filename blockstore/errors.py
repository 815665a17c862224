"""Typed errors of the store.

Only `ObjectMissing` of a coded tile or of a result may be read as an erasure. Everything else is a
fault that is shown: a denied request, a body that does not match its length, a bucket that is not
there.
"""

from __future__ import annotations


class StoreError(Exception):
    """Base of every error that the store raises."""


class BucketMissing(StoreError):
    """The bucket does not exist."""


class AccessDenied(StoreError):
    """S3 refused the request: the caller's policy does not allow it."""


class CredentialsMissing(StoreError):
    """No AWS credentials were found, or S3 does not accept those that were."""


class ObjectMissing(StoreError):
    """There is no object at the key."""


class UploadMissing(ObjectMissing):
    """There is no such upload in parts (any more): it was finished or aborted."""


class MatrixMissing(ObjectMissing):
    """There is no manifest of that name, hence no usable matrix."""


class CorruptObject(StoreError):
    """The object is not what it should be: cut short, wrong checksum, shape, dtype or JSON."""


class ManifestError(CorruptObject):
    """A manifest is not valid: the message names the field, the rule and the value."""


class RunRecordError(CorruptObject):
    """A JSON record of a run is not valid: the message names the field, the rule and the value."""


class ObjectChanged(StoreError):
    """The object was replaced while it was being read (its ETag differs)."""


class ObjectUnchanged(StoreError):
    """The object still has the ETag that the caller knows: there is nothing new to read."""


class StoreUnavailable(StoreError):
    """S3 could not be reached, or kept answering that it cannot serve the request now."""


class NameRefused(ValueError):
    """A name that S3 keys or listings would mangle."""


class ArrayRefused(ValueError):
    """Not a real numeric array in .npy form: the message says which rule it breaks."""


class TaskRefused(ValueError):
    """A worker event that is not a valid task: the message names the field."""
