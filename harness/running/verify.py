"""Judge a function in a notebook or in a user's test: `verify(my_function, operator="lltm")`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from backends.base import CPU, CUDA
from harness import discovery
from harness.errors import UnknownName
from harness.judging import judge as judging
from harness.judging.contract_check import admit
from harness.judging.subject import Examples, Subject
from harness.properties import all_properties
from harness.rendering.notebook import NotebookReport
from harness.report.levels import LEVELS, SAFE
from harness.report.report import Report
from harness.running import environment, suite
from harness.running.selection import DTYPE_NAMES


def verify(
    function: Callable[..., Any],
    operator: str,
    *,
    device: str | None = None,
    dtypes: Sequence[str] = (),
    properties: Sequence[str] = (),
    examples: int = 20,
    examples_seed: int = 0,
    level: str = SAFE,
    spec_paths: Sequence[Path] = (),
) -> Report:
    """Judge `function`, which has the signature of the contract of `operator`; returns the report.

    `device` is "cpu" or "cuda", by default the GPU where there is one. `dtypes` and `properties` are names, by default
    all. `examples` and `examples_seed` are for the calls that Hypothesis draws. `level` is the last level that
    is required: `report.ok` says whether everything up to it holds, and `harness.report.levels.exit_reason(report)` why
    not. A notebook shows the report as a table, with each failure and its reproducer.

    The function is judged in this process, so a crash ends this process; `pytest --candidate` judges in a separate one.
    Raises UnknownName for an unknown name, Unavailable for a missing device.
    """
    judging.bind()
    contract = discovery.operator(operator, tuple(spec_paths))
    admit(contract)
    known = all_properties()
    for kind, names, those in (
        ("dtype", dtypes, DTYPE_NAMES),
        ("property", properties, known),
        ("level", [level], LEVELS),
    ):
        for name in names:
            if name not in those:
                raise UnknownName(kind, name, those)
    device = device or (CUDA if torch.cuda.is_available() else CPU)
    discovery.require_device(device)
    name = getattr(function, "__name__", type(function).__name__)
    drawn = Examples(examples, examples_seed)
    subjects = [
        Subject(contract, name, device, DTYPE_NAMES[dtype], function, examples=drawn) for dtype in dtypes or DTYPE_NAMES
    ]
    asked = [known[name] for name in properties or known]
    cells = [
        judging.judge(subject, property)
        for subject in subjects
        for property in asked
        if property.is_asked(device, subject.dtype_name)
    ]
    return NotebookReport.of(cells, environment.describe(), suite.describe(), level)
