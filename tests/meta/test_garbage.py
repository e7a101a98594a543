"""When a judge collects garbage: not before everything is imported, and what was imported never again."""

from __future__ import annotations

import json

from tests.meta.conftest import Run

_PROGRAM = """
import contextlib, gc, io, json

from harness.pytest_plugin import invocation

with contextlib.redirect_stdout(io.StringIO()):
    code = invocation.judged(["--collect-only", "-n0", "--operator=softmax", "--backend=python-autograd", *{options}])
print(json.dumps([code, gc.isenabled(), gc.get_freeze_count()]))
"""


def _after(python: Run, *options: str) -> tuple[int, bool, int]:
    done = python("-c", _PROGRAM.format(options=list(options)))
    assert done.returncode == 0, done.stderr
    code, enabled, frozen = json.loads(done.stdout)
    return code, enabled, frozen


def test_what_was_imported_is_not_looked_at_again(python: Run) -> None:
    code, enabled, frozen = _after(python)
    assert (code, enabled) == (0, True)
    assert frozen > 100_000  # objects of torch alone


def test_it_would_be_without_the_plugin(python: Run) -> None:
    assert _after(python, "-p", "no:harness.pytest_plugin.garbage")[2] == 0
