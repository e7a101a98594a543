"""How pytest is called to judge: the same from `python -m harness judge` and from a worker of a fleet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from harness.building.cache import cache_root

#: The files of the suite that `python -m harness judge` runs, with its configuration.
SUITE = Path(__file__).with_name("suite")
_OPTIONS = (
    *("-p", "harness.pytest_plugin.garbage"),  # before what takes long to import
    *("-p", "harness.pytest_plugin.plugin", "-c", str(SUITE / "pytest.ini"), "--import-mode=importlib"),
    # No assertion here is a test's: to rewrite them takes longer than some properties.
    *("--assert=plain", "-q", "--no-header"),
    # Nothing but the report is written to the user's folder, and the folder of the suite may be read-only.
    *("-p", "no:cacheprovider", "-p", "no:benchmark"),
    # It collects garbage ten times at the end, which takes longer than to judge a small candidate.
    *("-p", "no:unraisableexception"),
    # It imports hypothesis at the end, though no test here is one of its own.
    *("-p", "no:hypothesispytest"),
)


def judged(arguments: Sequence[str]) -> int:
    """pytest's exit code. `arguments` are options of pytest and of the plugin."""
    import pytest

    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_root() / "hypothesis"))
    # The folder of the installed suite must not supply pytest's configuration.
    where = ["--rootdir", str(Path.cwd()), str(SUITE / "test_properties.py")]
    return int(pytest.main([*_OPTIONS, *where, *arguments]))
