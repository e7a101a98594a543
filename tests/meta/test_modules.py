"""The modules compute their operators on any backend, and move between backends as state dicts and pickles."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from harness import discovery
from harness.errors import Unavailable, UnknownName
from modules import LLTM, MLP, LayerNorm, LLTMSequence
from spec import layer_norm, lltm, lltm_sequence, mlp
from tests.meta.tiers import first_alone, first_builds

Make = Callable[..., nn.Module]

MODULES = {
    "lltm": lambda **options: LLTM(4, 5, **options),
    "mlp": lambda **options: MLP(4, 5, 2, **options),
    "layer_norm": lambda **options: LayerNorm(4, **options),
}
BACKENDS = ["python-autograd", "python-manual-backward", "aten-cpp", "cuda-accessor", "cuda-raw-pointer", "cuda-fused"]


def outputs_of(module: nn.Module, input: Tensor) -> tuple[Tensor, ...]:
    found = module(input)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize(("name", "backend"), first_builds(product(MODULES, BACKENDS)))
def test_every_backend_computes_the_operator_from_one_state_dict(name: str, backend: str) -> None:
    make = MODULES[name]
    first = make(dtype=torch.float64)
    if isinstance(first, MLP) and "mlp" in discovery.all_backends()[backend].backend.absent:
        pytest.skip("the backend has no mlp on purpose")
    other = make(backend=backend, dtype=torch.float64, emulated=True)
    other.load_state_dict(first.state_dict())
    input = torch.randn(3, 4, dtype=torch.float64)
    parameters = list(first.parameters())
    if isinstance(first, LLTM):
        state = torch.zeros(3, 5, dtype=torch.float64)
        expected = lltm.forward(input, *parameters, state, state)
    elif isinstance(first, LayerNorm):
        expected = layer_norm.OPERATOR.forward(input, *parameters)
    else:
        expected = mlp.forward(input, *parameters)
    torch.testing.assert_close(outputs_of(other, input), tuple(expected))
    sum(y.square().sum() for y in outputs_of(other, input)).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in other.parameters())


SEQUENCE_BACKENDS = ["python-autograd", "aten-cpp", "cpu-fused", "cuda-raw-pointer", "cuda-fused"]


@pytest.mark.parametrize("backend", first_alone(SEQUENCE_BACKENDS))
def test_a_sequence_runs_from_the_cells_state_dict_whole_or_in_parts(backend: str) -> None:
    cell = LLTM(4, 5, dtype=torch.float64)
    sequence = LLTMSequence(4, 5, backend=backend, dtype=torch.float64, emulated=True)
    sequence.load_state_dict(cell.state_dict())
    input = torch.randn(6, 3, 4, dtype=torch.float64)
    zeros = torch.zeros(3, 5, dtype=torch.float64)
    h, (h_T, c_T) = sequence(input)
    torch.testing.assert_close((h, c_T), lltm_sequence.forward(input, *cell.parameters(), zeros, zeros))
    assert torch.equal(h_T, h[-1])

    first, state = sequence(input[:2])
    second, state = sequence(input[2:], state)
    third, state = sequence(input[6:], state)
    torch.testing.assert_close((torch.cat([first, second, third]), *state), (h, h_T, c_T))
    h.square().sum().backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in sequence.parameters())


def test_a_backend_without_sequences_says_why() -> None:
    with pytest.raises(Unavailable, match="backend 'python-manual-backward' has no 'lltm_sequence': a loop of"):
        LLTMSequence(4, 5, backend="python-manual-backward")(torch.randn(6, 3, 4))


def test_no_steps_leave_the_state_as_it_was() -> None:
    h, (h_T, c_T) = LLTMSequence(4, 5)(torch.randn(0, 3, 4))
    assert h.shape == (0, 3, 5)
    assert torch.equal(h_T, torch.zeros(3, 5))
    assert torch.equal(c_T, torch.zeros(3, 5))


def test_mlp_is_initialised_as_two_linear_layers() -> None:
    torch.manual_seed(0)
    module = MLP(64, 400, 300)
    torch.manual_seed(0)
    for layer, (weights, bias) in (
        (nn.Linear(64, 400), (module.hidden_weights, module.hidden_bias)),
        (nn.Linear(400, 300), (module.output_weights, module.output_bias)),
    ):
        assert torch.equal(layer.weight, weights)
        assert torch.equal(layer.bias, bias)


def test_layer_norm_takes_torchs_state_dict_and_arguments() -> None:
    input = torch.randn(2, 3, 4, dtype=torch.float64)
    for arguments in ({}, {"bias": False}, {"elementwise_affine": False}, {"eps": 0.5}):
        theirs = nn.LayerNorm((3, 4), dtype=torch.float64, **arguments)
        ours = LayerNorm((3, 4), dtype=torch.float64, **arguments)
        assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
        for parameter in theirs.parameters():
            nn.init.normal_(parameter)
        ours.load_state_dict(theirs.state_dict())
        torch.testing.assert_close(ours(input), theirs(input))
    assert "(4,), eps=1e-05, elementwise_affine=False" in repr(LayerNorm(4, elementwise_affine=False))


ALL = {**MODULES, "lltm_sequence": lambda **options: LLTMSequence(4, 5, **options)}
COPIED = [
    (name, backend)
    for name in ALL
    for backend in ("python-autograd", "python-manual-backward", "torch-native", "aten-cpp", "cpu-fused")
    if name not in discovery.backend(backend).backend.absent
]


def leaves(value: Tensor | tuple[Any, ...]) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else [tensor for part in value for tensor in leaves(part)]


def pickled(module: nn.Module) -> nn.Module:
    copied: nn.Module = pickle.loads(pickle.dumps(module))
    return copied


def saved(module: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    copied: nn.Module = torch.load(file, weights_only=False)
    return copied


_OF_COPIED = first_builds(COPIED)
#: Those of the short tier, and the others.
_FIRST, _OTHERS = ([one.values for one in _OF_COPIED if bool(one.marks) is long] for long in (False, True))


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled, saved])
@pytest.mark.parametrize(("name", "backend"), _OF_COPIED)
def test_a_copy_has_the_state_and_finds_its_function_anew(
    name: str, backend: str, copied: Callable[[nn.Module], nn.Module]
) -> None:
    """Made after a call, when the module holds a function; a compiled function cannot be pickled."""
    module = ALL[name](backend=backend)
    input = torch.randn(6, 3, 4) if name == "lltm_sequence" else torch.randn(3, 4)
    expected = leaves(module(input))
    twin = copied(module)
    assert repr(twin) == repr(module)
    state, other = module.state_dict(), twin.state_dict()
    assert list(state) == list(other)
    for key, tensor in state.items():
        assert torch.equal(tensor, other[key])
        assert tensor.data_ptr() != other[key].data_ptr()
    found = leaves(twin(input))
    assert all(map(torch.equal, found, expected))
    for outputs in (expected, found):
        sum(y.square().sum() for y in outputs).backward()
    for ours, theirs in zip(module.parameters(), twin.parameters(), strict=True):
        assert torch.equal(ours.grad, theirs.grad)


class Features(Dataset[tuple[Tensor, ...]]):
    """Batches transformed by modules on several backends, in whichever process loads them."""

    def __init__(self, made: Sequence[tuple[str, str]]) -> None:
        self.inputs = [torch.randn(3, 4) for _ in range(5)]
        self.modules = [MODULES[name](backend=backend) for name, backend in made if name in MODULES]

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        with torch.no_grad():
            return tuple(tensor for module in self.modules for tensor in leaves(module(self.inputs[index])))


@pytest.mark.parametrize("made", first_alone([_FIRST, _OTHERS]), ids=["first", "others"])
@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This DataLoader will create 2 worker processes:UserWarning")  # on a single core
@pytest.mark.filterwarnings(
    "ignore:.*use of fork\\(\\) may lead to deadlocks:DeprecationWarning"
)  # from Python 3.12 on
def test_workers_of_a_data_loader_compute_what_this_process_does(context: str, made: Sequence[tuple[str, str]]) -> None:
    """Forked workers have modules with functions already loaded and used; spawned ones get pickles."""
    features = Features(made)
    expected = [features[index] for index in range(len(features))]
    loader = DataLoader(features, batch_size=None, num_workers=2, multiprocessing_context=context, timeout=120)
    for found, batch in zip(loader, expected, strict=True):
        assert all(map(torch.equal, found, batch))


@pytest.mark.parametrize("make", MODULES.values(), ids=list(MODULES))
def test_a_wrong_backend_is_told(make: Make) -> None:
    with pytest.raises(UnknownName, match="did you mean 'aten-cpp'"):
        make(backend="aten_cpp")
    with pytest.raises(Unavailable, match="runs on cuda, cuda-emulated, not on 'cpu'"):
        make(backend="cuda-accessor")(torch.randn(3, 4))
    assert "backend='cuda-accessor', emulated=True" in repr(make(backend="cuda-accessor", emulated=True))
