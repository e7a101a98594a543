"""`python -m harness`: see `harness.command_line`."""

from __future__ import annotations

import sys


def main() -> int:
    """The command that was asked for; its exit code."""
    if sys.argv[1:2] == ["judge"]:
        # pytest imports what it needs, in a process of its own: to import torch here too would take seconds.
        from harness import running

        return running.run("test_properties.py", sys.argv[2:])
    from harness import command_line

    return command_line.main()


if __name__ == "__main__":
    sys.exit(main())
