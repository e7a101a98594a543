"""The tree to compare with: a git worktree of another commit, which exists while the gate runs.

The gate holds a lock in its folder. If it is killed, the kernel releases the lock, and the next gate removes the folder
and the worktree.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from harness.errors import UsageError

#: The tree from which this package was imported.
HEAD = Path(__file__).resolve().parents[2]
_PREFIX, _TREE, _LOCK = "gate-base-", "tree", "lock"
#: Signals that end the gate, and remove its worktree first.
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


def commit_of(revision: str, repository: Path = HEAD) -> str:
    """The full name of a commit. Raises UsageError if git knows no such commit."""
    return _git(repository, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}", about=revision)


@contextmanager
def worktree(revision: str, repository: Path = HEAD) -> Iterator[Path]:
    """A checkout of that commit, removed at the end. Raises UsageError if git cannot make one."""
    commit = commit_of(revision, repository)
    _remove_stale(repository)
    with _signals_as_exits(), tempfile.TemporaryDirectory(prefix=_PREFIX) as scratch:
        tree = Path(scratch).resolve() / _TREE
        with FileLock(Path(scratch) / _LOCK, timeout=0):
            try:
                _git(repository, "worktree", "add", "--detach", "--force", str(tree), commit, about=revision)
                yield tree
            finally:
                _remove(repository, tree)


def _remove(repository: Path, tree: Path) -> None:
    with suppress(UsageError):  # if git cannot, the next gate tries again
        _git(repository, "worktree", "remove", "--force", str(tree), about=str(tree))


def _remove_stale(repository: Path) -> None:
    """Remove the worktrees of gates that were killed, and their folders."""
    listed = _git(repository, "worktree", "list", "--porcelain", about="HEAD")
    trees = [Path(line.removeprefix("worktree ")) for line in listed.splitlines() if line.startswith("worktree ")]
    for tree in trees:
        if tree.name != _TREE or not tree.parent.name.startswith(_PREFIX):
            continue
        if tree.parent.exists():
            try:
                with FileLock(tree.parent / _LOCK, timeout=0):
                    _remove(repository, tree)
            except (Timeout, OSError):
                continue  # of a gate that runs, or of another user
            shutil.rmtree(tree.parent, ignore_errors=True)
        else:
            _remove(repository, tree)


@contextmanager
def _signals_as_exits() -> Iterator[None]:
    """Signals that would end the process raise SystemExit, so that what was begun is undone."""
    before = {number: signal.getsignal(number) for number in _ENDINGS}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:  # one that is ignored, as under nohup, stays ignored
            signal.signal(number, _exit)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, _: object) -> None:
    sys.exit(128 + number)


def _git(repository: Path, *arguments: str, about: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=False, timeout=300
        )
    except OSError as error:
        raise UsageError(f"--base {about} needs git, but git does not run: {error}") from error
    if done.returncode != 0:
        raise UsageError(f"--base was {about!r}, but should be a commit of {repository}: {done.stderr.strip()}")
    return done.stdout.strip()
