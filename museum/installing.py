"""Releases of packages, each in a folder of its own, so that two releases of one package do not meet."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import Unavailable

#: Where releases are kept between runs.
CACHE = Path(".nox/museum")

#: Installs requirements in a folder. It raises Unavailable, which says why, where it cannot.
Installer = Callable[[Sequence[str], Path], None]


def pip(requirements: Sequence[str], target: Path) -> None:
    """Install exactly these releases, without what they depend on. Raises Unavailable with pip's last line."""
    options = ["--quiet", "--no-deps", "--no-compile", "--disable-pip-version-check", "--target", str(target)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, *requirements], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["pip said nothing"]
        raise Unavailable(f"pip could not install {' '.join(requirements)}: {said[-1].strip()}")


def present(requirement: str) -> bool:
    """Whether this environment has that release already: torch 2.13.0 is `torch==2.13.0+cpu` in many."""
    name, _, version = requirement.partition("==")
    try:
        return importlib.metadata.version(name).partition("+")[0] == version
    except importlib.metadata.PackageNotFoundError:
        return False


def folder_of(requirement: str, cache: Path = CACHE, install: Installer = pip) -> Path:
    """The folder with that release (`timm==1.0.12`); installed there if it is not there yet. Raises Unavailable.

    A folder is made under another name and renamed, so that one that is there is whole.
    """
    place = (cache / requirement.replace("==", "-")).resolve()
    if not place.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".making-", dir=cache))
        try:
            install([requirement], made)
            made.rename(place)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    return place
