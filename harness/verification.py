"""Judge a function that stands in a notebook or in somebody's test: `verify(my_function, operator="lltm")`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from backends.base import CPU, CUDA
from harness import discovery
from harness import judge as court
from harness.admission import admit
from harness.drawing import PLAN
from harness.errors import UnknownName
from harness.options import DTYPE_NAMES
from harness.properties import all_properties
from harness.report import Report
from harness.subject import Subject


def verify(
    function: Callable[..., Any],
    operator: str,
    *,
    device: str | None = None,
    dtypes: Sequence[str] = (),
    properties: Sequence[str] = (),
    examples: int = 20,
    examples_seed: int = 0,
    spec_paths: Sequence[Path] = (),
) -> Report:
    """Judge `function`, which has the signature of the contract of `operator`; returns the report.

    `device` is "cpu" or "cuda", by default the GPU where there is one. `dtypes` and `properties` are names, by default
    all. `examples` and `examples_seed` are for the calls that hypothesis draws. `report.ok` says whether everything
    that ran holds; a notebook shows the report as a table, with each failure and its reproducer.

    The function is judged in this process, so what it crashes, it crashes here: `pytest --candidate` judges in a
    process of its own. Raises UnknownName for a name that nothing answers to, Unavailable for a device that is missing.
    """
    court.bind()
    law = discovery.operator(operator, tuple(spec_paths))
    admit(law)
    known = all_properties()
    for kind, names, those in (("dtype", dtypes, DTYPE_NAMES), ("property", properties, known)):
        for name in names:
            if name not in those:
                raise UnknownName(kind, name, those)
    device = device or (CUDA if torch.cuda.is_available() else CPU)
    discovery.require_device(device)
    name = getattr(function, "__name__", type(function).__name__)
    before = PLAN.examples, PLAN.seed
    PLAN.examples, PLAN.seed = examples, examples_seed
    try:
        cells = [
            court.judge(Subject(law, name, device, DTYPE_NAMES[dtype], function), known[property])
            for dtype in dtypes or DTYPE_NAMES
            for property in properties or known
        ]
    finally:
        PLAN.examples, PLAN.seed = before
    return Report.of(cells)
