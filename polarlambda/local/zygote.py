"""The process from which a function's environments are forked. Run as a script, on the standard
library alone.

    python -I -S zygote.py '{"path": [...], "preload": true, "control": 5}'

It has imported the artifact's own NumPy and botocore and keeps botocore's parsed service models, so
that an environment starts in about a tenth of the CPU time: with 64 environments on 2 cores that is
the difference between a second or two and half a minute. awslambdaric and the function's
own code are imported after the fork, by each environment for itself. ``preload`` false is the
spawn mode: fork and exec, nothing is shared.

``-I -S`` and ``path`` keep the service's site-packages out of reach: an environment sees the
artifact and what the Lambda runtime brings (awslambdaric, boto3), as on AWS. A package that the
artifact forgot is missing here too.

Control socket, one JSON object a line. In: {"start": number, "environ": {...}, "log": path,
"handler": "a.b.handler", "task": folder} and {"kill": number}. Out: {"started": number, "pid":
pid} and {"ended": number, "status": exit code, negative for a signal}. The end of the socket
ends the zygote and all its environments.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import selectors
import signal
import socket
import sys
import time


def main() -> None:
    """Be a zygote, or (the second half of a spawn) one environment."""
    settings = json.loads(sys.argv[1])
    sys.path[:0] = settings["path"]
    if "environment" in settings:
        become_environment(settings["environment"])
    if settings["preload"]:
        preload()
    Zygote(socket.socket(fileno=settings["control"]), settings).serve()


def preload() -> None:
    """Import what every environment needs, and fill a cache of botocore's JSON models."""
    if importlib.util.find_spec("numpy"):
        import numpy  # noqa: F401
    if importlib.util.find_spec("botocore"):
        import botocore.session
        from botocore.loaders import JSONFileLoader

        load = JSONFileLoader.load_file
        models: dict[str, object] = {}

        def load_once(self: object, path: str) -> object:
            if models.get(path) is None:
                models[path] = load(self, path)  # type: ignore[arg-type]
            return models[path]

        JSONFileLoader.load_file = load_once  # type: ignore[method-assign,assignment]
        for service in ("s3", "lambda"):  # making a client imports and loads all that it needs
            botocore.session.get_session().create_client(
                service,
                region_name="us-east-1",
                endpoint_url="http://localhost",
                aws_access_key_id="local",
                aws_secret_access_key="local",
            )
    gc.collect()
    gc.freeze()  # keeps the shared pages shared: the children's collector does not touch them


class Zygote:
    """Single-threaded on purpose: forking needs that, and children that notice its death."""

    def __init__(self, control: socket.socket, settings: dict[str, object]) -> None:
        self.control = control
        self.settings = settings
        self.pids: dict[int, int] = {}  # environment number -> pid, until it has been reaped
        self.pending = b""

    def serve(self) -> None:
        """Obey the control socket until it ends."""
        wake_read, wake_write = socket.socketpair()
        wake_read.setblocking(False)
        wake_write.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write.fileno(), warn_on_full_buffer=False)
        selector = selectors.DefaultSelector()
        selector.register(self.control, selectors.EVENT_READ)
        selector.register(wake_read, selectors.EVENT_READ)
        self.send({"ready": os.getpid()})
        while True:
            for key, _ in selector.select():
                if key.fileobj is wake_read:
                    with contextlib.suppress(BlockingIOError):
                        wake_read.recv(4096)
                    self.reap()
                elif not self.read_commands():
                    for number in list(self.pids):
                        self.kill(number)
                    return

    def send(self, message: dict[str, object]) -> None:
        """Tell the service."""
        with contextlib.suppress(OSError):  # the service is gone: the next read tells
            self.control.sendall(json.dumps(message).encode() + b"\n")

    def read_commands(self) -> bool:
        """Obey what has come in; False when the socket has ended."""
        received = self.control.recv(1 << 16)
        if not received:
            return False
        *lines, self.pending = (self.pending + received).split(b"\n")
        for line in lines:
            command = json.loads(line)
            if "kill" in command:
                self.kill(command["kill"])
            else:
                self.start(command)
        return True

    def start(self, command: dict[str, object]) -> None:
        """Fork an environment."""
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self.child(command, parent)
        self.pids[int(str(command["start"]))] = pid
        self.send({"started": command["start"], "pid": pid})

    def child(self, command: dict[str, object], parent: int) -> None:
        """Become the environment, by exec when nothing is preloaded."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()  # its own process group: what the handler starts dies with it
            die_with_parent(parent)
            if self.settings["preload"]:
                self.control.close()
                become_environment(command)
            settings = {"path": self.settings["path"], "environment": command}
            script = [sys.executable, "-I", "-S", __file__, json.dumps(settings)]
            os.execve(sys.executable, script, dict(os.environ))
        finally:
            os._exit(70)

    def kill(self, number: int) -> None:
        """SIGKILL to an environment and to what its handler has started."""
        if number in self.pids:  # not reaped yet, so the pid is still ours
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pids[number], signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pids[number], signal.SIGKILL)  # before its setsid there is no group

    def reap(self) -> None:
        """Collect and report the environments that have ended."""
        for number, pid in list(self.pids.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            self.kill(number)  # what it started, while its group's id cannot be anyone else's
            _, status = os.waitpid(pid, 0)
            del self.pids[number]
            self.send({"ended": number, "status": os.waitstatus_to_exitcode(status)})


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Signal ``number`` for this process when its parent ends (Linux; elsewhere it ends at its next
    Runtime API call).
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, number)  # 1 = PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(70)


def become_environment(command: dict[str, object]) -> None:
    """Turn this process into an execution environment of Lambda; does not return."""
    status = 70
    try:
        log = os.open(str(command["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.clear()
        os.environ.update(command["environ"])  # type: ignore[call-overload]
        time.tzset()
        os.chdir(str(command["task"]))
        sys.argv = ["bootstrap", str(command["handler"])]
        from awslambdaric.__main__ import main as bootstrap  # type: ignore[import-untyped]

        bootstrap(sys.argv)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - the last frame of this process
        import traceback

        traceback.print_exc()
        status = 1
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
