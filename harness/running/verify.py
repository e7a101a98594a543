"""Judge a function in a notebook or in a user's test: `verify(my_function, operator="lltm")`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from backends.base import CPU, CUDA
from harness import discovery
from harness.candidate import check_declared, forward_name
from harness.deriving.contract import derive_from
from harness.errors import UnknownName, UsageError
from harness.judging import judge as judging
from harness.judging.contract_check import admit
from harness.judging.subject import Examples, Subject
from harness.properties import all_properties
from harness.rendering.notebook import NotebookReport
from harness.report.levels import LEVELS, SAFE
from harness.report.report import Report
from harness.running import candidate_files, environment, suite
from harness.running.selection import DTYPE_NAMES, declarations
from spec.forward_only import forward_only as without_gradient


def verify(
    function: Callable[..., Any],
    operator: str = "",
    *,
    reference: Callable[..., Any] | None = None,
    example: Any = None,
    device: str | torch.device | None = None,
    dtypes: str | torch.dtype | Sequence[str | torch.dtype] = (),
    properties: str | Sequence[str] = (),
    examples: int = 20,
    examples_seed: int = 0,
    level: str = SAFE,
    spec_paths: Sequence[Path] = (),
    forward_only: bool = False,
) -> Report:
    """Judge `function`, which has the signature of the contract of `operator` or of `reference`; returns the report.

    `reference` is a slow function that you trust, in plain torch; the contract is derived from it. Where its
    annotations do not say the shapes, `example` does: the arguments of one call, as a tuple or a dict.

    `device` is "cpu" or "cuda", by default the GPU where there is one. `dtypes` and `properties` are one or several
    names, by default all; a dtype or device of torch is one too. With `forward_only` no gradient is asked, as for a
    kernel for inference. What the function's module declares in DECLARED is
    `declared`, as for `judge`. `examples` and `examples_seed` are for the calls that Hypothesis draws. `level` is the
    last level that is required: `report.ok` says whether everything up to it holds, and
    `harness.report.levels.exit_reason(report)` why not. A notebook shows the report as a table, with each failure and
    its reproducer.

    The function is judged in this process, so a crash ends this process; `pytest --candidate` judges in a separate one.
    Raises UnknownName for an unknown name, Unavailable for a missing device.
    """
    judging.bind()
    if bool(operator) is (reference is not None):
        raise UsageError("verify needs either operator, the name of a contract, or reference, a function; not both")
    if reference is None:
        contract = discovery.operator(operator, tuple(spec_paths))
        contract = without_gradient(contract, forward_name(operator)) if forward_only else contract
    else:
        contract = derive_from(reference, example, forward_only=forward_only).operator
        dtypes = dtypes or tuple(contract.dtypes)
    admit(contract)
    known = all_properties()
    dtype_names = [
        str(dtype).removeprefix("torch.") for dtype in _several("dtypes", "float32", dtypes, (str, torch.dtype))
    ]
    property_names = _several("properties", "sizes", properties, (str,))
    for kind, names, those in (
        ("dtype", dtype_names, DTYPE_NAMES),
        ("property", property_names, known),
        ("level", [level], LEVELS),
    ):
        for name in names:
            if name not in those:
                raise UnknownName(kind, name, those)
    device = _device(device)
    discovery.require_device_of_caller(device)
    declared = declarations(_declared(function))
    name = getattr(function, "__name__", type(function).__name__)
    drawn = Examples(examples, examples_seed)
    files = candidate_files.file_of_function(function)
    subjects = [
        Subject(contract, name, device, DTYPE_NAMES[dtype], function, declared, examples=drawn, files=files)
        for dtype in dtype_names or DTYPE_NAMES
    ]
    asked = [known[name] for name in property_names or known]
    cells = [
        judging.judge(subject, property)
        for subject in subjects
        for property in asked
        if property.is_asked(device, subject.dtype_name)
    ]
    facts = {**environment.describe(), "candidates": candidate_files.of_function(function, name, contract.name)}
    return NotebookReport.of(cells, facts, suite.describe(), level)


def _several(argument: str, example: str, given: Any, kinds: tuple[type, ...]) -> list[Any]:
    """One value or several, as a list. Raises UsageError."""
    values = [given] if isinstance(given, kinds) else list(given) if isinstance(given, Iterable) else [given]
    for value in values:
        if not isinstance(value, kinds):
            raise UsageError(
                f"{argument} was {given!r}, but should be {example!r}, for example, or a list of such names"
            )
    return values


def _device(given: str | torch.device | None) -> str:
    """Raises UsageError for a device that is not the first of its kind."""
    if given is None:
        return CUDA if torch.cuda.is_available() else CPU
    if isinstance(given, torch.device):
        if given.index:
            raise UsageError(f"device was {given}, but should be the first GPU: choose it by CUDA_VISIBLE_DEVICES")
        return given.type
    if not isinstance(given, str):
        raise UsageError(f"device was {given!r}, but should be 'cpu' or 'cuda'")
    return given


def _declared(function: Callable[..., Any]) -> dict[str, str]:
    """DECLARED of the module that defines the function. Raises UsageError if it is no dict of texts."""
    where = str(getattr(function, "__module__", None))
    found = getattr(sys.modules.get(where), "DECLARED", {})
    return check_declared(where, found, repr(found))
