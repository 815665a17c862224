"""The environments of one function: started when none is idle, reused warm, replaced when dead."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections import deque
from pathlib import Path

from polarlambda.local.environment import Environment, Outcome, failure
from polarlambda.local.errors import LocalStackError
from polarlambda.local.launcher import Launcher
from polarlambda.local.template import REGION, FunctionConfig


class InitError(Exception):
    """An environment did not come up; ``outcome`` is what the caller of the function is told."""

    def __init__(self, environment: Environment, outcome: Outcome) -> None:
        super().__init__(outcome.error_type)
        self.environment = environment
        self.outcome = outcome


class EnvironmentPool:
    """``acquire`` and ``release`` environments. Whoever finds none idle has one started and
    takes whichever comes first, the new one or one that another invocation gives back (as Lambda
    does).
    """

    def __init__(
        self,
        function: FunctionConfig,
        *,
        artifact: Path,
        runtime: Path,
        logs: Path,
        endpoints: dict[str, str],
        starting: asyncio.Semaphore,
        spawn: bool,
    ) -> None:
        self.function = function
        self._artifact = artifact
        self._logs = logs / function.name
        self._logs.mkdir(parents=True, exist_ok=True)
        self._endpoints = endpoints
        self._starting = starting  # of all pools: more starts than cores at a time help nobody
        self._launcher = Launcher(
            [artifact, runtime],
            math.ceil(function.memory / 1769),  # 1,769 MB buy one vCPU
            self._logs / "zygote.log",
            spawn=spawn,
        )
        self._idle: list[Environment] = []
        self._waiting: deque[asyncio.Future[Environment]] = deque()
        self._started = 0
        self._opening: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Begin to import what the environments will share; the first of them waits for it."""
        self._opening = asyncio.get_running_loop().create_task(self._launcher.start())

    async def close(self) -> None:
        """End every environment."""
        if self._opening is not None:
            await asyncio.wait({self._opening})
        for task in self._tasks:
            task.cancel()
        await self._launcher.close()

    async def acquire(self) -> Environment:
        """An initialised environment; raises InitError."""
        while self._idle:
            environment = self._idle.pop()  # the last one used: its caches are the warmest
            if environment.alive:
                return environment
        turn: asyncio.Future[Environment] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._start_one()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release(turn.result())
            raise

    def release(self, environment: Environment) -> None:
        """Give back an environment; a dead one is forgotten."""
        if not environment.alive:
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(environment)
                return
        self._idle.append(environment)

    async def warm(self, count: int) -> None:
        """Have ``count`` environments idle (provisioned concurrency); raises InitError."""
        taken: list[Environment] = []
        try:
            missing = count - len(self._idle)
            taken = list(await asyncio.gather(*(self._fresh() for _ in range(missing))))
        finally:
            for environment in taken:
                self.release(environment)

    def _start_one(self) -> None:
        async def start() -> None:
            try:
                environment = await self._fresh()
            except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
                self._refuse(error)
            else:
                self.release(environment)

        task = asyncio.get_running_loop().create_task(start())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _refuse(self, error: Exception) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(error)
                return

    async def _fresh(self) -> Environment:
        async with self._starting:
            self._started += 1
            number = self._started
            log = self._logs / f"{number:04d}.log"
            environment = Environment(number, self.function, self._launcher, log)
            try:
                assert self._opening is not None
                await asyncio.shield(self._opening)
                failed = await environment.start(self._environ(log), self._artifact)
            except LocalStackError as error:
                failed = failure("exit", "Runtime.ExitError", "init", str(error))
        if failed is not None:
            raise InitError(environment, failed)
        return environment

    def _environ(self, log: Path) -> dict[str, str]:
        """What a handler finds in its environment on AWS, and the endpoints of this stack."""
        scratch = log.with_suffix(".tmp")
        scratch.mkdir(exist_ok=True)
        return {
            **self.function.environment,
            **self._endpoints,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info[0]}.{sys.version_info[1]}",
            "AWS_LAMBDA_FUNCTION_NAME": self.function.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self.function.memory),
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{self.function.name}",
            "AWS_LAMBDA_LOG_STREAM_NAME": log.stem,
            "LAMBDA_TASK_ROOT": str(self._artifact),
            "_HANDLER": self.function.handler,
            "LANG": "en_US.UTF-8",
            "PATH": os.environ.get("PATH", ""),
            "TMPDIR": str(scratch),
            "TZ": ":UTC",
        }
