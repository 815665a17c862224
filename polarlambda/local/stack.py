"""The local stack as a context manager: two server processes, a bucket, and the variables that
point boto3 there.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import shutil
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from polarlambda.local.artifact import Artifact, Build, link_runtime, provide, stale_files
from polarlambda.local.chaos import Chaos, ChaosSettings
from polarlambda.local.errors import LocalStackError, OptionRefused
from polarlambda.local.gather import gather
from polarlambda.local.journal import Invocation, read_journal
from polarlambda.local.server import ServerProcess
from polarlambda.local.service import ADMIN, ServiceSettings
from polarlambda.local.template import REGION, FunctionConfig

_LOG = logging.getLogger("polarlambda.local")
_VARIABLES = {
    "WorkerFunction": "POLARLAMBDA_WORKER",
    "CoordinatorFunction": "POLARLAMBDA_COORDINATOR",
    "EncodeFunction": "POLARLAMBDA_ENCODE",
    "DecodeFunction": "POLARLAMBDA_DECODE",
    "DispatchFunction": "POLARLAMBDA_DISPATCH",
    "ObjectiveFunction": "POLARLAMBDA_OBJECTIVE",
}


class LocalStack:
    """S3 and Lambda on loopback; everything ends with the ``with`` block, or with this process.

    Parameters
    ----------
    template : path of template.yaml (default: that of the checkout this package is in, else of the
        working directory)
    parameters : values for the template's parameters instead of their defaults
    objective : folder of an objective (`scripts/new_objective.py`), whose function is there as
        well; parameters that begin with Objective are its template's
    delays, model, scale, fail, throttle, seed : see `chaos.ChaosSettings`
    spawn : start every environment from nothing (ten times the CPU time) instead of forking it
    build : "absent" builds an artifact that is not there, "stale" also one that differs from the
        sources, "always" all
    account_concurrency : concurrent invocations of all functions
    retry_delay : seconds before an asynchronous invocation is tried again (AWS: 60, then 120)
    s3_rate : bytes per second at which a worker reads its block; 0: as fast as loopback is

    Raises `OptionRefused`, `TemplateRefused`, `BuildFailed`, or their base `LocalStackError`,
    each in one line. Starting costs about a second with built artifacts.
    """

    def __init__(
        self,
        *,
        template: str | os.PathLike[str] | None = None,
        parameters: Mapping[str, str] | None = None,
        objective: str | os.PathLike[str] | None = None,
        delays: str | os.PathLike[str] | None = None,
        model: str | None = None,
        scale: float = 1.0,
        fail: int = 0,
        throttle: float = 0.0,
        seed: int = 0,
        spawn: bool = False,
        build: Build = "absent",
        account_concurrency: int = 1000,
        retry_delay: float = 1.0,
        s3_rate: float = 0.0,
    ) -> None:
        if account_concurrency < 1:
            raise OptionRefused(f"account_concurrency must be >= 1, not {account_concurrency}")
        self._template, self._roots = gather(template, parameters or {}, objective)
        self._chaos = _chaos(
            delays=delays, model=model, scale=scale, fail=fail, throttle=throttle, seed=seed
        )
        self._spawn = spawn
        self._build: Build = build
        self._account_concurrency = account_concurrency
        self._retry_delay = retry_delay
        self._s3_rate = s3_rate
        self._storage: ServerProcess | None = None
        self._service: ServerProcess | None = None
        self._artifacts: dict[str, Artifact] = {}
        self._ended: list[Invocation] = []
        self.folder = Path()
        self.warnings: list[str] = []  # what the user should know about this start
        self.endpoint_s3 = ""
        self.endpoint_lambda = ""

    @property
    def functions(self) -> dict[str, FunctionConfig]:
        """What the template says, by logical id."""
        return self._template.functions

    @property
    def bucket(self) -> str:
        """Name of the template's (first) bucket."""
        return next(iter(self._template.buckets.values()))

    @property
    def running(self) -> bool:
        """Whether both servers are up."""
        servers = (self._storage, self._service)
        return all(server is not None and server.running for server in servers)

    @property
    def environment(self) -> dict[str, str]:
        """The variables for a process that is to use this stack (to be laid over its own)."""
        names = {_VARIABLES[k]: f.name for k, f in self.functions.items() if k in _VARIABLES}
        bucket = {"POLARLAMBDA_BUCKET": self.bucket} if self._template.buckets else {}
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint_s3,
            "AWS_ENDPOINT_URL_LAMBDA": self.endpoint_lambda,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": REGION,
            "NO_PROXY": "localhost,127.0.0.1",
            **bucket,
            **names,
        }

    def start(self) -> None:
        """Build what is missing and start both servers; stops again by itself when that fails."""
        if self.folder != Path():
            raise LocalStackError("this local stack is running already: make another one")
        self.folder = Path(tempfile.mkdtemp(prefix="polarlambda-local-"))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process of the stack and remove its folder. May be called again."""
        for server in (self._service, self._storage):
            if server is not None:
                server.stop()
        self._service = self._storage = None
        while self._artifacts:
            self._artifacts.popitem()[1].close()
        if self.folder != Path():
            self._ended = read_journal(self.folder / "invocations.jsonl")
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = Path()

    def __enter__(self) -> LocalStack:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def invocations(self) -> list[Invocation]:
        """What has ended so far, in the order of the ends; still there after `stop`."""
        if self.folder == Path():
            return self._ended
        return read_journal(self.folder / "invocations.jsonl")

    def logs(self, logical_id: str) -> str:
        """All log lines of a function, environment by environment."""
        folder = self.folder / "logs" / self.functions[logical_id].name
        return "".join(path.read_text(errors="replace") for path in sorted(folder.glob("*.log")))

    def drain(self, *, wait: bool = True) -> int:
        """Between rounds: drop what is queued, wake what sleeps a delay (it ends without an
        answer, its environment stays warm), and wait until no handler runs. Returns how many
        were dropped or woken.
        """
        return int(self._admin("drain", {"wait": wait})["drained"])

    def activity(self) -> dict[str, int]:
        """Numbers of invocations now: queued, running (asleep or not), sleeping their delay."""
        answer = self._admin("health", {})
        return {key: int(answer[key]) for key in ("queued", "running", "sleeping")}

    def warm(self, logical_id: str, count: int) -> None:
        """Have ``count`` initialised environments idle before a measurement."""
        self._admin("warm", {"function": self.functions[logical_id].name, "count": count})

    def set_chaos(
        self,
        *,
        delays: str | os.PathLike[str] | None = None,
        model: str | None = None,
        scale: float = 1.0,
        fail: int = 0,
        throttle: float = 0.0,
        seed: int = 0,
    ) -> None:
        """Replace the delays and failures; the order of runs begins anew, so the next run has
        number 0.
        """
        settings = _chaos(
            delays=delays, model=model, scale=scale, fail=fail, throttle=throttle, seed=seed
        )
        self._admin("chaos", settings.to_json())

    def _start(self) -> None:
        for key, function in self.functions.items():
            root = self._roots[key]
            self._artifacts[key] = provide(root, key, self._build, function.runtime)
        self.warnings = _stale(self._roots, self._artifacts)
        for warning in self.warnings:
            _LOG.warning(warning)
        with socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
            self.endpoint_s3 = f"http://localhost:{listening.getsockname()[1]}"
            self._storage = ServerProcess(
                "polarlambda.local.storage",
                [str(listening.fileno()), str(self.folder), str(self._s3_rate)],
                log=self.folder / "storage.log",
                pass_fds=[listening.fileno()],
            )
        settings = ServiceSettings(
            folder=str(self.folder),
            functions=[asdict(function) for function in self.functions.values()],
            artifacts={key: str(built.folder) for key, built in self._artifacts.items()},
            runtime=str(link_runtime(self.folder / "runtime")),
            endpoint_s3=self.endpoint_s3,
            chaos=self._chaos.to_json(),
            spawn=self._spawn,
            account_concurrency=self._account_concurrency,
            retry_delay=self._retry_delay,
        )
        settings.write(self.folder / "service.json")
        self._service = ServerProcess(
            "polarlambda.local.service",
            [str(self.folder / "service.json")],
            log=self.folder / "service.log",
        )
        self._storage.ready()
        for bucket in self._template.buckets.values():
            _request(self.endpoint_s3, "PUT", f"/{bucket}")
        self.endpoint_lambda = f"http://{self._service.ready()['address']}"

    def _admin(self, action: str, options: dict[str, Any]) -> dict[str, Any]:
        if self._service is None:
            raise LocalStackError("the local stack is not running: use it as a context manager")
        return _request(self.endpoint_lambda, "POST", ADMIN + action, options)


def _chaos(*, delays: str | os.PathLike[str] | None, **options: Any) -> ChaosSettings:
    """Settings that are known to work: the file is there, the model exists."""
    path = None if delays is None else str(Path(delays).resolve())
    return Chaos(ChaosSettings(delays=path, **options)).settings


def _stale(roots: Mapping[str, Path], artifacts: dict[str, Artifact]) -> list[str]:
    warnings = []
    for logical_id, built in artifacts.items():
        if changed := stale_files(roots[logical_id], built.folder):
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            warnings.append(
                f"the artifact of {logical_id} is older than the sources ({changed[0]}{more}): "
                "the old code runs until you build again (--build)"
            )
    return warnings


def _request(endpoint: str, method: str, path: str, options: Any = None) -> dict[str, Any]:
    body = b"" if options is None else json.dumps(options).encode()
    connection = http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=600)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        answer = response.read()
    except OSError as error:
        raise LocalStackError(f"the local stack at {endpoint} does not answer: {error}") from None
    finally:
        connection.close()
    content = json.loads(answer) if answer.startswith(b"{") else {}
    if response.status >= 300:
        raise LocalStackError(content.get("message") or f"{method} {path}: HTTP {response.status}")
    return content
