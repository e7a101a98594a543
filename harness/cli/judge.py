"""Run the suite from anywhere: `python -m harness judge` is pytest with this plugin."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_SUITE = Path(__file__).parents[1] / "pytest_plugin" / "suite"
#: How options begin that leave so little to do that one process does it sooner than several have started, or want one.
_ONE_PROCESS = ("-k", "-n", "-p", "-s", "--numprocesses", "--pdb", "--capture", "--dtype", "--isolate", "--resume")


def main(arguments: Sequence[str]) -> int:
    """pytest on the suite's tests, with pytest's own exit code. `arguments` are options of pytest and of the plugin.

    A whole judgement is spread over the cores; `-n 0`, or an option that narrows it, keeps it in one process.
    """
    plugin = ["-p", "harness.pytest_plugin.plugin", "-c", str(_SUITE / "pytest.ini")]
    own = [*plugin, "--import-mode=importlib", "-q", "--no-header"]
    # Where the suite is installed is no place to write to, and what is there is no configuration of the user's.
    where = ["--rootdir", str(Path.cwd()), "-p", "no:cacheprovider"]
    if not any(option.startswith(_ONE_PROCESS) for option in arguments):
        own += ["-n", "auto", "--dist", "loadgroup"]
    # A process of its own: pytest wants to be there before what it watches is imported.
    return subprocess.call(
        [sys.executable, "-m", "pytest", *own, *where, str(_SUITE / "test_properties.py"), *arguments]
    )
