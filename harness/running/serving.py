"""How a command finds the server that judges (`python -m harness serve`), and has it judge. Imports no torch.

The socket is in the folder of this user's state, which a sandbox hides. Its name is a digest of all that the server has
imported and of the variables that matter at imports: who would get something else from it finds none.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from harness.building.cache import state_root

_ROOT = Path(__file__).parents[2]
_SITES = ("site-packages", "dist-packages")
_PACKAGES = ("spec", "backends", "harness", "modules")
#: Variables that are read when something is imported: the beginnings of their names.
_AT_IMPORT = ("OMP_", "MKL_", "KMP_", "GOMP_", "CUDA_", "NVIDIA_", "PYTHON", "PYTORCH_", "TORCH", "TRITON", "LD_")
#: The longest request, in bytes.
LARGEST = 1 << 20
#: Signals that a client hands on to the judge, unless it ignores them.
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Options with which a judge needs the terminal itself.
_AT_THE_TERMINAL = ("--pdb", "--trace", "-s", "--capture", "--watch")


def at_import(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that matter at imports."""
    return {name: value for name, value in sorted(environment.items()) if name.startswith(_AT_IMPORT)}


def identity(environment: Mapping[str, str]) -> str:
    """A digest of the interpreter, the packages, the files of the suite, and the variables that matter at imports."""
    digest = hashlib.blake2b(repr((sys.executable, sys.prefix, at_import(environment))).encode(), digest_size=8)
    for folder in filter(lambda text: text.endswith(_SITES), sys.path):  # it changes with what is installed
        digest.update(f"{folder}\0{Path(folder).stat().st_mtime_ns}\0".encode())
    for name in _PACKAGES:
        for entry in sorted(_files(str(_ROOT / name)), key=lambda entry: entry.path):
            facts = entry.stat()
            digest.update(f"{entry.path}\0{facts.st_mtime_ns}\0{facts.st_size}\0".encode())
    return digest.hexdigest()


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _files(entry.path)
            elif entry.is_file() and not entry.name.endswith(".pyc"):
                yield entry


def place(environment: Mapping[str, str]) -> Path:
    """The socket of the server that a command with these variables may use."""
    return state_root() / f"judge-{identity(environment)}.socket"


def connected() -> socket.socket | None:
    """A connection to the server; None if there is none for this command."""
    with suppress(OSError, RuntimeError):
        if not any(state_root().glob("judge-*.socket")):  # the usual case, and it takes no time
            return None
        found = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            found.connect(str(place(os.environ)))
        except OSError:
            found.close()
            return None
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)
        return found
    return None


def judged(arguments: Sequence[str]) -> int | None:
    """The exit code of `judge` with these arguments, by the server; None if there is none that can do this."""
    if any(option.startswith(_AT_THE_TERMINAL) for option in arguments):
        return None
    connection = connected()
    if connection is None:
        return None
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    request = {"arguments": list(arguments), "folder": str(Path.cwd()), "path": sys.path[0]}
    with connection:
        try:
            socket.send_fds(connection, [json.dumps({**request, "environment": dict(os.environ)}).encode()], [0, 1, 2])
            heeded = [number for number in ENDINGS if signal.getsignal(number) is not signal.SIG_IGN]
            before = {number: signal.signal(number, _handing_on(connection)) for number in heeded}
        except OSError:
            return None
        try:
            answer = connection.recv(LARGEST)
        except OSError:
            answer = b""
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    # Without an answer the server has ended, and the judge with it.
    return int(json.loads(answer)["code"]) if answer else 128 + signal.SIGKILL


def _handing_on(connection: socket.socket) -> Any:
    def hand_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        with suppress(OSError):
            connection.send(json.dumps({"signal": number}).encode())

    return hand_on
