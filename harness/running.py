"""Run the suite from anywhere: `python -m harness judge` is pytest with this plugin."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_SUITE = Path(__file__).parent / "suite"
#: How options begin that leave so little to do that one process does it sooner than several have started, or want one.
_ONE_PROCESS = ("-k", "-n", "-p", "-s", "--numprocesses", "--pdb", "--capture", "--dtype", "--isolate", "--resume")


def run(file: str, options: Sequence[str]) -> int:
    """pytest on a file of the suite, with pytest's own exit code. `options` are those of pytest and of the plugin.

    A whole judgement is spread over the cores; `-n 0`, or an option that narrows it, keeps it in one process.
    """
    own = ["-p", "harness.plugin", "--import-mode=importlib", "-c", str(_SUITE / "pytest.ini"), "-q", "--no-header"]
    # Where the suite is installed is no place to write to, and what is there is no configuration of the user's.
    where = ["--rootdir", str(Path.cwd()), "-p", "no:cacheprovider"]
    if not any(option.startswith(_ONE_PROCESS) for option in options):
        own += ["-n", "auto", "--dist", "loadgroup"]
    # A process of its own: pytest wants to be there before what it watches is imported.
    return subprocess.call([sys.executable, "-m", "pytest", *own, *where, str(_SUITE / file), *options])
