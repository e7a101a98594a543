"""The import rules find the backends by themselves: a new folder is held to them without an edit."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.meta.conftest import ROOT, environment

_PACKAGES = ("spec", "backends", "harness", "modules", "tools", "tests", "museum")
_CONTRACT = "a backend imports no sibling"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python files of the repository, to be changed."""
    pytest.importorskip("importlinter", reason="import-linter is installed by the group `lint`")
    folder = tmp_path_factory.mktemp("tree")
    for name in _PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "csrc", "*.json"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _linted(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(
        command, cwd=tree, env=environment(PYTHONPATH=str(tree)), capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("backends/newcomer/__init__.py", "from backends.triton import BACKEND", _CONTRACT),
        ("harness/newcomer.py", "import backends.newcomer", "nothing imports a backend by name"),
        ("harness/report/newcomer.py", "import torch", "reports are read and drawn without torch"),
        ("harness/judging/newcomer.py", "import harness.running", "inside harness"),
    ],
    ids=["sibling", "by-name", "torch", "upwards"],
)
def test_a_new_file_is_held_to_the_rules(tree: Path, file: str, line: str, broken: str) -> None:
    (tree / "backends" / "newcomer").mkdir(exist_ok=True)
    (tree / "backends" / "newcomer" / "__init__.py").write_text("")
    path = tree / file
    path.write_text(f"{line}\n")
    try:
        done = _linted(tree)
    finally:
        path.unlink()
    assert done.returncode == 1, done.stdout + done.stderr
    assert any(broken in row and "BROKEN" in row for row in done.stdout.splitlines()), done.stdout


def test_no_two_classes_of_the_harness_have_one_name() -> None:
    names = Counter(
        node.name
        for path in (ROOT / "harness").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []
