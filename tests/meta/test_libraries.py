"""Each operator of a backend is a library of its own, in one namespace with the others: they must not mix.

The dynamic linker merges inline functions and their static variables (GNU_UNIQUE) that two libraries export under the
same name, even if each is loaded separately. So a library exports nothing of its own, and two operators in one process
are right in either order.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import groupby, permutations

import pytest

from backends.base import CPU, CUDA_EMULATED, CompiledOperator
from harness import discovery
from harness.building import build
from harness.judging import fresh_process
from tests.meta.tiers import AGAIN, first_of_each

#: Operators that other files of the short tier build too: they come first, and so do their libraries.
_BUILT_ANYWAY = ("lltm", "mlp")


def _compiled() -> list[tuple[str, str, CompiledOperator]]:
    """(backend, device, implementation) of everything that is compiled, on a device that any machine has."""
    found = []
    operators = sorted(discovery.operators(), key=lambda name: name not in _BUILT_ANYWAY)
    for name, backend in discovery.all_backends().items():
        device = CPU if CPU in backend.backend.devices else CUDA_EMULATED
        for operator in operators:
            implementation = backend.implementation(operator)
            if isinstance(implementation, CompiledOperator):
                found.append((name, device, implementation))
    return found


COMPILED = _compiled()
ORDERS = [
    (backend, device, [implementation.operator for _, _, implementation in order])
    for (backend, device), group in groupby(COMPILED, key=lambda row: row[:2])
    for order in permutations(list(group), 2)
]


@pytest.mark.parametrize(
    ("device", "implementation"),
    [
        pytest.param(device, implementation, id=f"{name}-{implementation.operator}", marks=marks)
        for (name, device, implementation), marks in first_of_each(COMPILED, lambda row: [row[1]], AGAIN)
    ],
)
def test_a_library_exports_nothing_of_its_own(device: str, implementation: CompiledOperator) -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("not run: nm is missing, which comes with the compiler's binutils")
    library = build.build(implementation, device)
    listing = subprocess.run([nm, "-DC", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    own = f"{build.namespace(implementation, device)}::"
    assert "at::" in listing
    assert not [line for line in listing.splitlines() if own in line]


@pytest.mark.parametrize(
    ("backend", "device", "names"),
    [pytest.param(*order, marks=marks) for order, marks in first_of_each(ORDERS, lambda order: [order[1]], AGAIN)],
    ids=lambda x: "-".join(x) if isinstance(x, list) else x,
)
def test_operators_share_a_process(backend: str, device: str, names: list[str]) -> None:
    """A fresh process that has loaded no library."""
    for name, _, implementation in COMPILED:
        if name == backend and implementation.operator in names:
            build.build(implementation, device)  # here, where it may take as long as it does
    question = json.dumps([backend, device, names])
    assert fresh_process.asked("tests.meta.operators_together", "held", question, 60) == "right"
