"""`python -m harness`: see `harness.cli.main`.

Python looks for modules in the working folder first, and there the author of a candidate may write. A `pytest.py` would
be imported in place of pytest, into the process that judges. So the folder is left out before anything is imported,
unless it is the suite's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # pathlib is not imported yet


def _leave_out_the_working_folder() -> None:
    """With `-P`, or as `lltm-conformance`, it is not there anyway."""
    if not sys.flags.safe_path and os.path.realpath(sys.path[0]) != os.path.realpath(_ROOT):
        del sys.path[0]


if __name__ == "__main__":
    _leave_out_the_working_folder()

from harness.cli.main import main  # noqa: E402 - not before the folder is left out


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments` name, by default those of the process. A judge ends the process."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    code = main(given)
    if given[:1] == ["judge"] and "torch" in sys.modules:
        from harness.running import forking

        forking.leave(code)
    return code


if __name__ == "__main__":
    sys.exit(run())
