"""The Lambda service's process: the API for clients, the environments, and ``/_local/`` for the
stack's owner.

    python -m polarlambda.local.service SETTINGS.json

Prints one JSON line with its address when it is ready, and ends with everything it started when
its standard input ends (so when its owner dies, however that happens) or at SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from polarlambda.local import http
from polarlambda.local.chaos import Chaos, ChaosSettings
from polarlambda.local.concurrency import Concurrency
from polarlambda.local.errors import LocalStackError, OptionRefused
from polarlambda.local.invoke_api import InvokeApi
from polarlambda.local.invoker import Invoker
from polarlambda.local.journal import Journal
from polarlambda.local.pool import EnvironmentPool, InitError
from polarlambda.local.residents import MARK
from polarlambda.local.template import FunctionConfig

ADMIN = "/_local/"


@dataclass(frozen=True)
class ServiceSettings:
    """What the service is told by the stack. ``artifacts`` by logical id; ``endpoint_s3`` a URL."""

    folder: str
    functions: list[dict[str, Any]]
    artifacts: dict[str, str]
    runtime: str
    endpoint_s3: str
    chaos: dict[str, Any]
    spawn: bool
    account_concurrency: int
    retry_delay: float

    def write(self, path: Path) -> None:
        """As JSON, for the service's process."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> ServiceSettings:
        """What `write` wrote."""
        return cls(**json.loads(path.read_text()))


class Service:
    """The pools, the invoker and the two APIs in front of them."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._functions = [FunctionConfig(**function) for function in settings.functions]
        self._journal = Journal(Path(settings.folder) / "invocations.jsonl")
        self._invoker = Invoker(
            Concurrency(settings.account_concurrency, self._functions),
            Chaos(ChaosSettings(**settings.chaos)),
            self._journal,
            retry_delay=settings.retry_delay,
            mark=Path(settings.folder) / MARK,
        )
        self._pools: dict[str, EnvironmentPool] = {}
        self._api = InvokeApi(self._pools, self._invoker)

    async def start(self) -> str:
        """Listen; returns ``host:port``. The functions' imports go on in the background."""
        server = await http.serve(self._handle)
        address = self._invoker.residents.address = http.address(server)
        endpoints = {
            "AWS_ENDPOINT_URL_S3": self._settings.endpoint_s3,
            "AWS_ENDPOINT_URL_LAMBDA": f"http://{address}",
        }
        starting = asyncio.Semaphore(2 * (os.cpu_count() or 1))
        for function in self._functions:
            pool = self._pools[function.name] = EnvironmentPool(
                function,
                artifact=Path(self._settings.artifacts[function.logical_id]),
                runtime=Path(self._settings.runtime),
                logs=Path(self._settings.folder) / "logs",
                endpoints=endpoints,
                starting=starting,
                spawn=self._settings.spawn,
            )
            pool.open()
        return address

    async def close(self) -> None:
        """End every environment."""
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))
        self._journal.close()

    async def _handle(self, request: http.Request) -> http.Response:
        try:
            if request.path.startswith(ADMIN):
                return await self._admin(request)
            return await self._api.handle(request)
        except Exception as error:  # noqa: BLE001 - a bug of ours must answer 500, not hang the client
            traceback.print_exc()
            body = {"Type": "Service", "Message": f"{type(error).__name__}: {error}"}
            return http.json_response(500, body, {"x-amzn-ErrorType": "ServiceException"})

    async def _admin(self, request: http.Request) -> http.Response:
        action = request.path.removeprefix(ADMIN)
        options = json.loads(request.body or b"{}")
        try:
            if action == "health":
                return http.json_response(
                    200, {"folder": self._settings.folder, **self._invoker.activity()}
                )
            if action == "drain":
                count = await self._invoker.drain(wait=options.get("wait", True))
                return http.json_response(200, {"drained": count})
            if action == "answer":  # a resident's, on its way into the store
                kept = await self._invoker.residents.admit(options["key"], self._invoker.chaos)
                return http.json_response(200, {"kept": kept})
            if action == "warm":
                await self._warm(options["function"], options["count"])
                return http.json_response(200, {})
            if action == "chaos":
                self._invoker.chaos = Chaos(ChaosSettings(**options))
                self._invoker.residents.show(self._invoker.chaos)
                return http.json_response(200, {})
        except (OptionRefused, InitError) as error:
            return http.json_response(400, {"message": str(error)})
        return http.json_response(404, {"message": f"no such action: {action}"})

    async def _warm(self, name: str, count: int) -> None:
        if name not in self._pools:
            raise OptionRefused(f"no function {name!r}; there are: {', '.join(self._pools)}")
        await self._pools[name].warm(count)


def _announce(message: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def _serve(settings: ServiceSettings) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def stop_at_end() -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            stop.set()

    loop.add_reader(sys.stdin.fileno(), stop_at_end)
    service = Service(settings)
    try:
        address = await service.start()
        _announce({"address": address})
        await stop.wait()
    finally:
        await service.close()


def main() -> None:
    """Serve until told to stop; a reason for not starting is announced, not raised."""
    try:
        asyncio.run(_serve(ServiceSettings.read(Path(sys.argv[1]))))
    except LocalStackError as error:
        _announce({"error": str(error)})
        sys.exit(1)


if __name__ == "__main__":
    main()
