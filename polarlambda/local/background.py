"""A stack in the background: started by one command, used by others, stopped by a third.

    python -m polarlambda.local.background OPTIONS.json

is the process that owns the stack. It prints one JSON line when it is ready and writes
``.polarlambda/local.json``, where `find` looks; it removes that file when it ends.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from polarlambda.local.errors import LocalStackError, OptionRefused
from polarlambda.local.service import ADMIN
from polarlambda.local.stack import LocalStack

FOLDER = Path(".polarlambda")
_STATE = FOLDER / "local.json"
_LOG = FOLDER / "local.log"
_PATIENCE = 20.0  # seconds for a stack to stop


@dataclass(frozen=True)
class Background:
    """A stack that runs. ``folder`` holds its logs and its journal, and tells one stack from the
    next; ``warnings`` are those of its start.
    """

    pid: int
    folder: str
    environment: dict[str, str]
    warnings: list[str]


def find() -> Background | None:
    """The stack of this working directory; None when none runs (a file left by a dead one is
    removed).
    """
    try:
        state = Background(**json.loads(_STATE.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        _STATE.unlink(missing_ok=True)
        return None
    if _healthy(state):
        return state
    _STATE.unlink(missing_ok=True)
    return None


def start(options: dict[str, Any]) -> Background:
    """Start a stack that outlives this process; ``options`` are those of `LocalStack`."""
    if (running := find()) is not None:
        raise OptionRefused(
            f"a local stack is running here already (process {running.pid}): "
            "`polarlambda local stop` first, or use it as it is"
        )
    LocalStack(**options)  # refuses bad options here, where the user reads it
    FOLDER.mkdir(exist_ok=True)
    with _LOG.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "polarlambda.local.background", json.dumps(options)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    answer = json.loads(line) if line else {}
    if not line or "error" in answer:
        raise LocalStackError(
            answer.get("error", f"the local stack did not start; the reason is in {_LOG}")
        )
    return Background(**answer)


def stop(stack: Background) -> None:
    """End ``stack``; returns when it is gone."""
    os.kill(stack.pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while _healthy(stack) or _STATE.exists():
        if time.monotonic() > deadline:
            os.kill(stack.pid, signal.SIGKILL)  # its servers notice and end
            _STATE.unlink(missing_ok=True)
            return
        time.sleep(0.05)


def _healthy(state: Background) -> bool:
    """Whether the service at that address is this stack's, and not some later owner of the port."""
    address = state.environment["AWS_ENDPOINT_URL_LAMBDA"].removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=5)
    try:
        connection.request("GET", ADMIN + "health")
        return bool(json.loads(connection.getresponse().read())["folder"] == state.folder)
    except TimeoutError:
        return True  # busy
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _own(options: dict[str, Any]) -> None:
    """Keep a stack until SIGTERM, or until one of its servers ends."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        with LocalStack(**options) as stack:
            state = asdict(
                Background(os.getpid(), str(stack.folder), stack.environment, stack.warnings)
            )
            fresh = _STATE.with_suffix(".new")
            fresh.touch(mode=0o600)
            fresh.write_text(json.dumps(state))
            fresh.replace(_STATE)
            _announce(state)
            while stack.running and not ended.wait(1.0):
                pass
    except LocalStackError as error:
        _announce({"error": str(error)})
        sys.exit(1)
    finally:
        _STATE.unlink(missing_ok=True)


def _announce(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _own(json.loads(sys.argv[1]))
