"""A judge that does what the candidate's text says, and writes a report as the real one does. It imports no torch.

Each call adds a line to the file that FAKE_JUDGE_LOG names, so that tests can count how often a candidate was judged.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from harness.report.cell import FAIL, PASS, Cell
from harness.report.report import Report
from harness.report.suite import KnownProperty, Suite

SUITE = Suite(properties=(KnownProperty("forward-parity", "outputs are right", level="values"),))
FACTS = {"torch": "2", "python": "3", "gpu": None, "cpu": "a CPU", "commit": None}


def main() -> int:
    """The exit code of the judge."""
    given = dict(text.split("=", 1) for text in sys.argv[1:] if "=" in text)
    file, _, function = given["--candidate"].partition("=")[2].rpartition(":")
    text = Path(file).read_text(encoding="utf-8")
    with Path(os.environ["FAKE_JUDGE_LOG"]).open("a") as log:
        log.write(f"{text.splitlines()[0]}\n")
    words = text.split()
    if "wait" in words:
        time.sleep(float(words[words.index("wait") + 1]))
    if "crash" in words:
        os.kill(os.getpid(), signal.SIGKILL)
    if "kill-worker" in words:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    if "stop-worker" in words:
        os.kill(os.getppid(), signal.SIGSTOP)
        time.sleep(60)
    if "kill-worker-once" in words and not (done := Path(words[words.index("kill-worker-once") + 1])).exists():
        done.touch()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    if "refuse" in words:
        print("ERROR: unknown function 'f'")
        return 4
    if "silent" in words:
        print("the last words")
        return 1
    wrong = "wrong" in words
    verdict, reason = (FAIL, "it is wrong") if wrong else (PASS, "")
    cell = Cell("op", function, "cpu", "float32", "forward-parity", verdict, reason)
    Report.of([cell], FACTS, SUITE, "values").write(Path(given["--report"]))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
