"""Reports are read and drawn where there is no torch, and by a suite that knows none of the names in them."""

from __future__ import annotations

import pytest

from tests.meta.conftest import Run
from tests.meta.reports import CPU

_BLOCKED = """
import importlib, pkgutil, sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "spec", "backends", "hypothesis"):
            raise ImportError(f"{name} is blocked here")
        return None

sys.meta_path.insert(0, Block())
"""
_EVERYTHING = """
for package in ("harness.report", "harness.rendering"):
    found = importlib.import_module(package)
    for module in pkgutil.iter_modules(found.__path__):
        importlib.import_module(f"{package}.{module.name}")
"""
_COMMAND = """
from harness.cli.main import main
raise SystemExit(main(sys.argv[1:]))
"""


def test_no_module_of_reports_and_renderings_imports_it(python: Run) -> None:
    done = python("-c", _BLOCKED + _EVERYTHING)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["show", "html", "markdown", "junit", "badge", "validate"])
def test_commands_on_reports_do_without_it(python: Run, command: str) -> None:
    done = python("-c", _BLOCKED + _COMMAND, command, CPU)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_blocking_blocks(python: Run) -> None:
    done = python("-c", _BLOCKED + "import harness.judging.subject")
    assert "is blocked here" in done.stderr


def test_a_page_needs_no_matplotlib(python: Run) -> None:
    """To import it takes longer than all else that draws a page."""
    block = _BLOCKED.replace('"hypothesis"', '"hypothesis", "matplotlib"')
    done = python("-c", block + _COMMAND, "html", CPU)
    assert done.returncode == 0, done.stderr
    assert "units of the allowance" in done.stdout
