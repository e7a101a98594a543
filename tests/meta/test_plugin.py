"""Packages outside this repository: an installed copy of the example; skeletons; refused contracts; verify."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import harness
from harness.cli import scaffold
from harness.errors import Broken, UnknownName, UsageError
from harness.judging.contract_check import admit
from harness.report.cell import FAIL, PASS
from spec.contract import Case, Draw, Operator, Sizes
from spec.lltm import OPERATOR as LLTM
from spec.mlp import OPERATOR as MLP
from tests.meta.conftest import ROOT, Run
from tests.meta.tiers import START, WHOLE, first_alone

Judge = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def judge(python_in: Run) -> Judge:
    """`python -m harness judge` in a folder that is not this repository; `path` is importable there."""

    def run(folder: Path, *options: str, path: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
        return python_in(folder, "-m", "harness", "judge", *options, PYTHONPATH=":".join(map(str, (*path, ROOT))))

    return run


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, copied out of the repository and installed from the copy."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(ROOT / "examples" / "plugin", folder / "plugin")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, "--target", str(folder / "site"), str(folder / "plugin")], check=True, cwd=folder)
    return folder


@pytest.mark.long(START)
def test_the_example_is_found_by_its_entry_points_and_passes(judge: Judge, installed: Path) -> None:
    backends = ["--backend", "bias-gelu-plain", "--backend", "bias-gelu-by-hand"]
    options = ["--operator", "bias_gelu", "--device", "cpu", "--dtype", "float32", *backends]
    run = judge(installed, *options, path=(installed / "site",))
    assert run.returncode == 0, run.stdout + run.stderr
    cells = json.loads((installed / "reports" / "conformance.json").read_text())["cells"]
    assert {cell["backend"] for cell in cells} == {"bias-gelu-plain", "bias-gelu-by-hand"}
    assert {cell["property"] for cell in cells} == {
        name for name, property in harness.properties.all_properties().items() if property.is_asked("cpu", "float32")
    }
    assert not [cell for cell in cells if cell["verdict"] in ("fail", "no-evidence")]


@pytest.mark.long(WHOLE)
def test_its_readme_names_commands_that_exist(python: Run) -> None:
    text = (ROOT / "examples" / "plugin" / "README.md").read_text()
    for command in ("judge", "bench", "html"):
        assert f"python -m harness {command} " in text
        run = python("-m", "harness", command, "--help")
        assert run.returncode == 0, command


@pytest.mark.long(WHOLE)
def test_a_new_operator_runs(judge: Judge, tmp_path: Path) -> None:
    said = scaffold.new_operator("my-scale", tmp_path)
    assert "python -m harness judge --operator my_scale" in said
    package = tmp_path / "my-scale"
    options = ["--spec-path", f"{package}/my_scale_conformance/contract.py"]
    options += ["--backend-path", f"{package}/my_scale_conformance/plain", "--operator", "my_scale"]
    run = judge(tmp_path, *options, "--backend", "plain", "--device", "cpu", "--dtype", "float32", path=(package,))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Values and gradients are right in float32" in run.stdout


@pytest.mark.parametrize("like", first_alone(["python-autograd", "aten-cpp"]))
def test_a_new_backend_runs(judge: Judge, tmp_path: Path, like: str) -> None:
    scaffold.new_backend("my-backend", like, tmp_path)
    options = ["--backend-path", str(tmp_path / "my_backend"), "--backend", "my-backend", "--operator", "mlp"]
    run = judge(tmp_path, *options, "--device", "cpu", "--dtype", "float64", "-k", "parity or gradcheck")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Values and gradients are right in float64." in run.stdout


@pytest.mark.parametrize("name", ["2fast", "Lltm", "class", "a b", ""])
def test_a_name_that_cannot_be_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="should be lower-case letters"):
        scaffold.new_operator(name, tmp_path)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    scaffold.new_operator("mine", tmp_path)
    with pytest.raises(UsageError, match="exists already"):
        scaffold.new_operator("mine", tmp_path)
    with pytest.raises(UsageError, match="there is an operator 'lltm' already"):
        scaffold.new_operator("lltm", tmp_path)
    with pytest.raises(UsageError, match="there is a backend 'aten-cpp' already"):
        scaffold.new_backend("aten-cpp", "python-autograd", tmp_path)
    with pytest.raises(UnknownName, match="did you mean 'aten-cpp'"):
        scaffold.new_backend("mine", "aten_cpp", tmp_path)


# Contracts that are refused


def _wrong_gradient(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    d_input, d_weights, *others = LLTM.vjp(inputs, cotangents)
    return d_input, 1.001 * d_weights, *others


def _short(*inputs: Tensor) -> tuple[Tensor, ...]:
    return LLTM.forward(*inputs)[:1]


def _unseeded(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    drawn = LLTM.ordinary(sizes, draw)
    return {**drawn, "bias": torch.randn(3 * sizes["state_size"], dtype=torch.float64)}


def _in_single(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    drawn = LLTM.ordinary(sizes, draw)
    return {**drawn, "bias": drawn["bias"].float()}


def _with_family(make: Callable[..., dict[str, Tensor]]) -> Operator:
    return dataclasses.replace(LLTM, families=(dataclasses.replace(LLTM.families[0], make=make),))


_NO_STATE = Case("short", {"batch": 2, "input_features": 3}, "lacks a size", frozenset({"size", "small"}))


@pytest.mark.parametrize(
    ("contract", "says"),
    [
        (dataclasses.replace(LLTM, vjp=_wrong_gradient), "gradient of weights by vjp is off by 0.001"),
        (dataclasses.replace(LLTM, forward=_short), "forward should return a tuple of 2 tensors"),
        (dataclasses.replace(LLTM, cases=(*LLTM.cases, _NO_STATE)), "'short' .* needs 'state_size' too"),
        (dataclasses.replace(LLTM, cases=LLTM.cases[:3]), "no case has the tag 'small'"),
        (_with_family(_unseeded), "gives bias other values each time from one seed"),
        (_with_family(_in_single), "gives bias as torch.float32"),
        (dataclasses.replace(LLTM, outputs=()), "at least one input and one output"),
    ],
    ids=["gradient", "outputs", "sizes", "tags", "seed", "dtype", "empty"],
)
def test_a_wrong_contract_is_refused(contract: Operator, says: str) -> None:
    with pytest.raises(Broken, match=f"contract of lltm is refused: .*{says}"):
        admit(contract)


def test_the_shipped_contracts_are_admitted() -> None:
    for contract in harness.discovery.operators().values():
        admit(contract)


def test_a_refused_contract_ends_the_run_with_a_sentence(judge: Judge, tmp_path: Path) -> None:
    scaffold.new_operator("crooked", tmp_path)
    contract = tmp_path / "crooked" / "crooked_conformance" / "contract.py"
    contract.write_text(contract.read_text().replace("return g * weights, ", "return 2 * g * weights, "))
    run = judge(tmp_path, "--spec-path", str(contract), "--operator", "crooked", "--device", "cpu")
    assert run.returncode == 4, run.stdout + run.stderr
    assert "the contract of crooked is refused: the gradient of input by vjp is off" in run.stdout + run.stderr


# verify


def _relu_forgets_its_mask(input: Tensor, *parameters: Tensor) -> Tensor:
    """An MLP without its relu."""
    hidden_weights, hidden_bias, output_weights, output_bias = parameters
    hidden = input @ hidden_weights.t() + hidden_bias
    return hidden @ output_weights.t() + output_bias


def test_verify_judges_a_function() -> None:
    names = {"dtypes": ["float32"], "properties": ["forward-parity", "vjp-parity"]}
    right = harness.verify(lambda *inputs: MLP.forward(*inputs)[0], operator="mlp", device="cpu", **names)
    assert right.ok
    assert [cell.verdict for cell in right.cells] == [PASS, PASS]
    wrong = harness.verify(_relu_forgets_its_mask, operator="mlp", device="cpu", **names)
    assert not wrong.ok
    assert {cell.verdict for cell in wrong.cells} == {FAIL}
    assert "output was" in wrong._repr_markdown_()


def test_verify_takes_what_torch_calls_things_and_reads_declarations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "DECLARED", {"forward-parity": "it has no relu"}, raising=False)
    options: list[dict[str, Any]] = [
        {"device": torch.device("cpu"), "dtypes": torch.float32, "properties": "forward-parity"},
        {"device": "cpu", "dtypes": "float32", "properties": ["forward-parity"]},
        {"device": "cpu", "dtypes": ["float32"], "properties": ("forward-parity",)},
    ]
    for given in options:
        report = harness.verify(_relu_forgets_its_mask, operator="mlp", **given)
        (found,) = report.cells
        assert (found.dtype, found.property, found.verdict) == ("float32", "forward-parity", "declared")
        assert found.reason.startswith("it has no relu")
    (file,) = report.environment["candidates"].values()
    assert file["sha256"] == hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    monkeypatch.setattr(sys.modules[__name__], "DECLARED", ["forward-parity"])
    with pytest.raises(
        UsageError, match="DECLARED was \\['forward-parity'\\], but should be a dict of property name to"
    ):
        harness.verify(_relu_forgets_its_mask, operator="mlp")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"dtypes": 32}, "dtypes was 32, but should be 'float32', for example, or a list of such names"),
        ({"dtypes": [None]}, "dtypes was \\[None\\], but should be 'float32'"),
        ({"dtypes": "flot32"}, "unknown dtype 'flot32'; did you mean 'float32'"),
        ({"properties": [1]}, "properties was \\[1\\], but should be 'sizes'"),
        ({"device": 0}, "device was 0, but should be 'cpu' or 'cuda'"),
        (
            {"device": torch.device("cuda:1")},
            "device was cuda:1, but should be the first GPU: choose it by CUDA_VISIBLE",
        ),
        ({"device": torch.device("meta")}, "unknown device 'meta'"),
    ],
)
def test_verify_tells_what_an_argument_should_be(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        harness.verify(_relu_forgets_its_mask, operator="mlp", **given)


def test_verify_tells_unknown_names() -> None:
    with pytest.raises(UnknownName, match="unknown property 'forward'"):
        harness.verify(_relu_forgets_its_mask, operator="mlp", properties=["forward"])
    with pytest.raises(UnknownName, match="unknown operator 'mpl'; did you mean 'mlp'"):
        harness.verify(_relu_forgets_its_mask, operator="mpl")
