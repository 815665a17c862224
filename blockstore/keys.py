"""Every key of the bucket, and the rules for the names inside them.

    matrices/<name>/manifest.json
    matrices/<name>/coded/<encoding>/<block, 5 digits>/<tile, 4 digits>.npy
    matrices/<name>/coded/<encoding>/encode.json while functions encode it
    matrices/<name>/coded/<encoding>/labels.npy, names.txt, images.json of a matrix of images
    runs/<run>/run.json, x.npy, status.json, estimate.npy, result.npy, report.json, report.html
    runs/<run>/asked.npy, the x that was asked for where x.npy is its difference to a reference's
    runs/<run>/results/<worker, 5 digits>.npy, or <worker>.<first>-<last>.npy of several tasks
    runs/<run>/errors/<worker, 5 digits>.<attempt>.json
    runs/<run>/stop.<attempt>
    trainings/<training>/...: see `blockstore.training_keys`
    sessions/<session>/latest.json

Keys are functions of names and numbers only, so that a worker that runs twice writes the same
object twice, and two readers never disagree on where something is.
"""

from __future__ import annotations

import re

from blockstore.errors import NameRefused

MATRICES = "matrices/"
RUNS = "runs/"
INPUTS = "inputs/"
SESSIONS = "sessions/"

MAX_NAME = 100
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.+=@-]*[A-Za-z0-9_+=@-])?")
_RUN = re.compile(r"[0-9a-hjkmnp-tv-z]{26}")
_ENCODING = re.compile(r"[0-9a-f]{16}")
_TILE = re.compile(r"matrices/[^/]+/coded/[^/]+/(\d{5,})/(\d{4,})\.npy")
_RESULT = re.compile(r"runs/[^/]+/results/(\d{5,})\.npy")
_PART = re.compile(r"runs/[^/]+/results/(\d{5,})\.(\d+)-(\d+)\.npy")
_ERROR = re.compile(r"runs/[^/]+/errors/(\d{5,})\.(\d+)\.json")
_BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford: no i, l, o, u; sorts like the number


def validate_name(name: str) -> str:
    """Return `name` if S3 keys, listings and shells all keep it as it is, else raise `NameRefused`.

    Rule: 1 to 100 of the characters A-Z a-z 0-9 _ . + = @ -, neither beginning with a dot or
    a punctuation mark nor ending with a dot, and without "..". The error suggests a name.
    """
    reason = _name_problem(name)
    if reason is None:
        return name
    raise NameRefused(f"matrix name {name!r}: {reason}. Try {_suggest_name(name)!r}.")


def _name_problem(name: object) -> str | None:
    if not isinstance(name, str):
        return f"must be text, not {type(name).__name__}"
    if not name:
        return "must not be empty"
    if len(name) > MAX_NAME:
        return f"must have at most {MAX_NAME} characters, it has {len(name)}"
    if "/" in name or "\\" in name:
        return "must not contain slashes, which cut S3 keys into folders"
    if ".." in name:
        return "must not contain '..', which path handling removes"
    if name != name.strip(". \t\r\n"):
        return "must not begin or end with a dot or white space, which tools strip"
    if not name.isascii():
        return "must be plain ASCII, because S3 listings encode other letters in several ways"
    if not name.isprintable():
        return "must not contain control characters, which S3 listings cannot return"
    if not _NAME.fullmatch(name):
        return (
            "may contain only letters, digits and _ . + = @ -, and must begin with a letter, "
            "a digit or _"
        )
    return None


def _suggest_name(name: object) -> str:
    words = re.sub(r"[^A-Za-z0-9_.+=@-]+", "-", str(name))
    words = re.sub(r"\.{2,}", ".", words).lstrip(".+=@-")[:MAX_NAME].rstrip(".-")
    return words or "my-matrix"


def temporary_name(run: str, side: str) -> str:
    """Name of an encoding that is made for one run alone; `side` is "a" or "b"."""
    return f"run-{run}-{side}"


def matrix_prefix(name: str) -> str:
    """Prefix of everything of a matrix."""
    return f"{MATRICES}{name}/"


def manifest_key(name: str) -> str:
    """Key of a matrix's manifest."""
    return f"{MATRICES}{name}/manifest.json"


def coded_prefix(name: str, encoding: str | None = None) -> str:
    """Prefix of all coded tiles of a matrix, or of those of one encoding id."""
    return f"{MATRICES}{name}/coded/" + (f"{encoding}/" if encoding else "")


def tile_key(name: str, encoding: str, block: int, tile: int) -> str:
    """Key of one tile of a coded block (the worker's number where each worker has one block)."""
    return f"{MATRICES}{name}/coded/{encoding}/{block:05d}/{tile:04d}.npy"


def companion_key(name: str, encoding: str, companion: str) -> str:
    """Key of a small file that belongs to the rows of a matrix, such as "labels.npy"."""
    return f"{MATRICES}{name}/coded/{encoding}/{companion}"


def encode_job_key(name: str, encoding: str) -> str:
    """Key of what functions that encode a matrix need to know, there while they do."""
    return f"{MATRICES}{name}/coded/{encoding}/encode.json"


def parse_tile_key(key: str) -> tuple[int, int]:
    """(block, tile) of a coded tile; ValueError if it is not the key of one."""
    match = _TILE.fullmatch(key)
    if match is None:
        raise ValueError(f"{key!r} is not the key of a coded tile")
    return int(match[1]), int(match[2])


def validate_encoding(encoding: str) -> str:
    """Return `encoding` if it is an encoding id (16 lower-case hex digits)."""
    if not _ENCODING.fullmatch(str(encoding)):
        raise NameRefused(f"encoding id {encoding!r}: must be 16 lower-case hex digits")
    return encoding


def new_run_id(now_ms: int, entropy: bytes) -> str:
    """A run id that sorts by time: 48 bits of milliseconds, then 80 random bits, in base 32.

    Parameters
    ----------
    now_ms : milliseconds since 1970, below 2**48
    entropy : at least 10 random bytes; the first 10 are used
    """
    if not 0 <= now_ms < 1 << 48:
        raise ValueError(f"now_ms must be in [0, 2**48), got {now_ms}")
    if len(entropy) < 10:
        raise ValueError(f"entropy must hold at least 10 bytes, got {len(entropy)}")
    number = now_ms << 80 | int.from_bytes(entropy[:10], "big")
    return "".join(_BASE32[number >> shift & 31] for shift in range(125, -1, -5))


def validate_run(run: str) -> str:
    """Return `run` if it is a run id (26 characters of base 32), else raise `NameRefused`."""
    if not _RUN.fullmatch(str(run)):
        raise NameRefused(
            f"run id {run!r}: must be the 26 characters that `multiply` printed; "
            "`polarlambda runs list` shows them"
        )
    return run


def is_run(name: str) -> bool:
    """Whether a folder below runs/ is that of a run."""
    return _RUN.fullmatch(name) is not None


def run_prefix(run: str) -> str:
    """Prefix of everything of a run."""
    return f"{RUNS}{run}/"


def run_key(run: str) -> str:
    """Key of what was asked."""
    return f"{RUNS}{run}/run.json"


def x_key(run: str) -> str:
    """Key of the vector or matrix to multiply by."""
    return f"{RUNS}{run}/x.npy"


def asked_key(run: str) -> str:
    """Key of the x that was asked for, in a run whose `x_key` has a difference."""
    return f"{RUNS}{run}/asked.npy"


def results_prefix(run: str) -> str:
    """Prefix of the workers' answers."""
    return f"{RUNS}{run}/results/"


def result_key(run: str, worker: int) -> str:
    """Key of a worker's answer."""
    return f"{RUNS}{run}/results/{worker:05d}.npy"


def parse_result_key(key: str) -> int:
    """The worker whose result lies at `key`; ValueError if it is not a result key."""
    match = _RESULT.fullmatch(key)
    if match is None:
        raise ValueError(f"{key!r} is not a result key")
    return int(match[1])


def part_key(run: str, worker: int, first: int, last: int) -> str:
    """Key of a worker's answers to its tasks `first` to `last`, both included."""
    return f"{RUNS}{run}/results/{worker:05d}.{first}-{last}.npy"


def parse_part_key(key: str) -> tuple[int, int, int]:
    """(worker, first, last) of a `part_key`; ValueError if it is not one."""
    match = _PART.fullmatch(key)
    if match is None:
        raise ValueError(f"{key!r} is not the key of some tasks' results")
    return int(match[1]), int(match[2]), int(match[3])


def errors_prefix(run: str) -> str:
    """Prefix of the workers' error records."""
    return f"{RUNS}{run}/errors/"


def error_key(run: str, worker: int, attempt: int) -> str:
    """Key of the error record of a worker's attempt."""
    return f"{RUNS}{run}/errors/{worker:05d}.{attempt}.json"


def parse_error_key(key: str) -> tuple[int, int]:
    """(worker, attempt) of an error record; ValueError if it is not the key of one."""
    match = _ERROR.fullmatch(key)
    if match is None:
        raise ValueError(f"{key!r} is not the key of an error record")
    return int(match[1]), int(match[2])


def stop_prefix(run: str) -> str:
    """Prefix of the stop markers of all attempts."""
    return f"{RUNS}{run}/stop."


def stop_key(run: str, attempt: int) -> str:
    """Key of an attempt's stop marker."""
    return f"{RUNS}{run}/stop.{attempt}"


def status_key(run: str) -> str:
    """Key of how far the run is."""
    return f"{RUNS}{run}/status.json"


def estimate_key(run: str) -> str:
    """Key of the latest published estimate."""
    return f"{RUNS}{run}/estimate.npy"


def final_result_key(run: str) -> str:
    """Key of the result."""
    return f"{RUNS}{run}/result.npy"


def report_key(run: str, kind: str) -> str:
    """Key of the report; `kind` is "json" or "html"."""
    return f"{RUNS}{run}/report.{kind}"


def validate_session(session: str) -> str:
    """Return `session` if it is a session's id, which has the form of a run's."""
    if not _RUN.fullmatch(str(session)):
        raise NameRefused(f"session id {session!r}: must be the 26 characters of Session.id")
    return session


def latest_key(session: str) -> str:
    """Key of the newest announcement to the resident workers of a session."""
    return f"{SESSIONS}{session}/latest.json"
