"""A function that does what its event says."""

import os
import subprocess
import sys
import time
import uuid

ENVIRONMENT = str(uuid.uuid4())
VERSION = "first"
calls = 0


def handler(event, context):
    global calls
    calls += 1
    do = event.get("do", "echo")
    if do == "raise":
        raise ValueError("as the event asked")
    if do == "sleep":
        time.sleep(event["seconds"])
    if do == "wait":
        while not os.path.exists(event["file"]):
            time.sleep(0.01)
    if do == "exit":
        sys.stdout.flush()
        os._exit(event["status"])
    if do == "allocate":
        block = bytearray(event["megabytes"] << 20)
        block[::4096] = b"x" * len(block[::4096])
    if do == "print":
        print(event["text"])
    if do == "answer":
        return "x" * event["bytes"]
    if do == "fork":
        return {"pid": os.getpid(), "child": subprocess.Popen(["sleep", "1000"]).pid}
    if do == "describe":
        return {
            "environment": ENVIRONMENT,
            "version": VERSION,
            "calls": calls,
            "pid": os.getpid(),
            "modules": sorted(m for m in sys.modules if "." not in m),
            "environ": dict(os.environ),
            "path": sys.path,
            "arn": context.invoked_function_arn,
            "memory": context.memory_limit_in_mb,
            "remaining": context.get_remaining_time_in_millis(),
            "client": context.client_context and context.client_context.custom,
        }
    return event
