"""Starting, running a command, stopping: by every way of ending, and no process is left over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from polarlambda.local import LocalStack, LocalStackError
from tests.local.waiting import runs, wait_until

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from polarlambda.cli import main; main()", "local"]


def descendants(pid: int) -> set[int]:
    """All processes below ``pid``."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    found: set[int] = set()
    while more := {p for p, parent in parents.items() if parent in found | {pid}} - found:
        found |= more
    return found


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "tmp").mkdir()
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(tmp_path / "tmp"),
        "AWS_PROFILE": "a-real-account",
    }


@pytest.fixture
def local(
    toy_project: Path, tmp_path: Path, environ: dict[str, str]
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start ``polarlambda local ...`` with the toy functions, in a folder of its own."""
    started: list[subprocess.Popen[str]] = []

    def run(action: str, *arguments: str) -> subprocess.Popen[str]:
        options = ["--template", str(toy_project / "one.yaml")]
        process = subprocess.Popen(
            [*COMMAND, action, *(options if action in ("run", "start") else []), *arguments],
            cwd=tmp_path,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def leftovers(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "tmp").glob("polarlambda-local-*")]


def test_a_stopped_stack_leaves_nothing(toy_project: Path, new_client: Any) -> None:
    before = descendants(os.getpid())
    with LocalStack(template=toy_project / "one.yaml") as stack:
        response = new_client(stack).invoke(
            FunctionName="WorkerFunction", Payload=b'{"do": "fork"}'
        )
        pid = json.loads(response["Payload"].read())["child"]
        ours = descendants(os.getpid()) - before
        folder = stack.folder
        assert pid in ours
        assert len(ours) >= 5  # two servers, a zygote, an environment, its child
        assert stack.running
        with pytest.raises(LocalStackError, match="running already"):
            stack.start()
    assert not any(runs(process) for process in ours)
    assert not folder.exists()
    assert not stack.running
    assert len(stack.invocations()) == 1
    stack.stop()  # may be called again
    with pytest.raises(LocalStackError, match="not running"):
        stack.drain()


def test_a_stack_is_fresh_and_the_bucket_is_there(toy: LocalStack, new_client: Any) -> None:
    storage = new_client(toy, "s3")
    assert [bucket["Name"] for bucket in storage.list_buckets()["Buckets"]] == [toy.bucket]
    body = os.urandom(9 << 20)  # more than moto keeps in memory
    storage.put_object(Bucket=toy.bucket, Key="a/b", Body=body)
    assert storage.get_object(Bucket=toy.bucket, Key="a/b")["Body"].read() == body
    storage.delete_object(Bucket=toy.bucket, Key="a/b")


def test_everything_listens_on_loopback_only(toy: LocalStack) -> None:
    listening = set()
    for pid in descendants(os.getpid()):
        inodes = set()
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            target = os.readlink(link) if link.is_symlink() else ""
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
        for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                listening.add(fields[1].partition(":")[0])
        tcp6 = Path(f"/proc/{pid}/net/tcp6")
        for line in tcp6.read_text().splitlines()[1:] if tcp6.exists() else ():
            assert not (line.split()[3] == "0A" and line.split()[9] in inodes)
    assert listening == {"0100007F"}


def test_run_gives_the_command_the_stack_and_returns_its_code(local: Any, tmp_path: Path) -> None:
    script = "import json, os; print(json.dumps(dict(os.environ))); raise SystemExit(7)"
    code, out, err = finish(local("run", "--", sys.executable, "-c", script))
    assert (code, err) == (7, "")
    environ = json.loads(out)
    assert environ["AWS_ENDPOINT_URL_S3"].startswith("http://localhost:")
    assert environ["AWS_ENDPOINT_URL_LAMBDA"].startswith("http://127.0.0.1:")
    assert environ["POLARLAMBDA_BUCKET"] == "polarlambda-local-blocksbucket"
    assert environ["POLARLAMBDA_WORKER"] == "WorkerFunction"
    assert environ["AWS_DEFAULT_REGION"] and environ["AWS_ACCESS_KEY_ID"]
    assert "AWS_PROFILE" not in environ
    assert str(Path(sys.executable).parent) in environ["PATH"].split(os.pathsep)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (["--", "sh", "-c", "kill -9 $$"], 137, ""),
        (["--", "no-such-command"], 2, "cannot run 'no-such-command'"),
        (["--fail", "-1", "--", "true"], 2, "fail must be"),
        (["--delays", "nowhere.csv", "--", "true"], 2, "nowhere.csv: No such file"),
        (["--parameter", "Limit", "--", "true"], 2, "NAME=VALUE"),
        (["--parameter", "Other=1", "--", "true"], 2, "no parameter 'Other'; it has: none"),
    ],
)
def test_exit_codes_and_refusals_in_one_line(
    local: Any, tmp_path: Path, arguments: list[str], code: int, what: str
) -> None:
    returned, out, err = finish(local("run", *arguments))
    assert (returned, out) == (code, "")
    assert what in err and len(err.splitlines()) == (1 if what else 0)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_the_command_and_the_stack(local: Any, tmp_path: Path, number: int) -> None:
    process = local("run", "--", "sh", "-c", "echo $$; exec sleep 1000")
    command = int(process.stdout.readline())
    wait_until(lambda: len(descendants(process.pid)) >= 4)
    ours = descendants(process.pid)
    assert command in ours
    process.send_signal(number)
    code, _, _ = finish(process)
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 128 + number)
    wait_until(lambda: not any(runs(pid) for pid in ours), 20)
    if number != signal.SIGKILL:
        assert leftovers(tmp_path) == []


def test_a_stack_in_the_background(local: Any, tmp_path: Path, new_client: Any) -> None:
    assert finish(local("status"))[0] == 3
    code, out, err = finish(local("start"))
    assert (code, err) == (0, "")
    names = [line.split("=")[0] for line in out.splitlines()]
    assert "export AWS_ENDPOINT_URL_LAMBDA" in names and "export POLARLAMBDA_BUCKET" in names
    state = json.loads((tmp_path / ".polarlambda" / "local.json").read_text())
    try:
        ours = descendants(state["pid"]) | {state["pid"]}
        script = 'printf %s "$POLARLAMBDA_WORKER $AWS_ENDPOINT_URL_S3"'
        shown = subprocess.run(["sh", "-c", out + script], stdout=subprocess.PIPE, text=True)
        assert shown.stdout.startswith("WorkerFunction http://localhost:")
        code, again, _ = finish(local("status"))
        assert (code, again) == (0, out)
        code, _, err = finish(local("start"))
        assert code == 2 and "is running here already" in err and len(err.splitlines()) == 1
    finally:
        code, _, _ = finish(local("stop"))
    assert code == 0
    wait_until(lambda: not any(runs(pid) for pid in ours), 20)
    assert finish(local("status"))[0] == 3
    assert finish(local("stop"))[0] == 0
    assert leftovers(tmp_path) == []
