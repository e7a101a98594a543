"""The tree to compare with: a git worktree of another commit, which exists while the gate runs."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import UsageError

#: The tree from which this package was imported.
HEAD = Path(__file__).resolve().parents[2]


def commit_of(revision: str, repository: Path = HEAD) -> str:
    """The full name of a commit. Raises UsageError if git knows no such commit."""
    return _git(repository, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}", about=revision)


@contextmanager
def worktree(revision: str, repository: Path = HEAD) -> Iterator[Path]:
    """A checkout of that commit, removed at the end. Raises UsageError if git cannot make one."""
    commit = commit_of(revision, repository)
    with tempfile.TemporaryDirectory(prefix="gate-base-") as scratch:
        tree = Path(scratch).resolve() / "tree"
        _git(repository, "worktree", "add", "--detach", "--force", str(tree), commit, about=revision)
        before = signal.signal(signal.SIGTERM, _exit)  # so that the worktree is removed then, too
        try:
            yield tree
        finally:
            signal.signal(signal.SIGTERM, before)
            _git(repository, "worktree", "remove", "--force", str(tree), about=revision)


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
