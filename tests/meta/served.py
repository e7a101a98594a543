"""Commands in forks of one process that has imported torch and the suite: to import them takes longer than most judges.

A fork has the folder, the variables, the arguments and the output of a new `python -m MODULE` or `python FILE`, and
torch and the suite are imported before it begins. Candidates, and the
processes that judge beside them, are forked too, as they are for `harness serve`. `test_served.py` compares both ways.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from backends.devices import HAS_NVIDIA_GPU

#: Modules whose commands may be forked.
MODULES = ("pytest", "harness")
#: Bytes of the largest request.
_LARGEST = 1 << 18
#: Seconds in which the process has to be there, or to tell that a command has ended.
_PROMPT = 300.0
#: What is collected first: pytest then imports the plugin by its own loader, and does not warn of that later.
_COLLECTED = ("--operator=softmax", "--backend=python-autograd", "--device=cpu", "--dtype=float32")


class Commands:
    """The process that forks, for those who ask it. The variables that matter at imports are those of its start."""

    def __init__(self, root: Path, variables: Mapping[str, str]) -> None:
        self._at_import = _at_import(variables)
        self._asking, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST)
        with theirs:
            command = [sys.executable, "-m", "tests.meta.served", str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, cwd=root, env=variables, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),)
            )

    def can(self, arguments: Sequence[str], variables: Mapping[str, str]) -> bool:
        """Whether `python ARGUMENTS` with these variables would import the same, and can be forked.

        With a GPU it cannot: a backward starts a thread for each GPU, and what is forked later makes no backward.
        """
        if HAS_NVIDIA_GPU:
            return False
        known = arguments[0].endswith(".py") or (arguments[0] == "-m" and arguments[1] in MODULES)
        return known and _at_import(variables) == self._at_import

    def run(
        self, arguments: Sequence[str], folder: Path, variables: Mapping[str, str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """What `subprocess.run` returns for `python ARGUMENTS`. Raises subprocess.TimeoutExpired."""
        request = {"words": arguments, "folder": str(folder), "variables": variables}
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            socket.send_fds(self._asking, [json.dumps(request).encode()], [out.fileno(), err.fileno()])
            process = self._told(_PROMPT)
            try:
                code = self._told(seconds)
            except TimeoutError:
                os.killpg(process, signal.SIGKILL)
                self._told(_PROMPT)
                raise subprocess.TimeoutExpired(list(arguments), seconds) from None
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(arguments), code, out.read(), err.read())

    def _told(self, seconds: float) -> int:
        """The next number: the process of a command, then its exit code. Raises TimeoutError."""
        self._asking.settimeout(seconds)
        text = self._asking.recv(100)
        assert text, "the process that forks has ended"
        return int(text)

    def close(self) -> None:
        """End the process."""
        self._asking.close()
        self._process.wait(_PROMPT)


def _at_import(variables: Mapping[str, str]) -> dict[str, str]:
    from harness.running import serving

    return serving.at_import(variables)


# In the process that forks


def _serve(requests: socket.socket) -> None:
    """One command after the other, until nobody can ask for one."""
    import pytest

    from harness.executing.lifeline import end_with_parent
    from harness.running import launching

    end_with_parent()
    folder = Path(tempfile.mkdtemp(prefix="lltm-conformance-"))  # no TemporaryDirectory: each fork would remove it
    try:
        launching.keep_runner(folder)
        with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
            collected = ["tests/conformance", "--collect-only", "-q", "-n0", "-p", "no:cacheprovider", *_COLLECTED]
            assert pytest.main(collected) == 0
        from harness.pytest_plugin import warming
        from harness.running import suite_process

        warming.warm_up()
        suite_process.keep()
        while True:
            text, descriptors, _, _ = socket.recv_fds(requests, _LARGEST, 2)
            if not text:
                return
            server, child = os.getpid(), os.fork()
            if child == 0:
                _be_the_command(json.loads(text), descriptors, server)
            for descriptor in descriptors:
                os.close(descriptor)
            requests.send(str(child).encode())
            requests.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _be_the_command(asked: dict[str, object], descriptors: Sequence[int], server: int) -> NoReturn:
    """In the fork: what `python -m MODULE ARGUMENTS` or `python FILE ARGUMENTS` does after its imports."""
    from harness.executing.descriptors import close_all_but
    from harness.executing.lifeline import end_with_parent
    from harness.judging import fresh_process
    from harness.running import forking, launching

    def command() -> int:
        os.setsid()
        end_with_parent(server)
        for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), *descriptors)):
            os.dup2(descriptor, number)
        close_all_but(launching.in_a_fork())
        sys.stdin, sys.stdout, sys.stderr = (open(n, mode, closefd=False) for n, mode in ((0, "r"), (1, "w"), (2, "w")))  # noqa: SIM115
        words, folder = list(asked["words"]), str(asked["folder"])  # type: ignore[call-overload]
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(asked["variables"])  # type: ignore[call-overload]
        tempfile.tempdir = None
        fresh_process.remember_environment()
        if words[0] == "-m":
            sys.path[0], sys.argv = folder, words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.path[0], sys.argv = os.path.dirname(os.path.abspath(words[0])), words
            runpy.run_path(words[0], run_name="__main__")
        return 0

    forking.leave_after(command)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
