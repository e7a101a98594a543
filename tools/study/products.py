"""What BLAS++'s testers compare an error with, for operators that are more than one product.

The testers of BLAS++ (`test/check_gemm.hh`) accept C = alpha A B + beta C0 of inner size k if

    ||C - C_ref||_F <= u (sqrt(k + 2) |alpha| ||A||_F ||B||_F + 2 |beta| ||C0||_F)

An operator has several products and sums, and functions between them. Its reference is evaluated in float64, and each
tensor on the way is given a length k and a magnitude for each element:

- a product: its inner size, and the length of A's row times that of B's column. The Frobenius norm of this magnitude is
  ||A||_F ||B||_F, and a part of the product has the magnitude of that part.
- a sum or mean over K elements: a product with K ones, or with K times 1/K.
- an addition: the sum of the two magnitudes. In a block `one_sum()` of the contract the two sums are one, and as long
  as both together.
- a multiplication of elements: the product of the two magnitudes.
- an operation that moves data moves the magnitude.
- everything else, and what is in a block `apart()`: |y| itself.

Wherever two lengths meet, the larger one counts: k is the longest sum on the way to a result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from harness.judging.oracle import evaluate
from harness.judging.scenario import Call
from spec.blocks import inside
from spec.contract import Operator

_aten = torch.ops.aten
#: Operations whose result holds elements of their arguments.
_MOVES = frozenset(
    {
        _aten._unsafe_view.default,
        _aten.alias.default,
        _aten.cat.default,
        _aten.clone.default,
        _aten.detach.default,
        _aten.expand.default,
        _aten.permute.default,
        _aten.select.int,
        _aten.slice.Tensor,
        _aten.split.Tensor,
        _aten.split_with_sizes.default,
        _aten.squeeze.dim,
        _aten.stack.default,
        _aten.t.default,
        _aten.transpose.int,
        _aten.unbind.int,
        _aten.unsqueeze.default,
        _aten.view.default,
        _aten.where.self,
    }
)
_ADDITIONS = frozenset({_aten.add.Tensor, _aten.sub.Tensor})
_SUMS = frozenset({_aten.sum.dim_IntList, _aten.mean.dim})


@dataclass(frozen=True)
class Sums:
    """The longest sum on the way to a tensor, the magnitude of each element, and the length of its own last sum."""

    k: int
    magnitude: Tensor
    last: int = 0

    def allowed(self, unit: float, finite: Tensor) -> float:
        """sqrt(k + 2) u times the Frobenius norm of the magnitude, over the elements that `finite` masks."""
        return math.sqrt(self.k + 2) * unit * float(torch.nan_to_num(self.magnitude[finite], nan=0.0).norm())


class _Sums(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the sums of every tensor that is computed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        # The tensor is kept too: another one could get its id.
        self._known: dict[int, tuple[Tensor, Sums]] = {}

    def of(self, tensor: Tensor) -> Sums:
        """The sums of a tensor; those of an input are one term."""
        known = self._known.get(id(tensor))
        return known[1] if known else Sums(0, tensor.abs() if tensor.is_floating_point() else tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # In inference mode an operation that consists of others arrives whole.
        with self:
            result = func.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
        result = func(*args, **kwargs)
        given = [self.of(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        k = max((sums.k for sums in given), default=0)
        if func is _aten.mm.default:
            left, right = args
            lengths = left.norm(dim=1, keepdim=True) * right.norm(dim=0, keepdim=True)
            self._note(result, k, lengths, left.shape[1])
        elif func in _SUMS:
            terms = math.prod(args[0].shape[dim] for dim in args[1])
            lengths = torch.linalg.vector_norm(args[0], dim=args[1], keepdim=any(args[2:3]))
            shares = terms if func is _aten.mean.dim and terms else 1
            self._note(result, k, lengths * math.sqrt(terms) / shares, terms)
        elif func is _aten.mul.Tensor and len(given) == 2 and not inside("apart"):
            first, second = given
            self._note(result, k, first.magnitude * second.magnitude)
        elif func in _ADDITIONS and len(given) == 2 and not inside("apart"):
            first, second = given
            together = first.last + second.last if inside("one_sum") else 0
            self._note(result, k, first.magnitude + second.magnitude, together)
        elif func in _MOVES:
            moved = func(*tree_map(self._magnitude, args), **kwargs)
            last = max(sums.last for sums in given)
            for one, magnitude in zip(tree_leaves(result), tree_leaves(moved), strict=True):
                self._note(one, k, magnitude, last)
        else:
            for one in tree_leaves(result):
                if isinstance(one, Tensor) and one.is_floating_point():
                    self._note(one, k, one.abs())
        return result

    def _magnitude(self, leaf: Any) -> Any:
        return self.of(leaf).magnitude if isinstance(leaf, Tensor) else leaf

    def _note(self, tensor: Tensor, k: int, magnitude: Tensor, last: int = 0) -> None:
        self._known[id(tensor)] = tensor, Sums(max(k, last), magnitude, last)


def sums_of(operator: Operator, call: Call) -> dict[str, Sums]:
    """The sums of each output and gradient of a call, by their names in a `Measure`."""
    names = [*(arg.name for arg in operator.outputs), *(f"gradient of {arg.name}" for arg in operator.inputs)]
    # In inference mode a view is the tensor that the operation returned, and not a copy of it.
    with torch.inference_mode(), _Sums() as noted:
        found = evaluate(operator, call.to_float64())
    return {name: noted.of(tensor) for name, tensor in zip(names, found, strict=True)}
