"""An operator with optional tensors and attributes, written once by name, as its forms: contracts of a few tensors.

The formulas take every tensor and attribute by its name. A form says which tensors are passed, and which attributes
have another value than the default. It calls an implementation as a user does: tensors in the order of the signature,
None for those between that are left away, attributes by name unless they stand between tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from spec.contract import Case, Operator, TensorArg

#: Types of contracts: outputs or cotangents, a tensor that may be left away, expressions of a shape, cases.
Tensors = tuple[Tensor, ...]
Optional = Tensor | None
Shape = tuple[str, ...]
Cases = tuple[Case, ...]


@dataclass(frozen=True)
class Formulas:
    """What an operator computes. `signature` has its tensors in order, and the attributes that stand between them.

    `forward(**named)` returns the outputs; `vjp(cotangents, **named)` the gradients by name, perhaps more than are
    asked; `intermediates(**named)` the steps.
    """

    name: str
    signature: tuple[str, ...]
    forward: Callable[..., tuple[Tensor, ...]]
    vjp: Callable[..., Mapping[str, Tensor]]
    intermediates: Callable[..., dict[str, Tensor]]

    def in_form(
        self, form: str, inputs: Sequence[TensorArg], attributes: Mapping[str, Any] | None = None, **rest: Any
    ) -> Operator:
        """The contract of the form with these tensors and attributes; `rest` are further fields of `Operator`."""
        names, given = [arg.name for arg in inputs], dict(attributes or {})
        positional = self.signature[: 1 + max(self.signature.index(name) for name in names)]
        by_name = {name: value for name, value in given.items() if name not in positional}

        def named(tensors: Sequence[Tensor]) -> dict[str, Any]:
            return {**dict(zip(names, tensors, strict=True)), **given}

        def vjp(tensors: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            found = self.vjp(cotangents, **named(tensors))
            return tuple(found[name] for name in names)

        def call(function: Callable[..., Any], *tensors: Tensor) -> Any:
            passed = named(tensors)
            return function(*(passed.get(name) for name in positional), **by_name)

        return Operator(
            name=self.name,
            form=form,
            inputs=tuple(inputs),
            forward=lambda *tensors: self.forward(**named(tensors)),
            vjp=vjp,
            intermediates=lambda *tensors: self.intermediates(**named(tensors)),
            call=call,
            **rest,
        )
