"""Where foreign code runs: a process that can write to one scratch folder, and to nothing else.

With bubblewrap (`bwrap`), the process sees the file system read-only, has no network, and its own process namespace, so
that whatever it starts ends with it. Where bubblewrap is not installed or not permitted, the process has a scratch
folder as its working folder and writes no bytecode, and its children are found by their parents; but nothing stops it
from writing elsewhere. `described()` says which of the two it is, and the report records it.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from backends.devices import CPU, TRITON_INTERPRETED
from harness.building.cache import cache_root, expected_root, state_root
from harness.errors import UsageError

#: The values of `--sandbox`.
CHOICES = ("auto", "off")
#: Scratch folders that no run has used for this many seconds are removed.
_KEPT_SECONDS = 14 * 86400
#: Folders of caches and extensions, by the variable that names each.
_CACHES = {
    "TMPDIR": "tmp",
    "XDG_CACHE_HOME": "cache",
    "TORCH_EXTENSIONS_DIR": "torch_extensions",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
}
#: How often a process is started in a sandbox: a socket that was to be hidden may be gone before that.
STARTS = 4
#: Sockets that a container may have from outside, where they are not listed.
_WELL_KNOWN = ("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock")
#: The flag of a socket in /proc/net/unix on which somebody listens.
_LISTENS = 0x10000
#: Prefixes of variables that tell a process that it runs under a test.
_TELLTALE = ("PYTEST_", "COV_", "LLTM_CONFORMANCE_", "HYPOTHESIS_")


@cache
def why_none() -> str:
    """Why bubblewrap cannot be used here; empty if it can."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed"
    try:
        done = subprocess.run(
            [program, *_namespaces(), "true"], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run here: {error}"
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else f"bubblewrap does not run here: {(lines or ['no message'])[0]}"


@cache
def _version() -> str:
    done = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def described(choice: str = "auto") -> str:
    """`bubblewrap 0.8.0`, or `none: bubblewrap is not installed`."""
    if choice == "off":
        return "none: --sandbox=off"
    return _version() if not why_none() else f"none: {why_none()}"


def _namespaces() -> list[str]:
    return [
        *("--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"),
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL"),  # root would keep its own, and could mount the file system anew
        *(("--tmpfs", "/dev/pts") if Path("/dev/pts").is_dir() else ()),  # the user's terminals can be written to
    ]


def scratch(source: str) -> Path:
    """The folder that the candidate from there may write to. It holds the extensions that it builds.

    The folder belongs to the path and to the contents of the candidate's file: a change starts with an empty one.
    Raises UsageError if it cannot be written to.
    """
    root = cache_root() / "scratch"
    digest = hashlib.sha256(source.encode())
    where = source.partition("=")[2].rpartition(":")[0]
    if where.endswith(".py") and Path(where).is_file():
        digest.update(Path(where).read_bytes())
    folder = root / digest.hexdigest()[:16]
    if not folder.exists():
        _remove_old(root)
    try:
        if folder.is_dir():
            folder.chmod(0o700)
        for name in _CACHES.values():
            # A candidate may have put something else there, which is its own fault and must not look like another's.
            if (folder / name).is_symlink() or (folder / name).is_file():
                (folder / name).unlink()
            (folder / name).mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    except OSError as error:
        why = f"the scratch folder {folder} of the candidate cannot be written to: {error.strerror or error}"
        raise UsageError(f"{why}; set LLTM_CONFORMANCE_CACHE to another folder") from error
    return folder


def program(folder: Path) -> Path:
    """The folder of the program that runs in that scratch folder: beside it, where a candidate can put no link."""
    place = folder.with_suffix(".program")
    place.mkdir(exist_ok=True)
    return place


def _remove_old(root: Path) -> None:
    for folder in root.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another run has just removed it
            if time.time() - folder.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def is_used(choice: str = "auto") -> bool:
    """Whether `command` runs a program in bubblewrap."""
    return choice != "off" and not why_none()


def command(arguments: list[str], folder: Path, choice: str = "auto", writable: Sequence[Path] = ()) -> list[str]:
    """The command line that runs `arguments` with `folder`, and `writable`, as the only places to write to.

    Without bubblewrap nothing keeps the program from the expected results that are kept for later runs: this process
    removes them when it ends.
    """
    if not is_used(choice):
        atexit.register(shutil.rmtree, expected_root(), ignore_errors=True)
        return arguments
    places = [part for place in (folder, *writable) for part in ("--bind", str(place.resolve()), str(place.resolve()))]
    with contextlib.suppress(OSError):  # what this process makes there later is hidden then
        expected_root().mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError, RuntimeError):
        state_root().mkdir(parents=True, exist_ok=True, mode=0o700)
    secret = [folder.resolve() for folder in (state_root(), expected_root()) if folder.is_dir()]
    hidden = [part for folder in secret for part in ("--tmpfs", str(folder))]
    doors = [path for path in _doors() if not any(Path(path).is_relative_to(folder) for folder in secret)]
    hidden += [part for path in doors for part in ("--ro-bind", "/dev/null", path)]
    return ["bwrap", *_namespaces(), "--tmpfs", "/dev/shm", *hidden, *places, "--chdir", str(folder), *arguments]


def _doors() -> list[str]:
    """The sockets on which some program listens, such as that of tmux, of systemd or of docker.

    A file system that is read-only does not keep anyone from connecting, and such a program does what it is told. One
    that is gone before the sandbox is made cannot be hidden, and the sandbox is not made: `STARTS`.
    """
    found = [os.environ.get("SSH_AUTH_SOCK", ""), *_WELL_KNOWN]
    with contextlib.suppress(OSError):
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
        parts = (line.split(maxsplit=7) for line in lines)
        found += [part[7] for part in parts if len(part) == 8 and int(part[3], 16) & _LISTENS]
    places = dict.fromkeys(os.path.realpath(path) for path in found if path.startswith("/"))
    return [path for path in places if _is_socket(path)]


def _is_socket(path: str) -> bool:
    """False too where this user may not look."""
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def environment(folder: Path, device: str = CPU) -> dict[str, str]:
    """The variables of the process: caches in the scratch folder, no bytecode, no sign of a test; what Triton asks."""
    caches = {name: str(folder / below) for name, below in _CACHES.items()}
    interpreted = {"TRITON_INTERPRET": "1"} if device == TRITON_INTERPRETED else {}
    return {**plain_environment(), **caches, **interpreted}


def plain_environment() -> dict[str, str]:
    """The variables of any process of a candidate: those of this one, without bytecode and any sign of a test."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_TELLTALE)}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}
