"""A candidate as a function of this process: it sends its arguments to the runner, and returns what comes back.

The result takes part in autograd: a node of this process stands for the graph over there, and differentiates it by
another request. So a property that needs only what calls return runs here, in the judge, and is the same for foreign
code as for a shipped backend.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from harness.executing.runner import Seen
from harness.executing.watching import Branches
from harness.judging import foreign_text
from harness.judging.remote import Effects, RemoteError, RunnerFailure
from harness.running.runner_process import Header, Tensors

#: Sends a header and tensors, and returns the reply's. Raises RunnerFailure.
Ask = Callable[[Header, Tensors], tuple[Header, Tensors]]
#: Results of one call: more than any operator has.
_MOST = 64
#: Characters of a word that a process says about a tensor.
_TEXT = 100


class RemoteFunction:
    """The function of a candidate, in another process."""

    def __init__(self, ask: Ask, device: str) -> None:
        self._ask, self._device = ask, torch.device(device)
        self._held = False
        self._threads: int | None = None
        self._watch: RemoteWatch | None = None
        self._watches = 0
        self._effects: Effects = [], [], [], []
        #: Records that no graph of this process refers to any more.
        self._unneeded: list[int] = []

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function; `named` are plain values. Raises RemoteError for what it raised, and RunnerFailure."""
        request, single = self._request(arguments, named, set()), False

        def forward() -> tuple[Header, list[Any]]:
            nonlocal single
            header, tensors = self._asked(request, self._tensors(arguments))
            single = bool(header.get("single"))
            self._effects = _effects(header)
            return header, self._results(header, tensors)

        found = self._node(forward, [argument for argument in arguments if isinstance(argument, Tensor)])
        return found[0] if single else tuple(found)

    def steps(self, arguments: tuple[Any, ...], named: dict[str, Any], shapes: set[tuple[int, ...]]) -> list[Seen]:
        """The intermediate tensors of these shapes of one more call."""
        header, tensors = self._asked(self._request(arguments, named, shapes), self._tensors(arguments))
        with contextlib.suppress(KeyError, TypeError, ValueError):
            seen = [
                Seen(str(operation), tensors[f"step {number}"], bool(is_view))
                for number, (operation, is_view) in enumerate(header["steps"])
            ]
            return [step for step in seen if step.value.dtype == torch.float64 and tuple(step.value.shape) in shapes]
        return []

    def effects(self) -> Effects:
        """What the latest call did besides returning values, as its process says."""
        return self._effects

    @contextlib.contextmanager
    def same_addresses(self) -> Iterator[None]:
        """Within it, every call finds its arguments at the addresses of the call before."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    @contextlib.contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Within it, torch has so many threads there, where it has one otherwise."""
        self._threads = count
        try:
            yield
        finally:
            self._threads = None

    def watch(self, files: Sequence[str]) -> RemoteWatch:
        """The watch over these Python files in its process, whose word it is."""
        self._watches += 1
        return RemoteWatch(self, files, self._watches)

    def _node(self, forward: Callable[[], tuple[Header, list[Any]]], inputs: list[Tensor]) -> list[Any]:
        """Run `forward` as a node of autograd with these inputs. Only tensors go through the node."""
        kept: list[Any] = []
        flags: list[bool] = []

        def run() -> tuple[_GraphThere, list[Tensor]]:
            header, results = forward()
            kept.extend(results)
            about = header["results"]
            flags.extend(bool(about[k]["requires_grad"]) for k, y in enumerate(results) if isinstance(y, Tensor))
            return _GraphThere(header["record"], self._unneeded), [y for y in results if isinstance(y, Tensor)]

        grad = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)
        if grad:
            tensors = list(_Node.apply(self, run, flags, kept, *inputs))  # type: ignore[no-untyped-call]
        else:
            tensors = run()[1]
            for tensor, flag in zip(tensors, flags, strict=True):
                tensor.requires_grad_(flag)
        made = iter(tensors)
        return [next(made) if isinstance(y, Tensor) else y for y in kept]

    def _request(self, arguments: tuple[Any, ...], named: dict[str, Any], shapes: set[tuple[int, ...]]) -> Header:
        return {
            "do": "call",
            "grad": torch.is_grad_enabled(),
            "inference": torch.is_inference_mode_enabled(),
            "held": self._held,
            "threads": self._threads,
            "steps": [list(shape) for shape in shapes],
            "arguments": [_described(argument) | _same(arguments, k) for k, argument in enumerate(arguments)],
            "named": {name: _described(value) for name, value in named.items()},
        }

    def _tensors(self, arguments: tuple[Any, ...]) -> Tensors:
        return {str(k): _storage(argument) for k, argument in enumerate(arguments) if isinstance(argument, Tensor)}

    def _asked(self, request: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        dropped, self._unneeded[:] = list(self._unneeded), []
        watched = {} if self._watch is None else {"watch": self._watch.asked}
        header, found = self._ask({**request, **watched, "drop": dropped}, tensors)
        if self._watch is not None:
            self._watch.learn(header)
        error = header.get("error")
        if isinstance(error, dict):
            raise RemoteError(foreign_text.name(error.get("kind")), str(error.get("text")))
        return header, found

    def _results(self, header: Header, tensors: Tensors) -> list[Any]:
        """The results as values of this process; what is no plain tensor becomes an object of a class of that name."""
        try:
            about, header["record"] = header["results"], int(header["record"])
            if len(about) > _MOST:
                raise RunnerFailure(f"returned {len(about)} values")
            return [self._result(k, entry, tensors) for k, entry in enumerate(about)]
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RuntimeError) as error:
            raise _unreadable(error) from None

    def _result(self, place: int, about: Header | None, tensors: Tensors) -> Any:
        if about is None:
            return None
        if about["kind"] != "Tensor":
            return type(foreign_text.name(about["kind"]), (), {})()
        if torch.device(about["device"]).type != self._device.type:
            return type(f"tensor on {foreign_text.name(about['device'])}", (), {})()
        return tensors[str(place)]


class RemoteWatch:
    """What a runner says of the branches that ran there: advice, which a candidate may forge."""

    def __init__(self, remote: RemoteFunction, files: Sequence[str], number: int) -> None:
        self._remote = remote
        self._files = list(files)
        self.asked: Header = {"files": self._files, "number": number}
        self.disturbed = False
        self._fresh: dict[str, set[tuple[int, int]]] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Note what the calls within run."""
        self._remote._watch = self
        try:
            yield
        finally:
            self._remote._watch = None

    def learn(self, header: Header) -> None:
        """Take the branches from a reply; one without them, or with others than lines, says that it was disturbed.

        The reply of a call that raised has none; the next one has its branches too.
        """
        if "error" in header:
            return
        try:
            self.disturbed = self.disturbed or bool(header["disturbed"])
            for file in self._files:
                lines = [(int(one), int(other)) for one, other in header["ran"].get(file, ())]
                self._fresh.setdefault(file, set()).update(lines)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            self.disturbed = True

    def news(self) -> Branches:
        """The branches that ran and that no earlier answer had, by file."""
        fresh, self._fresh = self._fresh, {}
        return {file: sorted(lines) for file, lines in fresh.items() if lines}


def _effects(header: Header) -> Effects:
    try:
        shares = [(int(k), int(n)) for k, n in header["shares"]]
        turned = [(int(n), str(what)[:_TEXT]) for n, what in header["turned"]]
        return shares, [int(n) for n in header["changed"]], [int(k) for k in header["overlaps"]], turned
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> RunnerFailure:
    return RunnerFailure(f"sent a reply that cannot be read ({type(error).__name__}: {foreign_text.name(error)})")


class _GraphThere:
    """A record of the runner, which may drop it as soon as this object is gone."""

    def __init__(self, number: int, unneeded: list[int]) -> None:
        self.number = number
        weakref.finalize(self, unneeded.append, number)


class _Node(torch.autograd.Function):
    """A graph of the runner in the graph of this process."""

    @staticmethod
    def forward(ctx: Any, remote: RemoteFunction, run: Any, flags: list[bool], kept: list[Any], *inputs: Tensor) -> Any:
        ctx.set_materialize_grads(False)
        ctx.remote = remote
        ctx.record, tensors = run()
        ctx.places = [k for k, y in enumerate(kept) if isinstance(y, Tensor)]
        ctx.count = len(kept)
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(*(y for y, flag in zip(tensors, flags, strict=True) if not flag))
        return tuple(tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> Any:
        remote: RemoteFunction = ctx.remote
        wanted = list(ctx.needs_input_grad[4:])
        given: list[Tensor | None] = [None] * ctx.count
        for place, cotangent in zip(ctx.places, cotangents, strict=True):
            given[place] = cotangent
        if all(cotangent is None for cotangent in given):
            return (None,) * (4 + len(wanted))
        request = {
            "do": "differentiate",
            "of": ctx.record.number,
            "wanted": wanted,
            "create_graph": torch.is_grad_enabled(),
            "arguments": [None if g is None else _described(g) for g in given],
        }
        tensors = {str(k): _storage(g) for k, g in enumerate(given) if g is not None}

        def forward() -> tuple[Header, list[Any]]:
            header, found = remote._asked(request, tensors)
            return header, remote._results(header, found)

        inputs = [*ctx.saved_tensors, *(g for g in given if g is not None)]
        return (None, None, None, None, *remote._node(forward, inputs))


def _described(argument: Any) -> Header:
    if isinstance(argument, torch.dtype):
        return {"dtype": str(argument).removeprefix("torch.")}
    if not isinstance(argument, Tensor):
        return {"value": argument}
    return {
        "shape": list(argument.shape),
        "stride": list(argument.stride()),
        "offset": argument.storage_offset(),
        "requires_grad": argument.requires_grad,
        "parameter": isinstance(argument, torch.nn.Parameter),
    }


def _same(arguments: tuple[Any, ...], place: int) -> Header:
    """Which earlier argument is the same tensor, so that it is one tensor there too."""
    if not isinstance(arguments[place], Tensor):
        return {}
    return next(({"same": k} for k in range(place) if arguments[k] is arguments[place]), {})


def _storage(tensor: Tensor) -> Tensor:
    """All elements of the tensor's storage, those between its own values too."""
    whole = tensor.detach()
    return whole.as_strided((whole.untyped_storage().nbytes() // whole.element_size(),), (1,), 0).clone()
