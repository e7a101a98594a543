"""Find operators and backends by folder, by path and by entry point. No other module of the project imports one."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch

import backends
import spec
from backends.base import CUDA, DEVICES, TRITON_INTERPRETED, Backend, Implementation, MissingDependency
from harness.building import build
from harness.candidate import Candidate
from harness.errors import Broken, Unavailable, UnknownName, UsageError
from spec.contract import Operator
from spec.python_files import import_named, import_source

OPERATORS_GROUP = "lltm_conformance.operators"
BACKENDS_GROUP = "lltm_conformance.backends"
#: What the names of packages begin with that are imported from `--backend-path`.
_EXTERNAL_BACKEND = "external_backend_"

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class FoundBackend:
    """A backend's public name, its `BACKEND`, and the package that holds its operators."""

    name: str
    backend: Backend
    package: ModuleType

    def files(self) -> list[Path]:
        """Every file of the backend's folder that may be source code."""
        return [
            path
            for folder in self.package.__path__
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file() and path.suffix != ".pyc"
        ]

    def speaks_of(self, operator: str) -> bool:
        """Whether the backend has a file for that operator, or says why it has none."""
        return operator in self.backend.absent or self._file(operator)

    def missing(self) -> str:
        """What pip would install, if a package that all of the backend needs is missing; otherwise ""."""
        return next(
            (what for module, what in self.backend.needs.items() if importlib.util.find_spec(module) is None), ""
        )

    def in_its_forms(self, operator: Operator) -> Operator:
        """The contract without the forms that the backend lacks: the same object each time. Raises Broken."""
        lacks, place = self.backend.lacks.get(operator.name), (self.name, id(operator))
        if not lacks:
            return operator
        if place not in _narrowed:
            try:
                found = operator.without(lacks)
            except ValueError as error:
                raise Broken(f"lacks of the backend {self.name}: {error}") from None
            module = origin(operator)
            if module is not None:
                _origins[id(found)] = (found, module)
            _narrowed[place] = (operator, found)
        return _narrowed[place][1]

    def _file(self, operator: str) -> bool:
        return importlib.util.find_spec(f"{self.package.__name__}.{operator}") is not None

    def implementation(self, operator: str) -> Implementation | None:
        """The backend's implementation of that operator; None if it has no such file. Raises Broken."""
        name = f"{self.package.__name__}.{operator}"
        if not self._file(operator):
            return None
        if operator in self.backend.absent:
            raise Broken(
                f"{self.name} declares that it has no {operator} ({self.backend.absent[operator]}), but it has: "
                "remove the declaration"
            )
        missing = self.missing()
        if missing:
            return MissingDependency(missing)
        module = _imported(name)
        found = getattr(module, "IMPLEMENTATION", None)
        if not isinstance(found, Implementation):
            raise Broken(
                f"{module.__file__} has IMPLEMENTATION = {found!r}, "
                "but should set PythonFunction(...), CompiledOperator(...) or MissingDependency(...)"
            )
        return found


def public_name(folder: str) -> str:
    """`cuda_raw_pointer` -> `cuda-raw-pointer`."""
    return folder.replace("_", "-")


def _imported(name: str, importer: Callable[[str], ModuleType] = importlib.import_module) -> ModuleType:
    try:
        return importer(name)
    # Whatever a module raises while it is imported is reported as that module's fault.
    except (Exception, SystemExit) as error:
        raise Broken(f"{name} does not import: {type(error).__name__}: {error}") from error


def import_file(path: Path, name: str) -> ModuleType:
    """Import a Python file, or a package by its folder, once. Raises UsageError or Broken.

    The module's name is `name` and a digest of the path, so two files of the same name are two modules.
    """
    name = f"{name}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    is_package = path.is_dir()
    file = path / "__init__.py" if is_package else path
    if not file.exists():
        raise UsageError(f"{file} does not exist")
    if file.suffix != ".py":
        raise UsageError(f"{file} is not a Python file")
    try:
        return import_source(file, name, path if is_package else None)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Broken(f"{file} does not import: {type(error).__name__}: {error}") from error


@cache
def operators(paths: tuple[Path, ...] = ()) -> dict[str, Operator]:
    """Every operator by name: `spec/*.py` that set OPERATOR, entry points, and the files in `paths`."""
    modules = [_imported(f"spec.{info.name}") for info in pkgutil.iter_modules(spec.__path__)]
    modules += [_imported(entry.value) for entry in entry_points(group=OPERATORS_GROUP)]
    external = [import_file(path.resolve(), f"external_spec_{path.stem}") for path in paths]
    for path, module in zip(paths, external, strict=True):
        if not isinstance(getattr(module, "OPERATOR", None), Operator):
            raise Broken(f"--spec-path {path} sets no OPERATOR = Operator(...)")
    found: dict[str, Operator] = {}
    for module in [*modules, *external]:
        operator = getattr(module, "OPERATOR", None)
        if isinstance(operator, Operator):
            if operator.name in found:
                raise UsageError(f"{module.__file__}: there is an operator {operator.name!r} already; rename it")
            found[operator.name] = operator
            _origins.update((id(form), (form, module.__name__)) for form in operator.every_form())
    for path, module in zip(paths, external, strict=True):
        _outside[module.OPERATOR.name] = path.resolve()
    return found


#: The files of contracts that were given by their path, by operator.
_outside: dict[str, Path] = {}


#: By the name of a backend and the identity of a contract: the contract, and the one without the forms that it lacks.
_narrowed: dict[tuple[str, int], tuple[Operator, Operator]] = {}


#: By the identity of each form of a contract: that form, and the module in which it was found.
_origins: dict[int, tuple[Operator, str]] = {}


def origin(operator: Operator) -> str | None:
    """The name of the module in which this very contract was found; None for one that a program has made."""
    return _origins[id(operator)][1] if id(operator) in _origins else None


def contract_file(operator: str) -> Path | None:
    """The file of a contract that was given by its path in this process; None for the others."""
    return _outside.get(operator)


def _backend(package: ModuleType, name: str) -> FoundBackend:
    found = getattr(package, "BACKEND", None)
    if not isinstance(found, Backend):
        raise Broken(f"{package.__file__} has BACKEND = {found!r}, but should set BACKEND = Backend(...)")
    return FoundBackend(name, found, package)


def _folders(path: Path) -> Iterable[Path]:
    if (path / "__init__.py").exists():
        yield path
        return
    folders = (
        [folder for folder in sorted(path.iterdir()) if (folder / "__init__.py").exists()] if path.is_dir() else []
    )
    if not folders:
        raise UsageError(
            f"--backend-path {path} should be a backend's folder, with an __init__.py, or a folder of them"
        )
    yield from folders


@cache
def all_backends(paths: tuple[Path, ...] = ()) -> dict[str, FoundBackend]:
    """Every backend by public name: the folders beside `backends/base.py`, entry points, and those in `paths`."""
    found: dict[str, FoundBackend] = {}
    for info in pkgutil.iter_modules(backends.__path__):
        if info.ispkg and not info.name.startswith("_"):
            name = public_name(info.name)
            found[name] = _backend(_imported(f"backends.{info.name}"), name)
    for entry in entry_points(group=BACKENDS_GROUP):
        if entry.name in found:
            raise UsageError(f"entry point {entry.value}: there is a backend {entry.name!r} already; rename it")
        found[entry.name] = _backend(_imported(entry.value), entry.name)
    for path in paths:
        for folder in _folders(path.resolve()):
            name = public_name(folder.name)
            if name in found:
                raise UsageError(f"--backend-path {folder}: there is a backend {name!r} already; rename the folder")
            found[name] = _backend(import_file(folder, f"{_EXTERNAL_BACKEND}{folder.name}"), name)
    return found


def operator(name: str, paths: tuple[Path, ...] = ()) -> Operator:
    """The operator of that name. Raises UnknownName."""
    return _named("operator", name, operators(paths))


def backend(name: str, paths: tuple[Path, ...] = ()) -> FoundBackend:
    """The backend of that name. Raises UnknownName."""
    return _named("backend", name, all_backends(paths))


def _named(kind: str, name: str, known: Mapping[str, _Found]) -> _Found:
    if name not in known:
        raise UnknownName(kind, name, known)
    return known[name]


def require_device(device: str) -> None:
    """Raise Unavailable, with the reason, if this machine lacks `device`; UnknownName if there is no such device."""
    if device not in DEVICES:
        raise UnknownName("device", device, DEVICES)
    if device == CUDA and not torch.cuda.is_available():
        raise Unavailable(f"no CUDA device on this machine (torch {torch.__version__})")
    if device == TRITON_INTERPRETED and importlib.util.find_spec("triton") is None:
        raise Unavailable("triton is not installed: pip install triton")


def require_device_of_caller(device: str) -> None:
    """The same for a function that this process imports: Triton decides by a variable how it runs kernels.

    Raises UsageError if the variable is not set.
    """
    require_device(device)
    if device == TRITON_INTERPRETED and os.environ.get("TRITON_INTERPRET") != "1":
        raise UsageError(
            f"device was {device!r}, but TRITON_INTERPRET is not 1: set it to 1 before Python starts, since Triton "
            "reads it when a kernel is defined"
        )


def load_function(operator: str, backend: str, device: str) -> Callable[..., Any]:
    """The function of a shipped backend, built if necessary. Raises UnknownName, Unavailable or Broken."""
    found = _named("backend", backend, all_backends())
    require_device(device)
    if device not in found.backend.devices:
        raise Unavailable(f"backend {backend!r} runs on {', '.join(found.backend.devices)}, not on {device!r}")
    implementation = found.implementation(operator)
    if implementation is None:
        why = found.backend.absent.get(operator)
        raise Unavailable(f"backend {backend!r} has no {operator!r}{f': {why}' if why else ''}")
    return build.load(implementation, device)


def load_function_of(package: str, folder: str, operator: str, device: str) -> Callable[..., Any]:
    """The function of a backend, found by the name of its package, or by its folder where it is of `--backend-path`.

    Raises Unavailable or Broken.
    """
    path = Path(folder)
    is_given = package.startswith(_EXTERNAL_BACKEND)
    module = import_file(path, f"{_EXTERNAL_BACKEND}{path.name}") if is_given else _imported(package)
    implementation = _backend(module, public_name(path.name)).implementation(operator)
    if implementation is None:
        raise Unavailable(f"{package} has no {operator!r}")
    return build.load(implementation, device)


def load_candidate(found: Candidate) -> tuple[Callable[..., Any], dict[str, str]]:
    """Import the candidate into this process: the function, and what its module declares that it does not do.

    Raises UsageError, UnknownName, Broken.
    """
    path = Path(found.where)
    is_file = found.where.endswith(".py")
    module = import_file(path, f"candidate_{path.stem}") if is_file else _imported(found.where, import_named)
    function, declared = getattr(module, found.attribute, None), getattr(module, "DECLARED", {})
    names = [name for name in vars(module) if not name.startswith("_")]
    checked = found.check(callable(function), type(function).__name__, names, declared, repr(declared))
    assert function is not None
    return function, checked
