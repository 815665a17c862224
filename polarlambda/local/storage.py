"""The S3 server's process: moto on a socket that the stack has opened, quiet.

    python -m polarlambda.local.storage FD FOLDER RATE

While there are resident workers and chaos for them (see `residents`; a file in the stack's FOLDER
says so), the Lambda service is asked about every answer before it is stored. A RATE above 0 is the
bytes per second at which a worker reads, as on a network. Prints one line when it is ready; ends
when its standard input ends.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from polarlambda.local.residents import MARK, answer_of

THREADS = 256  # a request that is held up, or slowed, keeps one waiting
CONNECTIONS = 10_000
LARGEST_BODY = 5 << 30  # bytes of one PUT, as in S3
IN_MEMORY = 64 << 20  # bytes of a body that are not spooled to disk
RECEIVE = 256 << 10  # bytes taken from a socket at a time


def main() -> None:
    """Serve until standard input ends."""
    from moto.moto_server.werkzeug_app import create_backend_app
    from waitress import create_server

    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # requests do wait, by design
    server = create_server(
        slowed(held_up(create_backend_app("s3"), Path(sys.argv[2]) / MARK), float(sys.argv[3])),
        sockets=[socket.socket(fileno=int(sys.argv[1]))],
        threads=THREADS,
        connection_limit=CONNECTIONS,
        asyncore_use_poll=True,
        max_request_body_size=LARGEST_BODY,
        inbuf_overflow=IN_MEMORY,
        outbuf_overflow=IN_MEMORY,
        recv_bytes=RECEIVE,
    )
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    server.run()


def held_up(store: Any, mark: Path) -> Any:
    """The WSGI application `store`, which keeps a resident's answer when the service agrees."""

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        key = environ["PATH_INFO"].lstrip("/").partition("/")[2]
        if environ["REQUEST_METHOD"] == "PUT" and answer_of(key) is not None:
            try:
                service = mark.read_text()
            except FileNotFoundError:
                service = ""
            if service and not _kept(service, key):
                start_response("503 Service Unavailable", [("Content-Length", "0")])
                return [b""]
        return store(environ, start_response)

    return application


def slowed(store: Any, rate: float) -> Any:
    """The WSGI application `store`, whose bodies come at `rate` bytes per second if it is not 0.

    Objects of one folder share it: they are a worker's tiles, which one function reads.
    """
    if rate <= 0:
        return store
    lock, free = threading.Lock(), dict[str, float]()

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        body = list(store(environ, start_response))
        folder = environ["PATH_INFO"].rpartition("/")[0]
        with lock:
            now = time.monotonic()
            due = free[folder] = max(now, free.get(folder, 0.0)) + sum(map(len, body)) / rate
        time.sleep(due - now)
        return body

    return application


def _kept(service: str, key: str) -> bool:
    connection = http.client.HTTPConnection(service)
    try:
        connection.request("POST", "/_local/answer", json.dumps({"key": key}))
        answer: dict[str, bool] = json.loads(connection.getresponse().read())
    except OSError:  # the stack is ending
        return False
    finally:
        connection.close()
    return answer["kept"]


def _end_with_stdin() -> None:
    while os.read(0, 1024):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
