"""Compiled backends inside a wheel, where LLTM_CONFORMANCE_PREBUILD says which (`nox -s wheel`: all).

All else is in pyproject.toml. Without the variable the wheel is pure Python; backends are compiled when first used.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PREBUILD = os.environ.get("LLTM_CONFORMANCE_PREBUILD", "")


class BuildWithLibraries(build_py):
    """Copies the packages, then builds the libraries for the torch that is installed."""

    def run(self) -> None:
        super().run()
        if PREBUILD:
            sys.path.insert(0, str(ROOT))
            from tools import prebuild

            prebuild.collect(Path(self.build_lib) / "harness" / "building" / "prebuilt", PREBUILD.split())


class PlatformDistribution(Distribution):
    """A wheel with libraries is for one platform and one Python."""

    def has_ext_modules(self) -> bool:
        return bool(PREBUILD) or super().has_ext_modules()


setup(cmdclass={"build_py": BuildWithLibraries}, distclass=PlatformDistribution)
