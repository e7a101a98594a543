"""Products of half types in float32, which is how implementations are watched by compute-sanitizer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from harness.judging.scenarios import ordinary
from harness.running.selection import Selection, slots
from harness.sanitizing import products
from harness.sanitizing.products import HALF, in_float32

Product = Callable[[Tensor, Tensor, Tensor], Tensor]


def _into(name: str, *given: Tensor) -> Tensor:
    shape = (given[-2] @ given[-1]).shape
    return getattr(torch, name)(*given, out=given[0].new_empty(shape))


_FORMS: dict[str, Product] = {
    "mm": lambda c, a, b: a @ b,
    "mm into out": lambda c, a, b: _into("mm", a, b),
    "mm into an empty out": lambda c, a, b: torch.mm(a, b, out=a.new_empty(0)),
    "addmm": lambda c, a, b: torch.addmm(c, a, b, beta=2.0, alpha=0.5),
    "addmm into out": lambda c, a, b: _into("addmm", c, a, b),
    "addmm in place": lambda c, a, b: c.clone().addmm_(a, b),
    "linear": lambda c, a, b: torch.nn.functional.linear(a, b.t().contiguous(), c[0]),
    "bmm": lambda c, a, b: torch.stack([a, a]) @ torch.stack([b, b]),
    "baddbmm": lambda c, a, b: torch.baddbmm(c[None], a[None], b[None]),
    "baddbmm in place": lambda c, a, b: c[None].clone().baddbmm_(a[None], b[None], alpha=3.0),
}


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("dtype", HALF)
def test_a_product_is_rounded_once(form: str, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    c, a, b = (torch.randn(shape, generator=generator).to(dtype) for shape in ((5, 3), (5, 700), (700, 3)))
    product = _FORMS[form]
    wide = product(c.float(), a.float(), b.float())
    with in_float32("CPU"):
        narrow = product(c, a, b)
        assert torch.equal(product(c.float(), a.float(), b.float()), wide), "of float32 as without"
    assert narrow.dtype is dtype
    assert torch.equal(narrow, wide.to(dtype))


def test_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _count(monkeypatch)
    a = torch.ones(2, 2, dtype=torch.float16)
    with in_float32("CPU"):
        a @ a
    assert (a @ a).dtype is torch.float16
    assert len(asked) == 1


@pytest.mark.parametrize("backend", ["aten-cpp", "cuda-raw-pointer", "python-autograd"])
def test_products_in_cpp_and_of_backward_are_made_so(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both products of forward and backward, whether C++, the engine of autograd or Python asks for them."""
    device = "cuda-emulated" if backend.startswith("cuda") else "cpu"
    selection = Selection(operators=("lltm",), backends=(backend,), devices=(device,), dtypes=("bfloat16",))
    subject = slots(selection)[0].subject()
    asked = _count(monkeypatch)
    scenario = ordinary(subject.operator)[0]
    with in_float32("CPU"):
        call = subject.realise(scenario)
        outputs = subject.outputs(call, scenario)
        forward = len(asked)
        subject.gradients(call, outputs, scenario)
    assert (forward, len(asked) >= 3) == (1, True)


def _count(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the products that are made in float32, as they are made."""
    asked: list[str] = []
    widened = products._widened

    def counted(name: str, there: object) -> Callable[..., Tensor]:
        call = widened(name, there)

        def seen(keys: object, *given: object, **rest: object) -> Tensor:
            if any(isinstance(value, Tensor) and value.dtype in HALF for value in given):
                asked.append(name)
            return call(keys, *given, **rest)

        return seen

    monkeypatch.setattr(products, "_widened", counted)
    return asked
