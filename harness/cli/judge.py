"""Run the suite from anywhere: `python -m harness judge` is pytest with this plugin."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.building.cache import cache_root

_SUITE = Path(__file__).parents[1] / "pytest_plugin" / "suite"
#: Prefixes of options with which one process is used: too little work for several, or a debugger.
_ONE_PROCESS = (
    "-k",
    "-n",
    "-p",
    "-s",
    "--numprocesses",
    "--pdb",
    "--capture",
    "--dtype",
    "--isolate",
    "--resume",
    "--property",
)


def main(arguments: Sequence[str]) -> int:
    """pytest on the suite's tests, with pytest's own exit code. `arguments` are options of pytest and of the plugin.

    A whole run is spread over the cores; `-n 0`, or an option that narrows the selection, keeps it in one process.
    """
    plugin = ["-p", "harness.pytest_plugin.plugin", "-c", str(_SUITE / "pytest.ini")]
    own = [*plugin, "--import-mode=importlib", "-q", "--no-header"]
    # The folder of the installed suite must not be written to, and must not supply pytest's configuration. Nothing but
    # the report is written to the user's folder.
    where = ["--rootdir", str(Path.cwd()), "-p", "no:cacheprovider", "-p", "no:benchmark"]
    if not any(option.startswith(_ONE_PROCESS) for option in arguments):
        own += ["-n", "auto", "--dist", "loadgroup"]
    command = [sys.executable, "-m", "pytest", *own, *where, str(_SUITE / "test_properties.py"), *arguments]
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_root() / "hypothesis"))
    # pytest must be loaded before the modules whose assertions it rewrites. It takes the place of this process, so that
    # a signal to this process is one to pytest.
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, command)
