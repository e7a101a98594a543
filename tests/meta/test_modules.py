"""The modules compute what their operators do, on any backend, and travel between them as state dicts and pickles."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from harness.errors import Unavailable, UnknownName
from modules import LLTM, MLP, LayerNorm, LLTMSequence
from spec import layer_norm, lltm, lltm_sequence, mlp

Make = Callable[..., nn.Module]

MODULES = {
    "lltm": lambda **options: LLTM(4, 5, **options),
    "mlp": lambda **options: MLP(4, 5, 2, **options),
    "layer_norm": lambda **options: LayerNorm(4, **options),
}
BACKENDS = ["python-autograd", "python-manual-backward", "aten-cpp", "cuda-raw-pointer", "cuda-accessor"]


@pytest.fixture(params=list(MODULES))
def make(request: pytest.FixtureRequest) -> Make:
    """A module's constructor with small sizes."""
    return MODULES[request.param]


def outputs_of(module: nn.Module, input: Tensor) -> tuple[Tensor, ...]:
    found = module(input)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_computes_the_operator_from_one_state_dict(make: Make, backend: str) -> None:
    first = make(dtype=torch.float64)
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


SEQUENCE_BACKENDS = ["python-autograd", "aten-cpp", "cuda-raw-pointer"]


@pytest.mark.parametrize("backend", SEQUENCE_BACKENDS)
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


def test_a_copy_finds_its_function_anew(make: Make) -> None:
    module = make()
    input = torch.randn(3, 4)
    expected = outputs_of(module, input)
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    for twin in (copy.deepcopy(module), torch.load(file, weights_only=False)):
        assert all(map(torch.equal, outputs_of(twin, input), expected))


def test_a_wrong_backend_is_told(make: Make) -> None:
    with pytest.raises(UnknownName, match="did you mean 'aten-cpp'"):
        make(backend="aten_cpp")
    with pytest.raises(Unavailable, match="runs on cuda, cuda-emulated, not on 'cpu'"):
        make(backend="cuda-accessor")(torch.randn(3, 4))
    assert "backend='cuda-accessor', emulated=True" in repr(make(backend="cuda-accessor", emulated=True))
