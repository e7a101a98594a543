"""What a fault must know of an operator in one of its forms, read from its contract and from the baseline's source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

import backends.python_autograd
from harness.discovery import operator
from spec.contract import Draw, Operator, TensorArg, evaluate

#: Sizes that a fault does not depend on.
SMALL = (3, 9)
#: A threshold is at most twice the largest size of the operator's own cases, and within these.
LEAST_LIMIT, MOST = 16, 3000
_TAGS = {"size", "model", "benchmark"}


@dataclass(frozen=True)
class Length:
    """A dimension of a tensor: its length is `factor * symbol + addend`."""

    name: str
    dim: int
    rank: int
    symbol: str
    factor: int = 1
    addend: int = 0

    @property
    def text(self) -> str:
        """The length in the source."""
        return f"{self.name}.shape[{self.dim}]"

    def symbol_for(self, length: int) -> int:
        """The least size of the symbol for which the dimension has that length or more."""
        return max(ceil((length - self.addend) / self.factor), 1)

    def of(self, size: int) -> int:
        """The length for that size of the symbol."""
        return self.factor * size + self.addend


@dataclass(frozen=True)
class Form:
    """One form of an operator, and the text of its baseline: a function `_NAME` with `parameters`."""

    contract: Operator
    source: str
    parameters: str
    names: tuple[str, ...]
    optional: frozenset[str]
    attributes: Mapping[str, Any]
    usual: Mapping[str, Any]

    @property
    def tensors(self) -> tuple[TensorArg, ...]:
        return self.contract.inputs

    @property
    def differentiable(self) -> tuple[str, ...]:
        return tuple(arg.name for arg in self.contract.inputs if arg.differentiable)

    def arg(self, name: str) -> TensorArg:
        """The input or output of that name."""
        return next(arg for arg in (*self.contract.inputs, *self.contract.outputs) if arg.name == name)

    def lengths(self, *names: str) -> list[Length]:
        """The dimensions of these tensors, or of all inputs, that a size of the contract decides."""
        args = [self.arg(name) for name in names] or self.contract.inputs
        return [found for arg in args for found in _lengths(arg)]

    def length(self, symbol: str) -> Length | None:
        """The first dimension of an input that is that symbol, or a multiple of it."""
        found = [length for length in self.lengths() if length.symbol == symbol]
        return min(found, key=lambda length: (length.factor, length.addend), default=None)

    def limit(self, symbol: str) -> int:
        """The largest threshold for that size."""
        cases = [case for form in operator(self.contract.name).every_form() for case in form.cases]
        largest = max(
            (case.sizes[symbol] for case in cases if case.tags & _TAGS and symbol in case.sizes), default=LEAST_LIMIT
        )
        return min(largest if symbol in self.contract.sequential else max(2 * largest, LEAST_LIMIT), MOST)

    def sizes(self, rng: Random, **fixed: int) -> dict[str, int]:
        """Small sizes, and these; a size over which the reference loops is smaller."""
        return {
            symbol: fixed.get(symbol, rng.randint(*((2, 4) if symbol in self.contract.sequential else SMALL)))
            for symbol in self.contract.symbols()
        }

    def guard(self) -> str:
        """What is true in calls of this form, so that its tensors can be looked at: present, and of its rank."""
        tests = [f"{arg.name} is not None" for arg in self.tensors if arg.name in self.optional]
        ranks = {
            arg.name: {
                len(other.shape) for form in _forms(self.contract) for other in form.inputs if other.name == arg.name
            }
            for arg in self.tensors
        }
        tests += [
            f"{arg.name}.dim() == {len(arg.shape)}" for arg in self.tensors if len(ranks[arg.name]) > 1 or arg.any_rank
        ]
        return " and ".join(tests) or "True"

    def attribute(self, rng: Random) -> str:
        """A condition on an attribute that has another value than usual in this form; empty if there is none."""
        unusual = [name for name, value in self.attributes.items() if value != self.usual.get(name)]
        plain = [name for name in unusual if isinstance(self.attributes[name], int | str)]
        if not plain:
            return ""
        name = rng.choice(plain)
        value = self.attributes[name]
        return name if value is True else f"{name} == {value!r}"


def _forms(contract: Operator) -> tuple[Operator, ...]:
    return operator(contract.name).every_form()


def _lengths(arg: TensorArg) -> Iterator[Length]:
    rank = len(arg.shape)
    for dim, expression in enumerate(arg.shape):
        symbols = {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}
        if len(symbols) == 1:
            (symbol,) = symbols
            addend = int(evaluate(expression, {symbol: 0}))
            factor = int(evaluate(expression, {symbol: 1})) - addend
            yield Length(arg.name, dim, rank, symbol, factor, addend)


@cache
def forms_of(name: str) -> tuple[Form, ...]:
    """The operator in each of its forms."""
    path = Path(backends.python_autograd.__file__).with_name(f"{name}.py")
    text = path.read_text()
    tree = ast.parse(text)
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    arguments = function.args
    names = tuple(arg.arg for arg in arguments.args)
    defaults = dict(zip(names[len(names) - len(arguments.defaults) :], arguments.defaults, strict=True))
    usual = {each: ast.literal_eval(node) for each, node in defaults.items() if isinstance(node, ast.Constant)}
    optional = frozenset(each for each, value in usual.items() if value is None)
    return tuple(
        Form(
            form,
            _renamed(text, tree, name),
            ast.unparse(arguments),
            names,
            optional,
            {each: value for each, value in _passed(form, names).items() if each not in _tensors(form)},
            usual,
        )
        for form in operator(name).every_form()
    )


def _tensors(form: Operator) -> set[str]:
    return {arg.name for every in _forms(form) for arg in every.inputs}


def _renamed(text: str, tree: ast.Module, name: str) -> str:
    """The source without its docstring, its registration and the import of annotations; the function is `_NAME`."""
    lines = text.splitlines()
    dropped: set[int] = set()
    for node in tree.body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        is_registration = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "IMPLEMENTATION"
        if is_docstring or is_future or is_registration:
            dropped |= set(range(node.lineno - 1, node.end_lineno or node.lineno))
    kept = "\n".join(line for number, line in enumerate(lines) if number not in dropped).strip()
    return (
        kept.replace(f"def {name}(", f"def _{name}(")
        .replace("import PythonFunction, ", "import ")
        .replace("from backends.base import PythonFunction\n", "")
    )


def _passed(form: Operator, names: tuple[str, ...]) -> dict[str, Any]:
    """What the form passes for each parameter."""

    def function(*arguments: Any, **named: Any) -> dict[str, Any]:
        return {**dict(zip(names, arguments, strict=False)), **named}

    sizes = dict.fromkeys(form.symbols(), 3)
    drawn = form.ordinary(sizes, Draw(0))
    found: dict[str, Any] = form.bound(function)(*drawn.values())
    return found
