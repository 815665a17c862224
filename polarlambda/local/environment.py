"""One execution environment: a process that runs the function within its time and its memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polarlambda.local.launcher import Launcher, Process
from polarlambda.local.runtime_api import OVERSIZE, Call, RuntimeApi
from polarlambda.local.template import FunctionConfig

INIT_LIMIT = 60.0  # seconds; AWS allows 10, but there 64 environments do not share two cores
_WATCH_INTERVAL = 0.1  # seconds between two looks at the memory of a running handler


@dataclass(frozen=True)
class Outcome:
    """How an invocation ended.

    ``kind``: answered; error (the handler raised, or initialisation failed); timeout; memory;
    exit (the process ended by itself); failed (killed by the chaos settings); drained.
    ``payload`` is the answer or the error as JSON.
    """

    kind: str
    payload: bytes
    error_type: str | None = None


def failure(kind: str, error_type: str, request_id: str, message: str) -> Outcome:
    """An error of the platform's own, worded as Lambda words it."""
    text = f"RequestId: {request_id} Error: {message}"
    body = json.dumps({"errorType": error_type, "errorMessage": text}).encode()
    return Outcome(kind, body, error_type)


class Environment:
    """``peak_memory`` is the largest resident size so far in bytes; ``used``: not its first
    invocation any more.
    """

    def __init__(
        self, number: int, function: FunctionConfig, launcher: Launcher, log: Path
    ) -> None:
        self.number = number
        self.log = log
        self.used = False
        self.init_ms = 0.0
        self.peak_memory = 0
        self._function = function
        self._launcher = launcher
        self._api = RuntimeApi()
        self._process: Process | None = None
        self._pid = 0
        self._killed = False

    @property
    def alive(self) -> bool:
        """False: its process is gone, or about to be."""
        return not self._killed and self._process is not None and not self._process.ended.done()

    async def start(self, environ: dict[str, str], task: Path) -> Outcome | None:
        """Start the process and wait for its imports; an Outcome says why they failed."""
        started = time.monotonic()
        api = await self._api.start()
        self._process = process = self._launcher.launch(
            self.number,
            environ={**environ, "AWS_LAMBDA_RUNTIME_API": api},
            handler=self._function.handler,
            task=task,
            log=self.log,
        )
        self._pid = await process.started
        initialised = self._api.initialised
        await _first(initialised, process.ended, timeout=INIT_LIMIT)
        self.init_ms = (time.monotonic() - started) * 1000
        self._note_memory()
        if initialised.done() and initialised.result() is None:
            return None
        await self.kill()
        if initialised.done() and (error := initialised.result()) is not None:
            return Outcome("error", error.payload, error.error_type)
        if process.ended.result() == -9:
            return failure("timeout", "Sandbox.Timedout", "init", "initialisation took too long")
        return failure("exit", "Runtime.ExitError", "init", _exit_message(process.ended.result()))

    async def run(self, call: Call, deadline: float) -> Outcome:
        """Run the handler on ``call`` until ``deadline`` (loop time), within the memory limit."""
        assert self._process is not None
        loop = asyncio.get_running_loop()
        answer = loop.create_task(self._api.invoke(call))
        ended = self._process.ended
        try:
            while not answer.done() and not ended.done() and (left := deadline - loop.time()) > 0:
                await _first(answer, ended, timeout=min(left, _WATCH_INTERVAL))
                if self._note_memory() > self._function.memory << 20:
                    return await self._out_of_memory(call)
            if answer.done():
                result = answer.result()
                if result.error_type == OVERSIZE:
                    await self.kill()  # the runtime does not survive the refusal of its answer
                kind = "answered" if result.error_type is None else "error"
                return Outcome(kind, result.payload, result.error_type)
            if ended.done():
                self._api.close()
                message = _exit_message(ended.result())
                return failure("exit", "Runtime.ExitError", call.request_id, message)
            return await self.time_out(call)
        finally:
            answer.cancel()

    async def time_out(self, call: Call) -> Outcome:
        """End the process because its time is up."""
        await self.kill()
        message = f"Task timed out after {self._function.timeout:.2f} seconds"
        return failure("timeout", "Sandbox.Timedout", call.request_id, message)

    async def fail(self, call: Call) -> Outcome:
        """Die without an answer: the chaos settings chose this worker."""
        await self.kill()
        return failure("failed", "Runtime.ExitError", call.request_id, _exit_message(-9))

    async def kill(self) -> None:
        """End the process; returns when it is gone."""
        self._killed = True
        if self._process is not None:
            await self._launcher.kill(self._process)
        self._api.close()

    async def _out_of_memory(self, call: Call) -> Outcome:
        await self.kill()
        return failure("memory", "Runtime.ExitError", call.request_id, _exit_message(-9))

    def _note_memory(self) -> int:
        """Largest resident size so far, from /proc (where there is none: 0, and no limit)."""
        with contextlib.suppress(OSError, ValueError):
            for line in Path(f"/proc/{self._pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    self.peak_memory = max(self.peak_memory, int(line.split()[1]) << 10)
        return self.peak_memory


async def _first(*futures: asyncio.Future[Any], timeout: float) -> None:
    """Wait until one of ``futures`` is done."""
    await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)


def _exit_message(status: int) -> str:
    if status < 0:
        reason = "signal: killed" if status == -9 else f"signal: {-status}"
    else:
        reason = f"exit status {status}"
    return f"Runtime exited with error: {reason}"
