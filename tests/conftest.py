"""The two tiers of the project's own tests: without `--all`, those that are marked `long` are left out, and counted."""

from __future__ import annotations

from typing import Any

import pytest

#: The `-m` of pyproject.toml.
_USUAL = "not crossing"
_LEFT_OUT = "long-tests-left-out"
_COUNT = pytest.StashKey[int]()
#: All tests that were collected, before any was left out.
COLLECTED = pytest.StashKey[list[pytest.Item]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="of the project's own tests: run the long ones too")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Any:
    """Leave out what is long of that which `-k` has selected. Whoever gives another `-m` selects by that alone."""
    config.stash[COLLECTED] = list(items)
    result = yield
    if not config.getoption("all") and config.option.markexpr == _USUAL:
        left_out = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.stash[_COUNT] = len(left_out)
        if hasattr(config, "workeroutput"):  # a worker of pytest-xdist: another process prints
            config.workeroutput[_LEFT_OUT] = len(left_out)
        config.hook.pytest_deselected(items=left_out)
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ARG001
    """Every worker collects all tests, so that their counts are equal. One that broke down has none."""
    count = getattr(node, "workeroutput", {}).get(_LEFT_OUT, 0)
    node.config.stash[_COUNT] = max(count, node.config.stash.get(_COUNT, 0))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how many tests there are beyond those that ran."""
    if count := config.stash.get(_COUNT, 0):
        terminalreporter.write_line(f"long tests that were left out: {count}; `nox -s tests -- --all` runs them too")
