"""Runs compilers on request, in a separate process, so that the judging process has no threads and can fork.

Reads JSON objects, one on each line, `{"id", "folder", "commands", "needs"}`, and answers each with
`{"id", "ok", "log", "seconds"}`. Jobs start in the order in which they arrive; a job needs only earlier ones.
Imports the standard library alone. `python builder.py WORKERS`
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

#: The time limit of one compiler call in seconds, on a machine that may be busy.
TIMEOUT = 900.0


def run(job: dict[str, Any], needed: list[Future[bool]]) -> tuple[bool, str]:
    """Whether all commands succeeded, and the output of the one that failed."""
    if not all(future.result() for future in needed):
        return False, "a job that it needs does not build"
    for command in job["commands"]:
        try:
            done = subprocess.run(
                command,
                cwd=job["folder"],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            return False, f"still compiling after {TIMEOUT:.0f} s"
        if done.returncode != 0:
            return False, done.stdout
    return True, ""


def main(workers: int) -> None:
    """Serve standard input until it ends."""
    known: dict[str, Future[bool]] = {}
    lock = threading.Lock()

    def work(job: dict[str, Any]) -> bool:
        needed = [known[name] for name in job["needs"]]
        start = time.monotonic()
        ok, log = run(job, needed)
        answer = {"id": job["id"], "ok": ok, "log": log, "seconds": round(time.monotonic() - start, 2)}
        with lock:
            print(json.dumps(answer), flush=True)
        return ok

    with ThreadPoolExecutor(workers) as pool:
        for line in sys.stdin:
            job = json.loads(line)
            known[job["id"]] = pool.submit(work, job)


if __name__ == "__main__":
    main(int(sys.argv[1]))
