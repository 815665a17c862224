"""Starts, watches and kills the processes of one function's environments, through its zygote."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from polarlambda.local.errors import LocalStackError

ZYGOTE = Path(__file__).with_name("zygote.py")


@dataclass
class Process:
    """One environment's process; ``ended`` resolves to its exit status (negative for a signal)."""

    number: int
    started: asyncio.Future[int]
    ended: asyncio.Future[int]


class Launcher:
    """``spawn``: start every environment from nothing instead of forking the warm zygote."""

    def __init__(self, path: list[Path], threads: int, log: Path, *, spawn: bool) -> None:
        self._path = [str(folder) for folder in path]
        self._threads = threads
        self._log = log
        self._spawn = spawn
        self._processes: dict[int, Process] = {}
        self._zygote: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the zygote and wait until its imports are done (0.5-1 s; nothing to wait for
        with spawn).
        """
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        settings = {"path": self._path, "preload": not self._spawn, "control": theirs.fileno()}
        # BLAS reads the number of threads when NumPy is imported, which is before the fork
        threads = {
            "OMP_NUM_THREADS": str(self._threads),
            "OPENBLAS_NUM_THREADS": str(self._threads),
        }
        with self._log.open("ab") as log:
            self._zygote = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(ZYGOTE), json.dumps(settings)),
                env={"PATH": os.environ.get("PATH", ""), **({} if self._spawn else threads)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
            )
        theirs.close()
        reader, self._writer = await asyncio.open_connection(sock=ours)
        ready: asyncio.Future[int] = loop.create_future()
        self._reading = loop.create_task(self._read(reader, ready))
        await ready

    def launch(
        self, number: int, *, environ: dict[str, str], handler: str, task: Path, log: Path
    ) -> Process:
        """Have one environment's process started; its ``started`` resolves to the pid. Raises
        LocalStackError when the zygote is gone.
        """
        if self._reading is None or self._reading.done():
            raise self._gone()
        loop = asyncio.get_running_loop()
        process = Process(number, loop.create_future(), loop.create_future())
        self._processes[number] = process
        self._send(
            {
                "start": number,
                "environ": environ,
                "handler": handler,
                "task": str(task),
                "log": str(log),
            }
        )
        return process

    async def kill(self, process: Process) -> None:
        """SIGKILL to the process and all it started; returns when it has been reaped."""
        if not process.ended.done():
            self._send({"kill": process.number})
        await asyncio.shield(process.ended)

    async def close(self) -> None:
        """End the zygote and with it every environment."""
        if self._zygote is None:
            return
        self._writer.close()
        try:
            await asyncio.wait_for(self._zygote.wait(), 5)
        except TimeoutError:
            self._zygote.kill()
            await self._zygote.wait()

    def _send(self, message: dict[str, object]) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def _read(self, reader: asyncio.StreamReader, ready: asyncio.Future[int]) -> None:
        while line := await reader.readline():
            message = json.loads(line)
            if "ready" in message:
                ready.set_result(message["ready"])
            elif "started" in message:
                self._processes[message["started"]].started.set_result(message["pid"])
            else:
                self._processes.pop(message["ended"]).ended.set_result(message["status"])
        if not ready.done():
            ready.set_exception(self._gone())
        for process in self._processes.values():
            if not process.started.done():
                process.started.set_exception(self._gone())
            process.ended.set_result(-9)

    def _gone(self) -> LocalStackError:
        return LocalStackError(f"the process that starts environments has ended; see {self._log}")
