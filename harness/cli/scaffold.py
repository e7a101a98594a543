"""`new-backend` and `new-operator`: generated code that runs at once, inside this repository or outside."""

from __future__ import annotations

import keyword
import re
import shutil
from pathlib import Path

from harness import discovery
from harness.errors import UnknownName, UsageError

_SPEC = '''"""{name}: what it computes, in the field's notation, with shapes.

    output = input * weights                                    (batch, features)

The vector-Jacobian product, with g the cotangent of output:

    d_input   = g * weights                                     (batch, features)
    d_weights = (g * input) summed over the batch               (features,)

Replace the mathematics by yours, here and in `forward` and `vjp`. Every run checks them against each other.
"""

from __future__ import annotations

from torch import Tensor

from spec.contract import Case, Operator, TensorArg


def forward(input: Tensor, weights: Tensor) -> tuple[Tensor]:
    """(output,), of shape (batch, features)."""
    return (input * weights,)


def intermediates(input: Tensor, weights: Tensor) -> dict[str, Tensor]:
    """Intermediate values by name: a report can name the first in which a candidate leaves the reference."""
    return {{"output": input * weights}}


def vjp(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Gradients of input and weights."""
    input, weights = inputs
    (g,) = cotangents
    return g * weights, (g * input).sum(0)


def _case(name: str, batch: int, features: int, origin: str, *tags: str) -> Case:
    return Case(name, {{"batch": batch, "features": features}}, origin, frozenset(tags))


OPERATOR = Operator(
    name="{name}",
    inputs=(TensorArg("input", ("batch", "features")), TensorArg("weights", ("features",))),
    outputs=(TensorArg("output", ("batch", "features")),),
    forward=forward,
    vjp=vjp,
    intermediates=intermediates,
    cases=(
        _case("usual", 64, 256, "say where these sizes come from", "size", "benchmark"),
        _case("small", 3, 5, "fits gradcheck; both sizes prime to the vector width", "size", "small"),
        _case("one-row", 1, 4, "batch 1", "size", "small"),
        _case("no-rows", 0, 4, "the last, empty batch of a data loader", "size"),
        _case("tail", 3, 33, "tail of a warp", "size"),
    ),
)
'''

_BACKEND = '''"""One way of implementing {name}."""

from backends.base import CPU, CUDA, Backend

BACKEND = Backend(summary="plain torch operations, autograd", devices=(CPU, CUDA))
'''

_IMPLEMENTATION = '''"""{name} in torch operations; autograd derives the gradient."""

from __future__ import annotations

from torch import Tensor

from backends.base import PythonFunction, check_arguments
from {package}.contract import OPERATOR


def {name}(input: Tensor, weights: Tensor) -> Tensor:
    """The product, (batch, features)."""
    check_arguments(OPERATOR, input, weights)
    return input * weights


IMPLEMENTATION = PythonFunction({name})
'''

_PROJECT = """[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "{public}"
version = "0.1.0"
dependencies = ["lltm-conformance"]

[project.entry-points."lltm_conformance.operators"]
{name} = "{package}.contract"

[project.entry-points."lltm_conformance.backends"]
{public}-plain = "{package}.plain"

[tool.setuptools]
packages = {{ find = {{ include = ["{package}*"] }} }}
"""


def _identifier(name: str) -> str:
    folder = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", folder) or keyword.iskeyword(folder):
        raise UsageError(
            f"NAME was {name!r}, but should be lower-case letters, digits, - and _, and begin with a letter"
        )
    return folder


def _new_folder(folder: Path) -> Path:
    if folder.exists():
        raise UsageError(f"{folder} exists already: choose another name, or move it away")
    folder.mkdir(parents=True)
    return folder


def new_operator(name: str, into: Path) -> str:
    """Write a package with a contract and a backend; returns what to do next. Raises UsageError."""
    folder = _identifier(name)
    if folder in discovery.operators():
        raise UsageError(f"there is an operator {folder!r} already; choose another name")
    root = _new_folder(into / folder.replace("_", "-"))
    words = {"name": folder, "package": f"{folder}_conformance", "public": folder.replace("_", "-")}
    package = root / words["package"]
    (package / "plain").mkdir(parents=True)
    (package / "__init__.py").write_text(f'"""The operator {folder}: its contract and its backends."""\n')
    (package / "contract.py").write_text(_SPEC.format(**words))
    (package / "plain" / "__init__.py").write_text(_BACKEND.format(**words))
    (package / "plain" / f"{folder}.py").write_text(_IMPLEMENTATION.format(**words))
    (root / "pyproject.toml").write_text(_PROJECT.format(**words))
    return (
        f"written: {root}\n"
        f"  pip install -e {root}\n"
        f"  python -m harness judge --operator {folder} --backend {words['public']}-plain"
    )


def new_backend(name: str, like: str, into: Path) -> str:
    """Copy a backend, to be changed one operator at a time; returns what to do next. Raises UsageError, UnknownName."""
    folder = _identifier(name)
    known = discovery.all_backends()
    if like not in known:
        raise UnknownName("backend", like, known)
    if discovery.public_name(folder) in known:
        raise UsageError(f"there is a backend {discovery.public_name(folder)!r} already; choose another name")
    source = Path(str(known[like].package.__file__)).parent
    target = into / folder
    if target.exists():
        raise UsageError(f"{target} exists already: choose another name, or move it away")
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    for path in sorted(target.glob("*.py")):
        # Two libraries must not register their operators in the same namespace.
        path.write_text(path.read_text().replace(f'namespace="{source.name}"', f'namespace="{folder}"'))
    return (
        f"written: {target}, a copy of {like}\n"
        f"  python -m harness judge --backend-path {target} --backend {discovery.public_name(folder)}"
    )
