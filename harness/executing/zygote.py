"""A process that has imported what others need, and forks for each of them: to import torch takes longer than most
questions.

A request names a folder, variables, and the sandbox of the process, which bubblewrap has made. The child joins the
namespaces of that sandbox and gives up every privilege, as bubblewrap's own children do; after that it does what it was
forked for. Nothing foreign has run in it before. A second child stays outside and tells how the first one ended.

Runs beside foreign code. Imports nothing but the standard library; whoever calls `serve` has imported the rest.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

#: Bytes of the largest request, and the most descriptors that come with one.
LARGEST, DESCRIPTORS = 1 << 18, 16
#: The namespaces of a sandbox, in the order in which they are joined: what the first one permits, the others need.
NAMESPACES = ("user", "ipc", "net", "pid", "mnt")
#: `PR_SET_PDEATHSIG`, `PR_SET_DUMPABLE` and `PR_SET_NO_NEW_PRIVS` of Linux.
_PARENT_DEATH_SIGNAL, _DUMPABLE, _NO_NEW_PRIVILEGES = 1, 4, 38
#: `PR_CAPBSET_DROP`, and a number above those of all capabilities.
_DROP_FROM_BOUND, _CAPABILITIES = 24, 64
#: The version of its capability sets.
_CAPABILITIES_VERSION = 0x20080522

_LIBC = ctypes.CDLL(None, use_errno=True)


def serve(requests: socket.socket, main: Callable[[int], None]) -> int:
    """Fork for each request, until nobody can send one. A child calls `main` with the number of its connection.

    Returns exit code 0. In a child, `main` ends by SystemExit.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children here
    while True:
        text, descriptors, _, _ = socket.recv_fds(requests, LARGEST, DESCRIPTORS)
        if not text:
            return 0
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            _begin(json.loads(text), descriptors, main)
        for descriptor in descriptors:
            os.close(descriptor)


def _begin(asked: dict[str, Any], descriptors: Sequence[int], main: Callable[[int], None]) -> None:
    """Fork the process that was asked for into its sandbox; this one stays, and tells how that one ends.

    Returns, in the process that was asked for, when `main` has returned.
    """
    connection, output, told, *others = descriptors
    try:
        if asked["sandbox"] is not None:
            _join(asked["sandbox"])
        child = os.fork()
    except OSError as error:
        os.write(told, f"error {error}\n".encode())
        os._exit(1)
    if child == 0:
        main(_become(asked, connection, output, others))
        raise SystemExit(0)
    for descriptor in (connection, output, *others):
        os.close(descriptor)
    _tell(child, told)


def _tell(child: int, told: int) -> NoReturn:
    """Tell the id of the child, and how it ended. If nobody listens any more, end it."""
    with contextlib.suppress(OSError):
        os.write(told, f"{child}\n".encode())
    ended = os.pidfd_open(child)
    watch = select.poll()
    watch.register(ended, select.POLLIN)
    watch.register(told, select.POLLHUP)
    if not any(descriptor == ended for descriptor, _ in watch.poll()):
        for end in (os.kill, os.killpg):  # it may not have a group of its own yet
            with contextlib.suppress(ProcessLookupError):
                end(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        os.write(told, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _join(sandbox: int) -> None:
    """Enter the namespaces of that process. Raises OSError."""
    found = [(name, os.open(f"/proc/{sandbox}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)) for name in NAMESPACES]
    for name, descriptor in found:
        if not os.path.sameopenfile(descriptor, own := os.open(f"/proc/self/ns/{name}", os.O_RDONLY)):
            _checked(f"setns({name})", _LIBC.setns(descriptor, 0))
        os.close(own)
    for _, descriptor in found:
        os.close(descriptor)


def _become(asked: dict[str, Any], connection: int, output: int, others: Sequence[int]) -> int:
    """Make this process what was asked for: its folder, its variables, its descriptors, and no privileges.

    Returns the number of its connection.
    """
    os.setsid()
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    if asked["sandbox"] is not None:
        os.environ["PWD"] = asked["folder"]  # as bubblewrap does
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in os.environ
    tempfile.tempdir = None
    nothing = os.open(os.devnull, os.O_RDONLY)
    connection = _renumbered(
        {0: nothing, 1: output, 2: output, **dict(zip(asked["numbers"], others, strict=True))}, connection
    )
    sys.argv[1:] = [str(connection)]
    if asked["sandbox"] is not None:
        give_up_privileges()
    _checked("prctl", _LIBC.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0))
    return connection


def _renumbered(numbers: dict[int, int], connection: int) -> int:
    """Give descriptors the numbers that are asked for, and close all others but the connection; returns its number."""
    above = max(numbers) + 1
    connection = fcntl.fcntl(connection, fcntl.F_DUPFD_CLOEXEC, above)
    moved = {number: fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for number, descriptor in numbers.items()}
    for number, descriptor in moved.items():
        os.dup2(descriptor, number)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor not in (*numbers, connection):
            with contextlib.suppress(OSError):  # that of the listing
                os.close(descriptor)
    return connection


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def give_up_privileges() -> None:
    """Drop all capabilities of this process, and have no program that it starts get any. Raises OSError."""
    _checked("prctl", _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    for number in range(_CAPABILITIES):
        _LIBC.prctl(_DROP_FROM_BOUND, number, 0, 0, 0)  # those that do not exist are refused
    none = (_CapabilitySets * 2)()
    _checked("capset", _LIBC.capset(ctypes.byref(_CapabilityHeader(_CAPABILITIES_VERSION, 0)), ctypes.byref(none)))
    _checked("prctl", _LIBC.prctl(_DUMPABLE, 1, 0, 0, 0))  # as for a program that was just started


def _checked(what: str, code: int) -> None:
    if code != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
