"""Modules as functions of their inputs and parameters, which is what a contract is about.

A problem in the format of KernelBench is a file with a class `Model`, `get_inputs` and `get_init_inputs`; an answer is
a file with a class `ModelNew`, which is made with the same arguments and has the same parameters. What is written here
is each file as it is, line for line, and at its end a function that calls the module with given parameters.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from harness.deriving.wording import first_line, named
from harness.errors import UsageError
from spec.derived import function_of

#: Begins what is written at the end of a file.
MARK = "# Written by `python -m harness from-modules`"
_INPUTS, _INIT = "get_inputs", "get_init_inputs"
#: Copies a module. One that holds an extension, as many answers do, cannot be copied by deepcopy alone.
_COPIED = """

def _copied(module):
    \"\"\"A copy for another thread. What cannot be copied, such as a compiled extension, is shared.\"\"\"
    shared = {}
    for each in module.modules():
        for name, value in vars(each).items():
            own = name in ("_parameters", "_buffers", "_modules")
            if not own and not isinstance(getattr(value, "__self__", None), _torch.nn.Module):
                try:
                    _copy.deepcopy(value, dict(shared))
                except Exception:
                    shared[id(value)] = value
    return _copy.deepcopy(module, shared)
""".rstrip().split("\n")


@dataclass(frozen=True)
class Problem:
    """The trusted module: its class, how it is made, and the names of what its function takes."""

    where: Path
    name: str
    made_with: tuple[Any, ...]
    #: The names of the arguments of `forward`, and those of the parameters, as the module has them.
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]

    @property
    def function(self) -> str:
        """The name of the function, and so of the operator: that of the file without its number."""
        name = re.sub(r"\W+", "_", self.where.stem).strip("_").lstrip("0123456789_").lower()
        return name or "reference"


def problem(text: str) -> Problem:
    """The problem `FILE.py:CLASS`, which is imported and made. Raises UsageError with what to do."""
    where, name = _parts("--reference", text)
    try:
        found = function_of(str(where), name)
    except AttributeError:
        raise UsageError(f"--reference: {where} has no class {name!r}") from None
    except Exception as error:
        raise UsageError(f"--reference: {where} does not import: {first_line(error)}") from error
    if not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
        raise UsageError(
            f"--reference {text} is no class of torch.nn.Module, but should be one: judge a function by `python -m "
            "harness judge`"
        )
    module = vars(sys.modules[found.__module__])
    made_with = _called(module, where, _INIT)
    if not _is_literal(made_with):
        raise UsageError(
            f"--reference: {_INIT} of {where} returned {made_with!r}, but should return numbers, texts and lists or "
            "tuples of them: another file is to be written with them"
        )
    if _INPUTS not in module:
        raise UsageError(f"--reference: {where} has no function {_INPUTS}: write one that returns arguments of forward")
    given = _called(module, where, _INPUTS)
    try:
        made = found(*made_with)
        made(*given)
    except Exception as error:
        raise UsageError(f"--reference {text}: {name}(...)({_INPUTS}()) raised {first_line(error)}") from error
    parameters = tuple(each for each, _ in made.named_parameters())
    return Problem(where, name, made_with, _arguments(found, len(given), parameters), parameters)


def reference(of: Problem) -> str:
    """The file of the problem with its function and an example of a call."""
    example = [
        "",
        "",
        f"def {_free('example', of.where)}():",
        '    """The arguments of one call."""',
        "    _torch.manual_seed(0)",
        f"    return (*{_INPUTS}(), *(each.detach() for each in _MODULE.parameters()))",
    ]
    return _with(of.where, of.name, of, example)


def example_of(of: Problem) -> str:
    """The name of the function that returns an example."""
    return _free("example", of.where)


def candidate(of: Problem, text: str) -> tuple[str, str]:
    """The file of an answer `FILE.py:CLASS` with its function, and the function's name. Nothing of it is imported."""
    where, name = _parts("--candidate", text)
    try:
        tree = ast.parse(where.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        raise UsageError(f"--candidate: {where} cannot be read: {first_line(error)}") from error
    classes = [each.name for each in ast.walk(tree) if isinstance(each, ast.ClassDef)]
    if name not in classes:
        has = f"it has {', '.join(classes)}" if classes else "it has none"
        raise UsageError(f"--candidate: {where} has no class {name!r}: {has}")
    return _with(where, name, of), function_in(of, where)


def function_in(of: Problem, where: Path) -> str:
    """The name of the function in the file that is made of that one."""
    return _free(of.function, where)


def _with(where: Path, name: str, of: Problem, more: Sequence[str] = ()) -> str:
    """The text of the file, and the module of that name as a function."""
    parameters = _identifiers(of.parameters)
    takes = ", ".join((*of.inputs, *parameters))
    one = "," if len(parameters) == 1 else ""
    lines = [
        "",
        "",
        f"{MARK}: {name} as a function of its inputs and parameters.",
        "import torch as _torch",
        "import copy as _copy",
        "import threading as _threading",
        "",
        f"_MODULE = {name}(*{list(of.made_with)!r})",
        f"_PARAMETERS = {of.parameters!r}",
        "_FOUND = tuple(each for each, _ in _MODULE.named_parameters())",
        "if sorted(_FOUND) != sorted(_PARAMETERS):",
        "    raise TypeError(",
        f'        f"the parameters of {name} were {{_FOUND}}, but should be those of {of.name}, {{_PARAMETERS}}"',
        "    )",
        "_OF_THREAD = _threading.local()  # to call a module with other parameters changes it for that time",
        *_COPIED,
        "",
        "",
        f"def {function_in(of, where)}({takes}):",
        f'    """{name}(...)({", ".join(of.inputs)}) with these parameters. Its buffers are copies."""',
        f"    parameters = dict(zip(_PARAMETERS, ({', '.join(parameters)}{one}), strict=True))",
        f"    tensors = [each for each in ({takes},) if isinstance(each, _torch.Tensor)]",
        "    like = next((each for each in tensors if each.is_floating_point()), tensors[0])",
        "    buffers = {",
        "        name: each.to(like.device, like.dtype if each.is_floating_point() else each.dtype, copy=True)",
        "        for name, each in _MODULE.named_buffers()",
        "    }",
        '    _OF_THREAD.module = getattr(_OF_THREAD, "module", None) or _copied(_MODULE)',
        f"    given = ({', '.join(of.inputs)},)",
        "    return _torch.func.functional_call(_OF_THREAD.module, {**buffers, **parameters}, given)",
        *more,
    ]
    return where.read_text("utf-8").rstrip() + "\n" + "\n".join(lines) + "\n"


def _parts(option: str, text: str) -> tuple[Path, str]:
    where, _, name = text.rpartition(":")
    if not where.endswith(".py") or not name.isidentifier():
        raise UsageError(f"{option} was {text!r}, but should be FILE.py:CLASS")
    if not Path(where).is_file():
        raise UsageError(f"{option}: {where} does not exist")
    return Path(where), name


def _called(module: dict[str, Any], where: Path, name: str) -> tuple[Any, ...]:
    """What that function of the module returns; nothing if it has none."""
    function: Callable[[], Any] | None = module.get(name)
    if function is None:
        return ()
    try:
        found = function()
    except Exception as error:
        raise UsageError(f"--reference: {name} of {where} raised {first_line(error)}") from error
    if not isinstance(found, list | tuple):
        raise UsageError(f"--reference: {name} of {where} returned {named(found)}, but should return a list or a tuple")
    return tuple(found)


def _is_literal(values: tuple[Any, ...]) -> bool:
    try:
        return bool(ast.literal_eval(repr(values)) == values)
    except (ValueError, SyntaxError):
        return False


def _arguments(module: type[torch.nn.Module], count: int, parameters: Sequence[str]) -> tuple[str, ...]:
    """Names for what `forward` gets, other than those of the parameters."""
    signature = list(inspect.signature(module.forward).parameters.values())[1:]
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [each.name for each in signature if each.kind in kinds][:count]
    names += [f"input_{place}" for place in range(len(names), count)]
    taken = set(_identifiers(parameters))
    return tuple(f"{name}_input" if name in taken else name for name in names)


def _identifiers(parameters: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.replace(".", "_") for name in parameters)


def _free(name: str, where: Path) -> str:
    """The name, with underscores until nothing in the file has it."""
    text = where.read_text("utf-8", "replace")
    while re.search(rf"\b{name}\b", text):
        name += "_"
    return name


def is_module(value: Any) -> bool:
    """Whether this is a module, or a class of modules."""
    return isinstance(value, torch.nn.Module) or (isinstance(value, type) and issubclass(value, torch.nn.Module))
