"""The subject of a check: one implementation of one operator on one device in one dtype, and how to call it.

Properties call a candidate only through this module. So a wrong number of outputs, a wrong shape or an exception is
reported in the same words by all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from backends.base import CUDA, Declaration, declaration_of
from harness.errors import Ended, Failure
from harness.executing import cuda_errors
from harness.judging import foreign_text
from harness.judging.remote import Remote, RemoteError, RunnerFailure
from harness.judging.scenario import Call, Scenario, realise
from harness.report.shards import UNDIVIDED, Shard
from spec import backward
from spec.contract import Operator

#: What a candidate may raise by itself. SystemExit too: a candidate that exits has failed, but the run goes on.
CANDIDATE_ERRORS = (Exception, SystemExit)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Examples:
    """How many calls hypothesis draws for a cell, and from which seed."""

    count: int = 20
    seed: int = 0


#: The default for a cell.
USUAL = Examples()


@dataclass(frozen=True)
class Subject:
    """One implementation of one operator on one device in one dtype. `device` is one of `DEVICES`.

    `source` is where a candidate comes from, as in `--candidate`; empty for a backend. With `outputs_only`, no gradient
    is computed or compared: the judge then finds out whether a failure is one of gradients alone.
    """

    operator: Operator
    backend: str
    device: str
    dtype: torch.dtype
    function: Callable[..., Any]
    declared: tuple[Declaration, ...] = field(default=())
    source: str = ""
    #: The function as it was given, if `function` is a wrapper that calls it in some form.
    raw: Callable[..., Any] | None = None
    examples: Examples = USUAL
    #: The function of a candidate, if it runs in another process. Its tensors here are on the CPU.
    remote: Remote | None = None
    outputs_only: bool = False
    #: Files of the implementation's source, which name others; None if they are not known.
    files: tuple[Path, ...] | None = None
    #: By the title of each form that the backend does not have: the reason. The operator is without these forms.
    lacks: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: The operator with all its forms, if `operator` may be one of them.
    whole: Operator | None = None
    #: Which of the calls of a divisible property are made.
    share: Shard = UNDIVIDED

    @property
    def is_part(self) -> bool:
        """Whether other shards make the rest of the calls."""
        return self.share.count > 1

    def shared(self, calls: Iterable[_T]) -> Iterator[_T]:
        """Every n-th of these calls, where n shards share them out; else all."""
        return islice(calls, self.share.number - 1, None, self.share.count)

    def in_form(self, form: Operator) -> Subject:
        """The same implementation, called in this form of its operator."""
        whole = self.whole or self.operator
        return replace(self, operator=form, whole=whole, function=form.bound(self.function), raw=self.function)

    @property
    def torch_device(self) -> torch.device:
        """The device of the tensors; a simulated GPU works on CPU tensors, and another process has its own tensors."""
        return torch.device("cuda" if self.device == CUDA and self.remote is None else "cpu")

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def declaration(self, property: str) -> Declaration | None:
        """The backend's declaration that it does not hold this property, if there is one."""
        return declaration_of(self.declared, property, self.operator.name, self.device, self.dtype)

    def realise(self, scenario: Scenario, around: float = float("nan")) -> Call:
        """The tensors of a scenario on the subject's device, new each time, requiring grad as the scenario wants.

        `around` is what memory holds around the values of a tensor that is not contiguous.
        """
        call = realise(self.operator, scenario, self.dtype, self.torch_device, around)
        wanted = scenario.wanted_by(self.operator)
        for arg, tensor in zip(self.operator.inputs, call.inputs, strict=True):
            tensor.requires_grad_(arg.name in wanted)
        return call

    def outputs(self, call: Call, scenario: Scenario) -> tuple[Tensor, ...]:
        """Call the function, and check its outputs: see `checked`. Raises Failure."""
        where = f"[{scenario.describe(self.operator)}]"
        try:
            with cuda_errors.held(self.device):
                results = self.function(*call.inputs)
        except RunnerFailure as error:
            raise Ended(
                f"the candidate's process {error} in forward, but should return {_returned(self.operator)} {where}"
            ) from error
        except CANDIDATE_ERRORS as error:
            raise raised_in("forward", error, f"; it should return {_returned(self.operator)} {where}") from error
        return self.checked(results, call, scenario)

    def checked(self, results: Any, call: Call, scenario: Scenario) -> tuple[Tensor, ...]:
        """What a call returned, with number, class, shape, dtype and device as in the contract. Raises Failure."""
        where = f"[{scenario.describe(self.operator)}]"
        if isinstance(results, Tensor) and len(self.operator.outputs) == 1:
            results = (results,)
        if not isinstance(results, tuple | list) or len(results) != len(self.operator.outputs):
            got = f"{len(results)} values" if isinstance(results, tuple | list) else type(results).__name__
            raise Failure(f"forward returned {got}, but should return {_returned(self.operator)} {where}")
        sizes = dict(scenario.sizes)
        for arg, result in zip(self.operator.outputs, results, strict=True):
            if type(result) is not Tensor:
                kind = foreign_text.name(type(result).__name__)
                raise Failure(f"{arg.name} was a {kind}, but should be a torch.Tensor {where}")
            expected = (arg.shape_for(sizes), arg.dtype_in(self.dtype), call.inputs[0].device)
            got_facts = (tuple(result.shape), result.dtype, result.device)
            for what, was, should in zip(("shape", "dtype", "device"), got_facts, expected, strict=True):
                if was != should:
                    rule = f" = {arg.rule()}" if what == "shape" else ""
                    why = f"{what} of {arg.name} was {was}, but should be {should}{rule} {where}"
                    raise Failure(why, figures={"tensor": f"{what} of {arg.name}"})
        return tuple(results)

    def gradients(
        self, call: Call, outputs: tuple[Tensor, ...], scenario: Scenario, retain: bool = False
    ) -> dict[str, Tensor]:
        """Gradients of the wanted inputs, by name. Raises Failure if one is missing or has a wrong shape or dtype.

        The graph is kept only with `retain`: a compiled backward may refuse that, since it reuses the saved tensors.
        With `outputs_only` there are no gradients.
        """
        if self.outputs_only:
            return {}
        where = f"[{scenario.describe(self.operator)}]"
        wanted = {
            arg.name: tensor
            for arg, tensor in zip(self.operator.inputs, call.inputs, strict=True)
            if arg.name in scenario.wanted_by(self.operator)
        }
        used = [(y, g) for y, g in zip(outputs, call.cotangents, strict=True) if g is not None]
        if not wanted or not used:
            return {}
        differentiable = [(y, g) for y, g in used if y.requires_grad]
        if not differentiable:
            has_elements = any(y.numel() > 0 for y, _ in used)
            if any(self._depends(name, scenario, has_elements) for name in wanted):
                raise Failure(
                    f"no output requires grad, but should: {', '.join(wanted)} require it {where}{self._for_inference}",
                    figures={"tensor": "gradient of every input"},
                )
            return {name: torch.zeros_like(tensor) for name, tensor in wanted.items()}
        ys, gs = zip(*differentiable, strict=True)
        with self.in_backward(wanted, scenario):
            found = backward.gradients(ys, list(wanted.values()), gs, retain=retain)
        gradients = {}
        for (name, tensor), given in zip(wanted.items(), found, strict=True):
            # The engine returns None both for a forgotten gradient and for no dependence; zero is right for the latter.
            gradient = self._missing(name, tensor, wanted, scenario) if given is None else given
            if type(gradient) is not Tensor:
                raise Failure(
                    f"gradient of {name} was a {type(gradient).__name__}, but should be a torch.Tensor {where}"
                )
            for what in ("shape", "dtype", "device"):
                was, should = getattr(gradient, what), getattr(tensor, what)
                if was != should:
                    which = f"{what} of the gradient of {name}"
                    raise Failure(f"{which} was {was}, but should be {should} {where}", figures={"tensor": which})
            gradients[name] = gradient
        return gradients

    @property
    def _for_inference(self) -> str:
        return "\n  - a kernel for inference, which has no backward, is judged by --forward-only" if self.source else ""

    @contextmanager
    def in_backward(self, wanted: Iterable[str], scenario: Scenario) -> Iterator[None]:
        """What is raised inside is the candidate's, and becomes a Failure: its backward computes these gradients.

        The function itself is not on the stack then, so the judge could not tell it from an error of the suite.
        """
        rest = f"gradients of {', '.join(wanted)} [{scenario.describe(self.operator)}]"
        try:
            with cuda_errors.held(self.device):
                yield
        except RunnerFailure as error:
            raise Ended(f"the candidate's process {error} in backward, but should return {rest}") from error
        except CANDIDATE_ERRORS as error:
            raise raised_in("backward", error, f"; it should return {rest}") from error

    def _owed(self, name: str, scenario: Scenario) -> Tensor | None:
        """The reference's gradient of that input; None if nothing in the loss depends on it, as without steps."""
        exact = realise(self.operator, scenario, self.dtype).to_float64()
        for arg, leaf in zip(self.operator.inputs, exact.inputs, strict=True):
            leaf.requires_grad_(arg.differentiable)
        index = [arg.name for arg in self.operator.inputs].index(name)
        pairs = zip(self.operator.forward(*exact.inputs), exact.cotangents, strict=True)
        used = [(y, g) for y, g in pairs if g is not None and y.requires_grad]
        if not used:
            return None
        ys, gs = zip(*used, strict=True)
        (gradient,) = backward.gradients(ys, [exact.inputs[index]], gs)
        return gradient

    def _depends(self, name: str, scenario: Scenario, has_elements: bool) -> bool:
        """Whether the loss depends on that input at these sizes. The first gate of a scan from 0 multiplies nothing.

        A gradient of 0 is no proof: it may be 0 at these values alone. Of an empty batch it always is, so one row is
        asked about in its place.
        """
        missing = tuple(pair for pair in scenario.cotangents if pair[1] == "missing")
        owed = self._owed(name, scenario)
        if owed is None:
            return False
        if not has_elements or owed.numel() == 0:
            sizes = tuple((symbol, size or 1) for symbol, size in scenario.sizes)
            return sizes == scenario.sizes or self._depends(name, replace(scenario, sizes=sizes), has_elements=True)
        if bool(owed.any()):
            return True
        usual = self._owed(name, replace(scenario, values="normal", cotangents=missing))
        return usual is not None and bool(usual.any())

    def _missing(self, name: str, tensor: Tensor, wanted: dict[str, Tensor], scenario: Scenario) -> Tensor:
        reference = self._owed(name, scenario)
        if reference is None or reference.numel() == 0 or not bool(reference.any()):
            return torch.zeros_like(tensor)
        others = [other for other in wanted if other != name]
        when = f"when only {name} requires grad" if not others else f"when {', '.join(wanted)} require grad"
        raise Failure(
            f"gradient of {name} is missing (None) {when}, but should be a tensor of shape {tuple(tensor.shape)} "
            f"[{scenario.describe(self.operator)}]"
        )


def _returned(operator: Operator) -> str:
    """What a call returns, in words: `(new_h, new_cell)`, or `output` for a single tensor."""
    names = ", ".join(arg.name for arg in operator.outputs)
    return names if len(operator.outputs) == 1 else f"({names})"


def raised_in(phase: str, error: BaseException, rest: str) -> Failure:
    """The failure of a call whose forward or backward raised; `rest` is the end of its message.

    Its figures have the error alone, by which a report groups failures.
    """
    raised = f"{phase} raised {one_line(error)}"
    return Failure(f"{raised}{rest}", figures={"raised": raised})


def one_line(error: BaseException) -> str:
    """An exception in one line, as failures quote it."""
    kind = error.kind if isinstance(error, RemoteError) else foreign_text.name(type(error).__name__)
    lines = str(error).strip().splitlines()
    return f"{kind}: {lines[0]}" if lines else kind
