"""Releases of packages, each in a folder of its own, so that two releases of one package do not meet."""

from __future__ import annotations

import importlib.metadata
import re
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
    """Install exactly these releases, without what they depend on. Raises Unavailable with pip's last error.

    An old release may be a source whose setup.py imports torch or numpy. It is built in this environment then.
    """
    options = ["--quiet", "--no-deps", "--no-compile", "--disable-pip-version-check", "--target", str(target)]
    for isolation in ([], ["--no-build-isolation"]):
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", *options, *isolation, *requirements],
            capture_output=True,
            text=True,
            check=False,
        )
        if not done.returncode:
            return
    raise Unavailable(f"pip could not install {' '.join(requirements)}: {_last_error(done.stderr)}")


def _last_error(text: str) -> str:
    """The last line that names an error; pip ends with a note on what it is not."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return next(
        (line for line in reversed(said) if re.match(r"(ERROR|\w*Error): ", line)), (said or ["pip said nothing"])[-1]
    )


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
