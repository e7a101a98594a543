"""A compiled backend uses its own folder and the shared ones, never a sibling's: editing one changes no other."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import backends
from backends.base import CompiledOperator

ROOT = Path(backends.__path__[0]).resolve()
#: A package with a public name is a backend. `_cuda`, `_native` and `_python` are shared.
BACKENDS = [module.name for module in pkgutil.iter_modules([str(ROOT)]) if module.ispkg and module.name[0] != "_"]


def _compiled() -> Iterator[tuple[str, CompiledOperator]]:
    for backend in BACKENDS:
        if importlib.import_module(f"backends.{backend}").BACKEND.needs:  # it has no sources
            continue
        for module in pkgutil.iter_modules([str(ROOT / backend)]):
            if not module.ispkg and module.name[0] != "_":
                imported = importlib.import_module(f"backends.{backend}.{module.name}")
                implementation = getattr(imported, "IMPLEMENTATION", None)
                if isinstance(implementation, CompiledOperator):
                    yield backend, implementation


COMPILED = {f"{backend}-{operator.operator}": (backend, operator) for backend, operator in _compiled()}


def _of_siblings(backend: str, operator: CompiledOperator) -> list[str]:
    """The paths that the compiler is given and that lie in the folder of another backend."""
    paths = [path.resolve() for path in (*operator.sources, *operator.include_dirs)]
    inside = [path.relative_to(ROOT) for path in paths if path.is_relative_to(ROOT)]
    return [str(path) for path in inside if path.parts[0] in BACKENDS and path.parts[0] != backend]


@pytest.mark.parametrize("name", COMPILED)
def test_a_backend_compiles_nothing_of_a_sibling(name: str) -> None:
    assert _of_siblings(*COMPILED[name]) == []


@pytest.mark.parametrize("name", COMPILED)
def test_a_header_is_found_by_its_name_alone(name: str) -> None:
    """An `#include` with a path could reach a sibling past the include folders."""
    _, operator = COMPILED[name]
    folders = {*operator.include_dirs, *(source.parent for source in operator.sources)}
    files = [file for folder in folders for file in folder.iterdir() if file.suffix in {".h", ".cu", ".cpp"}]
    included = [line for file in files for line in re.findall(r'^#include ".*"', file.read_text(), re.MULTILINE)]
    assert included
    assert [line for line in included if "/" in line] == []


#: Files that begin with the list of what to read, in which order.
LISTS = [file for file in ROOT.glob("*/csrc/*") if "// Reading order:" in file.read_text()]


@pytest.mark.parametrize("file", LISTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_reading_list_is_numbered_and_names_files(file: Path) -> None:
    entries = re.findall(r"^// +(\d+)\. (\S+)  ", file.read_text(), re.MULTILINE)
    assert [int(number) for number, _ in entries] == list(range(1, len(entries) + 1))
    for _, path in entries:
        assert any((folder / path).is_file() for folder in (file.parent, ROOT, ROOT.parent)), path


@pytest.mark.parametrize("backend", ["aten_cpp", "cuda_accessor", "cuda_raw_pointer"])
def test_every_kernel_that_teaches_has_a_reading_list(backend: str) -> None:
    operators = {operator.operator for owner, operator in COMPILED.values() if owner == backend}
    named = {file.stem for file in LISTS if file.parts[-3] == backend}
    without_kernel = {"lltm_sequence"} if backend == "cuda_raw_pointer" else set()  # it is on the list of lltm.cu
    assert named == operators - without_kernel


def test_several_backends_are_compiled() -> None:
    assert len({backend for backend, _ in COMPILED.values()}) > 1


def test_a_source_and_a_folder_of_a_sibling_are_noticed() -> None:
    backend, operator = next(iter(COMPILED.values()))
    other = next(name for name in BACKENDS if name != backend)
    source = replace(operator, sources=(*operator.sources, ROOT / other / "csrc" / "kernel.cu"))
    folder = replace(operator, include_dirs=(ROOT / other / "csrc",))
    through = replace(operator, include_dirs=(ROOT / backend / ".." / other,))
    assert _of_siblings(backend, source) == [f"{other}/csrc/kernel.cu"]
    assert _of_siblings(backend, folder) == [f"{other}/csrc"]
    assert _of_siblings(backend, through) == [other]
