"""`python -m harness`: see `harness.cli.main`."""

from __future__ import annotations

import sys
from typing import NoReturn

from harness.cli.main import main


def run() -> NoReturn:
    """Run the command of the process's arguments, and end."""
    code = main()
    if sys.argv[1:2] == ["judge"] and "torch" in sys.modules:
        from harness.running import forking

        forking.leave(code)
    sys.exit(code)


if __name__ == "__main__":
    run()
