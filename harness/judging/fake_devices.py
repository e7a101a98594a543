"""Call an implementation with fake tensors of the CPU and of several CUDA devices, in a process without such a device.

A process of its own, because PyTorch would open a real device elsewhere, and because its guard of CUDA is replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from harness.errors import Failure
from harness.judging import fake_cuda, fresh_process, fresh_subject, graph_walk
from harness.judging.scenario import realise
from harness.judging.scenarios import smallest
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line

#: Seconds for a fresh process, which loads the implementation and calls it on each device.
LIMIT = 300.0
#: What the first fake tensor imports, and takes a second.
_IMPORTS = ("torch._dynamo",)

#: None of them is the current one, cuda:0. Three: what is kept from one call is used in the next.
DEVICES = ("cuda:1", "cuda:2", "cuda:3")

#: What PyTorch says where a function needs a real device: a stream, an event, a generator, properties of the device.
_NO_DEVICE = re.compile(
    r"when none is available|compiled with CUDA|without CUDA|NVIDIA driver|No CUDA GPUs|ATen_cuda|NVTX|dummy base class"
    r"|'_cuda_|_get_device_properties"
)

#: What PyTorch says of tensors of two devices in one operation.
_MIXED = re.compile(r"two different devices|same device|different devices|at least two devices|expected device")


def asked(subject: Subject) -> dict[str, str]:
    """What `answer` found in this form. Raises as `fresh_process.asked` does, and Unavailable without a compiler."""
    forms = [form.form for form in (subject.whole or subject.operator).every_form()]
    about = {**fresh_subject.described(subject), "forms": forms, "library": str(fake_cuda.built())}
    found: dict[str, str] = json.loads(_asked(json.dumps(about)))[subject.operator.form]
    return found


@lru_cache(maxsize=64)
def _asked(question: str) -> str:
    return fresh_process.asked(__name__, answer.__name__, question, LIMIT, _IMPORTS)


def answer(asked: str) -> str:
    """Runs in the fresh process. For each form: `failure`, `lacks` (why it says nothing), or `forward` and `backward`.

    One process for all forms: it takes a second or two to start.
    """
    question = json.loads(asked)
    fake_cuda.install(Path(question["library"]))
    operator = fresh_subject.operator(question)
    found = fresh_subject.imported(question)
    if found is None:
        lacks = {"lacks": "the function cannot be found by name"}
        return json.dumps(dict.fromkeys(question["forms"], lacks))
    subject = Subject(operator, question["backend"], question["device"], torch.float32, fresh_subject.made(found))
    return json.dumps({name: _judged_in(subject.in_form(operator.in_form(name))) for name in question["forms"]})


def _judged_in(subject: Subject) -> dict[str, str]:
    judged = _judged(subject)
    if "failure" in judged:
        judged["failure"] += f" [{smallest(subject.operator).describe(subject.operator)}]"
    return judged


class _AsOnAGpu(TorchFunctionMode):
    """Devices are understood as PyTorch does on a machine with GPUs.

    Elsewhere it refuses a device that is a number, as `torch.cuda.current_device()` gives it, and takes "cuda" for
    cuda:0 in `torch.tensor` and `new_tensor`, whatever the current device is.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if func is torch.Tensor.new_tensor:
            named.setdefault("device", args[0].device)
        if named.get("device") is not None:
            named["device"] = _indexed(named["device"])
        if func in (torch.Tensor.to, torch.Tensor.cuda) and type(args[-1]) is int:
            args = (*args[:-1], _indexed(args[-1]))
        return func(*args, **named)


def _indexed(device: torch.device | str | int) -> torch.device:
    found = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    return torch.device("cuda", torch.cuda.current_device()) if found == torch.device("cuda") else found


def _mode() -> FakeTensorMode:
    """Without its cache, which takes no notice of the current device."""
    mode = FakeTensorMode()
    mode.cache_enabled = False
    return mode


def _judged(subject: Subject) -> dict[str, str]:
    mode = _mode()
    try:
        inputs, outputs = _forward(subject, mode, "cpu")
    except CANDIDATE_ERRORS as error:
        return {"lacks": f"it fails with fake tensors of the CPU too, see fake-tensors: {one_line(error)}"}
    backward = "done"
    try:
        _backward(subject, mode, inputs, outputs)
    except (graph_walk.Unfollowed, *CANDIDATE_ERRORS) as error:
        backward = f"not done: it fails with fake tensors of the CPU too: {one_line(error)}"
    for device in DEVICES:
        try:
            inputs, outputs = _forward(subject, mode, device)
        except Failure as failure:
            return {"failure": str(failure)}
        except CANDIDATE_ERRORS as error:
            return _of_error(subject, mode, device, error)
        if backward == "done":
            try:
                _backward(subject, mode, inputs, outputs)
            except Failure as failure:
                return {"failure": str(failure)}
            except CANDIDATE_ERRORS as error:
                said = one_line(error)
                if not _NO_DEVICE.search(said):
                    should = "but should give gradients there"
                    return {"failure": f"backward raised {said} with fake tensors on {device}, {should}"}
                backward = f"not done: it calls what PyTorch answers only where there is a GPU: {said}"
    return {"forward": f"done on {', '.join(DEVICES)}", "backward": backward}


def _of_error(subject: Subject, mode: FakeTensorMode, device: str, error: BaseException) -> dict[str, str]:
    """A refusal is right if it names the device, and if every CUDA device is refused."""
    said = one_line(error)
    if _NO_DEVICE.search(said):
        return {"lacks": f"it calls what PyTorch answers only where there is a GPU: {said}"}
    failure = f"forward raised {said} with fake tensors on {device}, but should give outputs there"
    if _MIXED.search(str(error)):
        return {"failure": failure}
    try:
        _forward(subject, mode, "cuda:0")
    except CANDIDATE_ERRORS:
        if "cuda" in str(error).lower():
            return {"forward": f"refused: {said}", "backward": "not done: forward refuses the device"}
        return {"failure": f"{failure}, or an error that names the device"}
    return {"failure": f"{failure}, as it does on cuda:0"}


def _forward(subject: Subject, mode: FakeTensorMode, device: str) -> tuple[list[Tensor], tuple[Tensor, ...]]:
    """Inputs on the device, and outputs. Raises Failure if one of these is elsewhere."""
    scenario = smallest(subject.operator)
    call = realise(subject.operator, scenario, subject.dtype)
    with mode, _AsOnAGpu():
        inputs = [
            torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device=device).requires_grad_(
                arg.differentiable
            )
            for arg, real in zip(subject.operator.inputs, call.inputs, strict=True)
        ]
        results = subject.function(*inputs)
    outputs = (results,) if isinstance(results, Tensor) else tuple(results)
    for arg, output in zip(subject.operator.outputs, outputs, strict=True):
        _hold(arg.name, output, torch.device(device))
    return inputs, outputs


def _backward(subject: Subject, mode: FakeTensorMode, inputs: list[Tensor], outputs: tuple[Tensor, ...]) -> None:
    names = {id(tensor): arg.name for arg, tensor in zip(subject.operator.inputs, inputs, strict=True)}
    with mode, _AsOnAGpu():
        cotangents = [torch.empty_like(output) for output in outputs]
        graph_walk.walk(outputs, cotangents, partial(_arrived, names))


def _arrived(names: dict[int, str], node: Any, following: Any, number: int, found: Tensor) -> None:
    """The engine moves a number to where it must be, and nothing else."""
    if found.dim() > 0:
        name = names.get(id(getattr(following, "variable", None)))
        what = f"the gradient of {name}" if name else f"the gradient that {node.name()} returns for {following.name()}"
        _hold(what, found, following._input_metadata[number].device)


def _hold(what: str, tensor: Tensor, device: torch.device) -> None:
    if tensor.device != device:
        raise Failure(f"device of {what} was {tensor.device}, but should be {device}, with fake tensors")
