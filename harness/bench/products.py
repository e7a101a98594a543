"""Lower bounds of an operator's time: its matrix products alone, and these with the memory traffic between them.

The reference runs once while all matrix products are recorded with their operands. The same products are then computed
again, each in the fastest of the forms that the library offers. No operator needs extra code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from harness.measuring import clocks
from harness.measuring.work import BACKWARD, FORWARD, Inputs, Step, Work
from spec.contract import Operator

#: Names of rows that belong to no backend: the products; and the products with a copy of the other bytes that must be
#: moved.
PRODUCTS_ALONE, FLOOR = "products-alone", "floor"

_mm, _addmm = torch.ops.aten.mm.default, torch.ops.aten.addmm.default
_BATCHED = frozenset({torch.ops.aten.bmm.default, torch.ops.aten.baddbmm.default})
#: Calls in a sample of a form, and samples.
_CALLS, _SAMPLES = 16, 3

Product = Sequence[Callable[[], Any]]


def is_backend(name: str) -> bool:
    """Whether a row of that name is a backend's; a peer has a dotted name, which no folder can have."""
    return name not in (PRODUCTS_ALONE, FLOOR) and "." not in name


def _forms(func: Any, args: Any, kwargs: Any) -> Product:
    """The same product, requested in different ways: each may use another routine of the library."""
    if func not in (_mm, _addmm) or kwargs:
        return (partial(func, *args, **kwargs),)
    a, b = args[-2:]
    return (partial(func, *args), partial(torch.mm, a, b), partial(torch.mm, b.t(), a.t()))


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records every product while it is active."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.made: list[Product] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (_mm, _addmm) or func in _BATCHED:
            held = tuple(value.detach() if isinstance(value, Tensor) else value for value in args)
            self.made.append(_forms(func, held, kwargs or {}))
        return func(*args, **(kwargs or {}))


def prepare(operator: Operator, ring: Sequence[tuple[Inputs, Inputs]], phase: str, device: str) -> Work | None:
    """The products of a phase as work; None if the reference has none."""
    made = [_recorded(operator, inputs, cotangents, phase) for inputs, cotangents in ring]
    if not made[0]:
        return None
    chosen = [_fastest(product, device) for product in made[0]]
    return Work([_step([forms[k] for forms, k in zip(each, chosen, strict=True)]) for each in made], device)


def prepare_floor(products: Work | None, between: int, device: str) -> Work | None:
    """The products and a copy that moves `between` bytes; None if there are no products or no bytes."""
    if between == 0:
        return None
    source = torch.zeros(between // 2, dtype=torch.int8, device=device)
    target = torch.empty_like(source)

    def with_copy(step: Step) -> Step:
        def both() -> None:
            step()
            target.copy_(source)

        return both

    return Work([with_copy(step) for step in (products.steps if products else [lambda: None])], device)


def _recorded(operator: Operator, inputs: Inputs, cotangents: Inputs, phase: str) -> list[Product]:
    asked = [arg.differentiable for arg in operator.inputs]
    leaves = [tensor.detach().requires_grad_(wanted) for tensor, wanted in zip(inputs, asked, strict=True)]
    with _Recorder() as forward:
        outputs = [y for y in operator.forward(*leaves) if y.requires_grad]
    with _Recorder() as backward:
        if outputs:
            torch.autograd.grad(outputs, [leaf for leaf in leaves if leaf.requires_grad], cotangents)
    made: list[Product] = [] if phase == BACKWARD else list(forward.made)
    return made if phase == FORWARD else made + list(backward.made)


def _fastest(product: Product, device: str) -> int:
    """The index of the fastest form; on a GPU without the host's time."""
    timed = clocks.graph if device == clocks.CUDA else clocks.wall
    took = []
    for form in product:
        work = Work([_step([form])], device)
        work.once()
        took.append(min(timed(work, _CALLS) for _ in range(_SAMPLES)))
    return took.index(min(took))


def _step(forms: Sequence[Callable[[], Any]]) -> Step:
    def products() -> None:
        with torch.no_grad():
            for form in forms:
                form()

    return products
