"""Which changes of a process count as a candidate's."""

from __future__ import annotations

import sys

import pytest

from harness.judging.process_state import watched


@pytest.mark.parametrize(("path", "counts"), [("/x/setuptools/_vendor", False), ("/x/setuptools", True), ("/x", True)])
def test_what_setuptools_adds_to_the_import_path_is_nobodys_fault(
    monkeypatch: pytest.MonkeyPatch, path: str, counts: bool
) -> None:
    """torch.utils.cpp_extension imports setuptools, which adds a folder of its own."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    with watched("cpu") as watch:
        sys.path.append(path)
        assert ("import path" in [name for name, _, _ in watch.changes()]) is counts
    assert (path in sys.path) is not counts
