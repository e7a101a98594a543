"""The runner: import a function, call it with the tensors that the judge sends, and send back what it returned.

This file is a program of its own. `harness.running.candidate_process` starts a copy of it, so the process has imported
torch and nothing of this project. It knows no oracle, no allowance and no verdict.

A message is two parts: a header, which is JSON, and tensors, which are safetensors. Neither can carry code. Each
request has an `id`, which its reply repeats. A call makes a *record*: its input leaves and its outputs. A later request
differentiates a record, which makes another record, so that second derivatives work too.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import json
import os
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

#: How many records are kept at most. The judge says which ones it no longer needs; a graph holds its saved tensors.
KEPT = 256
#: Characters of an error's message that are sent, of a name, and how many names of a module.
TEXT, NAME, NAMES = 20_000, 200, 1_000

#: How results are read and differentiated. A candidate that replaces one of these finds the first ones still in use.
_STEPS = Tensor.detach, Tensor.cpu, Tensor.contiguous, Tensor.clone
_WITHOUT_MODES = torch.utils._python_dispatch._disable_current_modes
_WITHOUT_FUNCTIONS = torch._C.DisableTorchFunction
_RUN_BACKWARD = torch.autograd.Variable._execution_engine.run_backward

Header = dict[str, Any]
Tensors = dict[str, Tensor]


class Graph:
    """A differentiable computation: `outputs` as a function of `leaves`. `again` computes it once more."""

    def __init__(self, leaves: list[Tensor], outputs: list[Any], again: Callable[[], list[Any]]) -> None:
        self.leaves, self.outputs, self.again = leaves, outputs, again
        #: Whether a differentiation has freed the graph.
        self.spent = False


class Runner:
    """The function under test, and the records of its latest calls."""

    def __init__(self) -> None:
        self.function: Callable[..., Any] | None = None
        self.device = torch.device("cpu")
        self.records: OrderedDict[int, Graph] = OrderedDict()
        self.held: list[Tensor] = []
        self.last = 0
        self.timing = _beside("timing").Timing()
        self.cuda_errors = _beside("cuda_errors")
        self.watcher: Any = None
        self.watched: Header = {}

    def answer(self, asked: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        """The reply to one request."""
        for number in asked.get("drop", ()):
            self.records.pop(number, None)
        match asked["do"]:
            case "ready":
                return {}, {}
            case "import":
                return self.imported(asked), {}
            case "call" | "differentiate" if "watch" in asked:
                return self.watching(asked, tensors)
            case "call":
                return self.called(asked, tensors)
            case "differentiate":
                return self.differentiated(asked, tensors)
            case "ring" | "refresh" | "time" | "commit" | "reveal":
                answer: tuple[Header, Tensors] = self.timing.answer(self.function, asked, tensors)
                return answer
        raise ValueError(
            f"do was {asked['do']!r}, but should be ready, import, call, differentiate or one of timing.py"
        )

    def watching(self, asked: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        """The same reply, and which branches of the watched files ran that no reply named before."""
        watched = asked.pop("watch")
        if watched != self.watched:
            self.watched, self.watcher = watched, _beside("watching").Watcher(watched["files"])
        with self.watcher.watching():
            header, found = self.answer(asked, tensors)
        return {**header, "ran": self.watcher.news(), "disturbed": self.watcher.disturbed}, found

    def imported(self, asked: Header) -> Header:
        """Import the candidate; say whether the function is there, and what its module declares.

        With `given`, what is there is called with these values, and returns the function.
        """
        self.device = torch.device(asked["device"])
        sys.path[:0] = asked["path"]
        module = _module(asked["where"])
        found: Any = getattr(module, asked["attribute"], None)
        if "given" in asked:
            found = found(*asked["given"])
        declared = getattr(module, "DECLARED", {})
        right = isinstance(declared, dict) and all(isinstance(x, str) and x for pair in declared.items() for x in pair)
        self.function = found if callable(found) else None
        return {
            "callable": callable(found),
            "kind": type(found).__name__[:NAME],
            "names": list(islice((name[:NAME] for name in vars(module) if not name.startswith("_")), NAMES)),
            "declared": declared if right else None,
            "shown": repr(declared)[:TEXT],
        }

    def called(self, asked: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        """Call the function. `arguments` are tensors or plain values, in order; `named` are plain values by name.

        `grad` and `inference` are modes.
        """
        assert self.function is not None
        function = self.function
        arguments: list[Any] = []
        for number, about in enumerate(asked["arguments"]):
            same = None if about is None else about.get("same")
            arguments.append(self._argument(number, about, tensors) if same is None else arguments[same])
        named = {name: self._argument(-1, about, tensors) for name, about in asked["named"].items()}
        leaves = [argument for argument in arguments if isinstance(argument, Tensor)]
        if asked["held"]:
            leaves = self._held(leaves)
            given = iter(leaves)
            arguments = [next(given) if isinstance(argument, Tensor) else argument for argument in arguments]
        single = False
        before, states = [_read(leaf) for leaf in leaves], [state(leaf) for leaf in leaves]
        if asked["threads"] is not None:
            torch.set_num_threads(asked["threads"])

        def run() -> list[Any]:
            nonlocal single
            with self.cuda_errors.held(self.device.type):
                results = function(*arguments, **named)
            single = not isinstance(results, tuple | list)
            return [results] if single else list(results)

        with torch.inference_mode(asked["inference"]), torch.set_grad_enabled(asked["grad"]):
            steps = StepRecorder({tuple(shape) for shape in asked["steps"]}) if asked["steps"] else None
            with steps or contextlib.nullcontext():
                outputs = run()
        if asked["threads"] is not None:
            torch.set_num_threads(1)
        header, sent = self._described(outputs, Graph(leaves, outputs, run))
        if steps is not None:
            header["steps"] = [[seen.operation, seen.is_view] for seen in steps.seen]
            sent |= {f"step {number}": seen.value for number, seen in enumerate(steps.seen)}
        header["changed"] = [n for n, (leaf, was) in enumerate(zip(leaves, before, strict=True)) if _differ(leaf, was)]
        header["turned"] = [
            [n, what]
            for n, (leaf, was) in enumerate(zip(leaves, states, strict=True))
            for what, now in state(leaf).items()
            if now != was[what]
        ]
        header["shares"] = [[k, n] for k, y in enumerate(outputs) for n, x in enumerate(leaves) if _share(x, y)]
        header["overlaps"] = [k for k, y in enumerate(outputs) if _overlaps(y)]
        return {**header, "single": single}, sent

    def differentiated(self, asked: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        """The gradients of a record's outputs, weighted by cotangents, with respect to its leaves."""
        record = self.records.get(asked["of"])
        if record is None:
            raise RuntimeError("the record of that call is no longer kept")
        if record.spent:
            with torch.enable_grad():
                record.outputs, record.spent = record.again(), False
        given = [self._argument(number, about, tensors) for number, about in enumerate(asked["arguments"])]
        pairs = [(y, g) for y, g in zip(record.outputs, given, strict=True) if g is not None]
        used = [(y, g) for y, g in pairs if isinstance(y, Tensor) and y.requires_grad]
        wanted = [leaf for leaf, is_wanted in zip(record.leaves, asked["wanted"], strict=True) if is_wanted]

        def run() -> list[Any]:
            ys, gs = zip(*used, strict=True)
            with self.cuda_errors.held(self.device.type):
                found = iter(_gradients(ys, wanted, gs, asked["create_graph"]) if wanted else ())
            return [next(found) if is_wanted else None for is_wanted in asked["wanted"]]

        gradients = run() if used else [None for _ in asked["wanted"]]
        record.spent = not asked["create_graph"]
        leaves = [*record.leaves, *(g for g in given if g is not None)]
        return self._described(gradients, Graph(leaves, gradients, run))

    def _argument(self, number: int, about: Any, tensors: Tensors) -> Any:
        """A tensor as the judge described it: its storage, and its view of it; or a plain value; or None."""
        if about is None or "value" in about:
            return None if about is None else about["value"]
        if "dtype" in about:
            return getattr(torch, about["dtype"])
        # A copy is aligned as tensors usually are; a part of a message is not.
        storage = tensors[str(number)].to(self.device, copy=True)
        tensor = storage.as_strided(about["shape"], about["stride"], about["offset"])
        leaf = tensor.detach().requires_grad_(about["requires_grad"])
        return torch.nn.Parameter(leaf, leaf.requires_grad) if about.get("parameter") else leaf

    def _held(self, leaves: list[Tensor]) -> list[Tensor]:
        """The tensors of the call before, with the new values in them, if they are alike; else the new tensors."""

        def likeness(tensors: list[Tensor]) -> list[Any]:
            places = [(t.storage_offset(), t.untyped_storage().nbytes()) for t in tensors]
            pairs = zip(tensors, places, strict=True)
            return [(type(t), t.shape, t.stride(), t.dtype, t.requires_grad, at) for t, at in pairs]

        if likeness(self.held) == likeness(leaves):
            with torch.no_grad():
                for old, new in zip(self.held, leaves, strict=True):
                    _storage(old).copy_(_storage(new))
        else:
            self.held = leaves
        return self.held

    def _described(self, results: list[Any], record: Graph) -> tuple[Header, Tensors]:
        """The results as a header and tensors, and the number of their record."""
        self.last += 1
        self.records[self.last] = record
        while len(self.records) > KEPT:
            self.records.popitem(last=False)
        sent = {
            str(place): _read(y) for place, y in enumerate(results) if type(y) is Tensor and y.layout == torch.strided
        }
        return {"record": self.last, "results": [_about(y) for y in results]}, sent


def _read(tensor: Tensor) -> Tensor:
    """What is in the tensor's memory: methods of its own, replaced methods and modes left on have no part in it."""
    with _WITHOUT_FUNCTIONS(), _WITHOUT_MODES():
        for step in _STEPS:
            tensor = step(tensor)
    return tensor


def _storage(tensor: Tensor) -> Tensor:
    """All elements of the tensor's storage: an expanded tensor cannot be written to itself."""
    whole = tensor.detach()
    return whole.as_strided((whole.untyped_storage().nbytes() // whole.element_size(),), (1,), 0)


def _differ(tensor: Tensor, was: Tensor) -> bool:
    """Whether any bit of a tensor is another one than before."""
    dense = torch.contiguous_format  # a tensor of one element may keep an odd stride elsewhere
    now, before = (values.reshape(-1).clone(memory_format=dense).view(torch.uint8) for values in (_read(tensor), was))
    return not torch.equal(now, before)


def state(tensor: Tensor) -> Header:
    """What a tensor is beside its values; a call has no business to turn it into something else."""
    return {
        "requires_grad": tensor.requires_grad,
        "memory": (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tensor.stride(), tensor.shape),
        "grad": tensor.grad is not None,
    }


def _share(argument: Tensor, result: Any) -> bool:
    if type(result) is not Tensor or result.layout != torch.strided or not result.numel():
        return False
    return result.untyped_storage().data_ptr() == argument.untyped_storage().data_ptr()


def _overlaps(result: Any) -> bool:
    if type(result) is not Tensor or result.layout != torch.strided:
        return False
    return any(length > 1 and step == 0 for length, step in zip(result.shape, result.stride(), strict=True))


def _gradients(ys: tuple[Tensor, ...], wanted: list[Tensor], gs: tuple[Tensor, ...], create_graph: bool) -> Any:
    """What `torch.autograd.grad`, which a candidate can replace, would return."""
    keep_graph, allow_unused, accumulate = create_graph, True, False
    return _RUN_BACKWARD(ys, gs, keep_graph, create_graph, tuple(wanted), allow_unused, accumulate_grad=accumulate)


def _about(result: Any) -> Header | None:
    if result is None:
        return None
    if type(result) is not Tensor:
        return {"kind": type(result).__name__[:NAME]}
    if result.layout != torch.strided:
        return {"kind": f"tensor of layout {str(result.layout).removeprefix('torch.')}"}
    return {"kind": "Tensor", "requires_grad": result.requires_grad, "device": str(result.device)}


def _beside(name: str) -> Any:
    """A module from the folder of this program."""
    return _module(str(Path(__file__).with_name(f"{name}.py")))


def _module(where: str) -> Any:
    """A Python file by its path, or a module by its name."""
    if not where.endswith(".py"):
        return importlib.import_module(where)
    name = f"candidate_{Path(where).stem}_{hashlib.sha256(where.encode()).hexdigest()[:8]}"
    found = importlib.util.spec_from_file_location(name, where, loader=_FromSource(name, where))
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


class _FromSource(importlib.machinery.SourceFileLoader):
    """Compiles the file itself: what lies in `__pycache__` beside it may be another program."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class Seen:
    """What an operation returned, in float64; `is_view` if it made no new tensor."""

    def __init__(self, operation: str, value: Tensor, is_view: bool) -> None:
        self.operation, self.value, self.is_view = operation, value, is_view


class StepRecorder(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Copies the floating-point results of these shapes, in the order in which they are made."""

    #: Elements that are recorded in all. A call that makes more is not examined further.
    ELEMENTS = 2**24

    def __init__(self, shapes: set[tuple[int, ...]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._shapes, self._left = shapes, self.ELEMENTS
        self.seen: list[Seen] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False, since torch would import its compiler at the first use, which takes a second."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        results = func(*args, **(kwargs or {}))
        # Where the compiler is there already, it must not compile what is done here.
        dynamo = sys.modules.get("torch._dynamo")
        record = self._record if dynamo is None else dynamo.disable(self._record)
        record(func, results)
        return results

    def _record(self, func: Any, results: Any) -> None:
        is_view = not func._schema.is_mutable and any(value.alias_info is not None for value in func._schema.returns)
        for result in torch.utils._pytree.tree_leaves(results):
            if isinstance(result, Tensor) and result.is_floating_point() and tuple(result.shape) in self._shapes:
                self._left -= result.numel()
                if self._left >= 0:
                    value = result.detach().cpu().double().clone(memory_format=torch.contiguous_format)
                    self.seen.append(Seen(str(func.overloadpacket), value, is_view))


def _text(error: BaseException) -> str:
    try:
        return str(error).strip()[:TEXT]
    except Exception as other:
        return f"its message cannot be read: {type(other).__name__}"


def lost_device() -> str:
    """Why this process can use its CUDA device no more, such as an assertion in a kernel; empty if nothing is wrong."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return ""
    try:
        torch.cuda.synchronize()
    except Exception as error:
        return _text(error).partition("\n")[0]
    return ""


def messages(connection: Connection) -> Iterator[tuple[Header, Tensors]]:
    """Every request, until the judge closes the connection."""
    while True:
        try:
            yield json.loads(connection.recv_bytes()), load(connection.recv_bytes())
        except EOFError:
            return


def send(connection: Connection, *messages: bytes) -> None:
    """`connection.send_bytes` of each, in one call of the system: every call wakes the judge."""
    parts = [memoryview(part) for message in messages for part in (_length(len(message)), message)]
    while parts:
        written = os.writev(connection.fileno(), parts)
        while parts and written >= len(parts[0]):
            written -= len(parts.pop(0))
        if parts:
            parts[0] = parts[0][written:]


def _length(length: int) -> bytes:
    """What `multiprocessing.connection` writes before a message of that length."""
    return struct.pack("!i", length) if length <= 0x7FFFFFFF else struct.pack("!iQ", -1, length)


def main(descriptor: int) -> None:
    """Answer requests until there are no more."""
    _beside("lifeline").end_with_parent()
    connection, runner = Connection(descriptor), Runner()
    torch.set_num_threads(1)
    for asked, tensors in messages(connection):
        try:
            header, results = runner.answer(asked, tensors)
        except BaseException as error:
            header, results = (
                {"error": {"kind": type(error).__name__[:NAME], "text": _text(error)}, "lost": lost_device()},
                {},
            )
        send(connection, json.dumps({**header, "id": asked["id"]}).encode(), save(results))


def fork(descriptor: int) -> None:
    """Be a process that forks for each candidate, see zygote.py."""
    import socket

    _beside("lifeline").end_with_parent()
    _beside("zygote").serve(socket.socket(fileno=descriptor), main)


if __name__ == "__main__":
    (fork if sys.argv[1:-1] == ["fork"] else main)(int(sys.argv[-1]))
