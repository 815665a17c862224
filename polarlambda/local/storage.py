"""The S3 server's process: moto on a socket that the stack has opened, quiet.

    python -m polarlambda.local.storage FD

Prints one line when it is ready; ends when its standard input ends.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading


def main() -> None:
    """Serve until standard input ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    listening = socket.socket(fileno=int(sys.argv[1]))
    server = make_server(
        "localhost",
        listening.getsockname()[1],
        create_backend_app("s3"),
        threaded=True,
        request_handler=MotoRequestHandler,
        fd=listening.fileno(),
    )
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    server.serve_forever()


def _end_with_stdin() -> None:
    while os.read(0, 1024):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
