"""The kernels of MLP (`cuda_fused/csrc/mlp*.cu`), emulated, against loops over whole numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.cuda_fused.mlp import CSRC
from tests.meta.emulated_driver import built, ran, with_fault
from tests.meta.tiers import ZOO, first_alone

DRIVER = "mlp_passes.cpp"

#: One worker, which builds the right driver once.
pytestmark = pytest.mark.xdist_group("fused_mlp")

#: The kernel, dtype, batch, input_features, hidden_size, output_size and multiprocessors, and what the driver prints.
RIGHT = {
    "digits": ("small float32 16 64 128 10 132", "right"),
    "one of everything": ("small float64 1 1 1 1 1", "right"),
    "no features": ("small bfloat16 3 0 6 2 132", "right"),
    "no hidden units": ("small float32 3 4 0 2 132", "right"),
    "no outputs": ("small float32 3 4 5 0 132", "right"),
    "a unit more than all warps have": ("small bfloat16 2 33 65 66 132", "right"),
    "the widest rows": ("small float64 1 2048 3 2 132", "right"),
    "narrow, single elements": ("narrow float64 3 5 7 2 132", "right"),
    "narrow, a unit more than a block has": ("narrow float32 2 1 257 3 132", "right"),
    "narrow, vectors": ("narrow bfloat16 64 784 512 10 132", "right"),
    "narrow, the most outputs, and more rounds than one": ("narrow bfloat16 5 1 4104 16 132", "right"),
    "narrow, one output of one unit": ("narrow float32 1 1 1 1 1", "right"),
    "too many outputs": ("narrow float32 1 1 8 17 132", "wrong: not narrow"),
    "too many products": ("narrow float32 64 1 512 10 16", "wrong: not narrow"),
    "forward, single elements": ("forward float32 5 1 7 1 132", "right"),
    "forward, vectors": ("forward bfloat16 50 1 136 1 1", "right"),
    "backward, one part": ("backward float32 20 1 33 10 132", "1 right"),
    "backward, vectors of one part": ("backward bfloat16 128 1 264 35 1", "1 right"),
    "backward, parts": ("backward float64 1000 1 40 10 32", "8 right"),
    "backward, parts that have rows left over": ("backward float32 257 1 96 1 64", "3 right"),
    "backward, vectors of parts": ("backward bfloat16 700 1 256 3 8", "6 right"),
}

#: A file, a text, what is there instead, the call, and what the driver prints.
FAULTS = {
    "the bias of another row": (
        *("mlp.cu", "hidden_bias + unit % hidden_size", "hidden_bias + unit / batch % hidden_size"),
        *("forward float32 40 1 33 1 132", "wrong: hidden"),
    ),
    "a part's rows begin with the part": (
        *("mlp.cu", "row = part * kSlots + slot;", "row = part + slot;"),
        *("backward float64 1000 1 40 10 32", "8 wrong: d_z"),
    ),
    "the derivative at 0 is that above it": (
        *("mlp_math.h", "hidden > real(0) ? d_hidden", "hidden >= real(0) ? d_hidden"),
        *("backward float32 20 1 33 10 132", "1 wrong: d_z"),
    ),
    "only the first element of a vector is added up": (
        *("mlp.cu", "k < (of_hidden ? width : 1)", "k < 1"),
        *("backward bfloat16 128 1 264 35 1", "1 wrong: gradient of hidden_bias"),
    ),
    "outputs are added to the units'": (
        *("mlp.cu", "(of_hidden ? 0 : hidden_size) + column + k", "column + k"),
        *("backward float32 20 1 33 10 132", "1 wrong: gradient of hidden_bias"),
    ),
    "the next layer begins too early": (
        *("mlp_small.cu", "    __syncthreads();\n    for_units(output_size", "    for_units(output_size"),
        *("small float32 16 64 128 10 132", "wrong: output"),
    ),
    "the sums of other warps are not waited for": (
        *("mlp_narrow.cu", "  __syncthreads();\n", ""),
        *("narrow float32 2 1 257 3 132", "wrong: output"),
    ),
    "the last warp's sums are left out": (
        *("mlp_narrow.cu", "other < warps", "other < warps - 1"),
        *("narrow bfloat16 64 784 512 10 132", "wrong: output"),
    ),
    "outputs are made of units that are not stored": (
        *(
            "mlp_narrow.cu",
            "static_cast<real>(value.lane[own]) *",
            "static_cast<real>(value.lane[own] + bias.lane[own]) *",
        ),
        *("narrow bfloat16 64 784 512 10 132", "wrong: output"),
    ),
    "the last unit is written by its neighbours too": (
        *("mlp_small.cu", "lane == k && first + k < units", "lane == k"),
        *("small bfloat16 2 33 65 66 132", "wrong: hidden beyond its end"),
    ),
}


def _said(program: Path, call: str) -> str:
    (line,) = ran(program, *call.split())
    return line


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("fused_mlp"), DRIVER, "-O1", include=[CSRC])


@pytest.mark.parametrize("what", RIGHT)
def test_kernels_are_right(driver: Path, what: str) -> None:
    call, said = RIGHT[what]
    assert _said(driver, call) == said


@pytest.mark.parametrize("what", first_alone(FAULTS, ZOO))
def test_a_fault_is_noticed(tmp_path: Path, what: str) -> None:
    name, text, instead, call, said = FAULTS[what]
    changed = with_fault(tmp_path, CSRC, name, text, instead)
    assert _said(built(tmp_path, DRIVER, "-O0", include=[changed]), call) == said
