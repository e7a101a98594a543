"""A contract that is derived from a reference function: what it says, whom it passes and fails, what it refuses."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from harness import discovery
from harness.deriving.contract import contract_file, derive
from harness.deriving.saving import source
from harness.errors import UsageError
from harness.judging.contract_check import admit
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, NOT_RUN, PASS
from harness.report.report import Report
from harness.running.verify import verify
from spec.contract import Draw, Operator
from tests.meta.conftest import ROOT, Run, environment
from tests.meta.deriving import candidates, references
from tests.meta.tiers import each_once

FILE = str(references.__file__)
#: What decides most for least.
QUICK = ("forward-parity", "vjp-parity", "gradient-subsets", "layouts", "invariants", "sizes")
RIGHT = ("rms_norm", "rms_in_float32", "cross_entropy", "attention", "two_outputs")
_EXAMPLES = {"rms_in_float32": "rms_example"}


def contract(name: str) -> Operator:
    return derive(
        f"{FILE}:{name}", f"{FILE}:{_EXAMPLES.get(name, name + '_example').replace('rms_norm_', 'rms_')}"
    ).operator


@pytest.fixture(scope="module")
def derived() -> dict[str, Operator]:
    return {name: contract(name) for name in RIGHT}


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("rms_norm", {"x": ("batch", "x_1"), "weight": ("x_1",)}, [("batch", "x_1")]),
        ("cross_entropy", {"logits": ("batch", "logits_1"), "labels": ("batch",)}, [("batch",)]),
        (
            "attention",
            {
                "q": ("batch", "q_1", "q_2"),
                "k": ("batch", "k_1", "q_2"),
                "v": ("batch", "k_1", "v_2"),
                "mask": ("q_1", "k_1"),
            },
            [("batch", "q_1", "v_2")],
        ),
        ("two_outputs", {"x": ("batch", "x_1"), "scale": ("x_1",)}, [("batch", "x_1"), ("batch", "x_1 + 1")]),
    ],
)
def test_shapes_are_found_from_an_example(
    derived: dict[str, Operator], name: str, inputs: dict[str, Any], outputs: list[Any]
) -> None:
    found = derived[name]
    assert {arg.name: arg.shape for arg in found.inputs} == inputs
    assert [arg.shape for arg in found.outputs] == outputs
    admit(found)


def test_labels_are_below_the_number_of_classes(derived: dict[str, Operator]) -> None:
    labels = derived["cross_entropy"].inputs[1]
    assert (labels.dtype, labels.low, labels.high) == (torch.int64, "0", "logits_1")


def test_rows_that_depend_on_each_other_are_no_batch() -> None:
    found = contract("mixes_rows")
    assert [arg.shape for arg in found.inputs] == [("x_0", "batch")], "its columns do not depend on each other"


def test_shapes_are_read_from_annotations(tmp_path: Path) -> None:
    pytest.importorskip("jaxtyping")
    file = tmp_path / "annotated.py"
    file.write_text(
        "from jaxtyping import Float, Int\nfrom torch import Tensor\n"
        "def chosen(table: Float[Tensor, 'rows width'], index: Int[Tensor, 'items']) -> Float[Tensor, 'items width']:\n"
        "    return table[index]\n"
    )
    found = derive(f"{file}:chosen").operator
    assert {arg.name: arg.shape for arg in found.inputs} == {"table": ("rows", "width"), "index": ("batch",)}
    assert found.inputs[1].high == "rows"


@pytest.mark.parametrize(("name", "dtype"), each_once(RIGHT, (torch.float32, torch.bfloat16)), ids=str)
def test_a_right_function_passes(derived: dict[str, Operator], name: str, dtype: torch.dtype) -> None:
    subject = Subject(derived[name], name, "cpu", dtype, getattr(candidates, name))
    for property in QUICK:
        found = judge(subject, all_properties()[property])
        assert found.verdict in (PASS, NOT_RUN), f"{property}: {found.reason}"


@pytest.mark.parametrize("name", candidates.WRONG)
def test_a_wrong_function_fails(derived: dict[str, Operator], name: str) -> None:
    found = derived["rms_norm"]
    subject = Subject(found, name, "cpu", torch.float32, getattr(candidates, name))
    verdicts = {judge(subject, all_properties()[property]).verdict for property in QUICK}
    assert FAIL in verdicts


def test_what_a_reference_computes_in_float32_must_not_be_in_half_precision(derived: dict[str, Operator]) -> None:
    found = derived["rms_in_float32"]
    assert torch.float64 not in found.dtypes
    subject = Subject(found, "it", "cpu", torch.bfloat16, candidates.adds_in_its_dtype)
    assert judge(subject, all_properties()["sizes"]).verdict == FAIL


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("random", "returned other values for the same arguments, but should be deterministic"),
        ("in_place", "changed x, but should leave its arguments as they are"),
        ("not_differentiable", "there is no gradient: remove detach"),
        ("half", "returned output in float16, but should return the dtype that it is given"),
        ("wrong_gradient", "autograd's gradient is not that of finite differences in float64"),
        ("inverts", "uses aten.linalg_inv.*whose rounding errors are not modelled"),
        ("any_number", "parameter tensors takes any number of arguments"),
        ("a_dict", "returned a dict, but should return a tensor or a tuple of tensors: wrap it"),
        ("complex_result", "returned output in complex128, but should return real numbers, integers or truth values"),
        ("reads_a_value", r"autograd's gradient is not.*\.item\(\), detach or a comparison hides how a result depends"),
        ("has_no_derivative", "is not differentiable: its gradient raised"),
        ("raises", "raised ValueError: no, but should return tensors"),
    ],
)
def test_what_no_reference_may_be(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        derive(f"{FILE}:{name}", f"{FILE}:mixes_rows_example")


def test_what_is_not_known_is_asked() -> None:
    with pytest.raises(
        UsageError, match=r"what is x\? Annotate it, for example x: Float\[Tensor, 'batch features'\], or"
    ):
        derive(f"{FILE}:rms_norm")
    with pytest.raises(UsageError, match="has no function 'nowhere'"):
        derive(f"{FILE}:nowhere")
    with pytest.raises(UsageError, match=r"should be FILE.py:FUNCTION"):
        derive(FILE)
    with pytest.raises(UsageError, match="--example does not fit"):
        derive(f"{FILE}:rms_norm", f"{FILE}:attention_example")


def test_a_saved_contract_is_the_derived_one(tmp_path: Path) -> None:
    made = derive(f"{FILE}:cross_entropy", f"{FILE}:cross_entropy_example")
    path = tmp_path / "contract.py"
    path.write_text(source(made, tmp_path))
    read = discovery.operators((path,))[made.operator.name]
    for part in ("name", "inputs", "outputs", "cases", "dtypes"):
        assert getattr(read, part) == getattr(made.operator, part)
    assert [family.name for family in read.families] == [family.name for family in made.operator.families]
    assert "label_smoothing" in path.read_text()


def test_a_saved_contract_keeps_what_is_passed_by_position(tmp_path: Path) -> None:
    made = derive(f"{FILE}:scaled_along", f"{FILE}:scaled_along_example")
    path = tmp_path / "contract.py"
    path.write_text(source(made, tmp_path))
    read, x = discovery.operators((path,))["scaled_along"], torch.randn(2, 3)
    assert read.dtypes == made.operator.dtypes == (torch.float32, torch.float16, torch.bfloat16)
    assert read.call is not None
    assert read.call(lambda *given, **named: (given, named), x, x) == (
        (x, (-1,), torch.float32, x),
        {"scale": math.inf},
    )


def test_a_saved_contract_says_what_is_allowed() -> None:
    text = source(derive(f"{FILE}:rms_norm", f"{FILE}:rms_example"), Path())
    assert "Found: the rows along x_0, here called batch, do not depend on each other" in text
    assert re.search(r"    bfloat16: output [\d.e-]+ of [\d.]+, gradient of x [\d.e-]+ of [\d.]+", text)


def test_outputs_and_gradients_are_those_of_forward_and_vjp(derived: dict[str, Operator]) -> None:
    for contract in derived.values():
        draw, small = Draw(0), contract.cases[0].sizes
        made = contract.ordinary(small, draw)
        inputs = tuple(arg.cast(made[arg.name], torch.float64) for arg in contract.inputs)
        outputs = contract.forward(*inputs)
        cotangents = tuple(draw.normal(tuple(output.shape)) for output in outputs)
        assert contract.both is not None
        found = contract.evaluated(inputs, cotangents)
        for one, other in zip(found, (outputs, contract.vjp(inputs, cotangents)), strict=True):
            assert len(one) == len(other)
            assert all(map(torch.equal, one, other))


def test_a_family_has_equal_rows(derived: dict[str, Operator]) -> None:
    family = derived["rms_norm"].family("equal-rows")
    rows = family.make({"batch": 4, "x_1": 3}, Draw(0), torch.float32)["x"]
    assert torch.equal(rows, rows[:1].expand(4, 3))
    assert len(set(rows[0].tolist())) == 3


def test_a_contract_is_derived_again_for_another_reference(tmp_path: Path) -> None:
    file = tmp_path / "it.py"
    text = "import torch\ndef doubled(x):\n    return {} * x\ndef example():\n    return (torch.ones(2, 3),)\n"
    file.write_text(text.format(2))
    first = contract_file(f"{file}:doubled", f"{file}:example")[0]
    file.write_text(text.format(3))
    assert contract_file(f"{file}:doubled", f"{file}:example")[0] != first


def test_a_contract_is_derived_once(cache_root: Path) -> None:
    path, name = contract_file(f"{FILE}:two_outputs", f"{FILE}:two_outputs_example")
    assert (name, path.parent) == ("two_outputs", cache_root / "contracts")
    written = path.stat().st_mtime_ns
    assert contract_file(f"{FILE}:two_outputs", f"{FILE}:two_outputs_example") == (path, name)
    assert path.stat().st_mtime_ns == written


def test_the_contract_is_shown_and_saved(python: Run, tmp_path: Path) -> None:
    command = ["-m", "harness", "contract", f"{FILE}:rms_norm", "--example", f"{FILE}:rms_example"]
    shown = python(*command).stdout
    assert "TensorArg('weight', ('x_1',)" in shown
    compile(shown, "contract", "exec")
    path = tmp_path / "contract.py"
    assert "judge with --spec-path" in python(*command, "--save", str(path)).stdout
    again = python(*command, "--save", str(path))
    assert again.returncode == 2
    assert "exists already: it may have been corrected" in again.stderr


def test_a_contract_is_the_same_whatever_was_drawn_before(tmp_path: Path) -> None:
    """The example draws random numbers, and the values of every call have its deviation."""
    torch.manual_seed(1)
    first = source(derive(f"{FILE}:rms_norm", f"{FILE}:rms_example"), tmp_path)
    torch.manual_seed(2)
    assert source(derive(f"{FILE}:rms_norm", f"{FILE}:rms_example"), tmp_path) == first
    assert torch.initial_seed() == 2


def test_one_command_judges_by_a_reference(conformance: Run, python: Run, tmp_path: Path) -> None:
    """The candidate runs in a process of its own, as any other."""
    wrong, report = str(candidates.__file__), tmp_path / "report.json"
    chosen = ["--dtype=float32", "--device=cpu", f"--reference={FILE}:rms_norm", f"--example={FILE}:rms_example"]
    chosen += [f"--candidate={wrong}:rms_norm", f"--candidate={wrong}:other_eps", f"--report={report}"]
    run = conformance("forward_parity global_state", *chosen)
    assert run.returncode == 1, run.stdout + run.stderr
    found = {(cell.backend, cell.property): cell for cell in Report.read(report).cells}
    assert found["rms_norm", "forward-parity"].verdict == PASS
    assert found["rms_norm", "global-state"].verdict == PASS
    failed = found["other_eps", "forward-parity"]
    assert failed.verdict == FAIL
    assert "contract=" in failed.figures["reproducer"]
    script = tmp_path / "again.py"
    script.write_text(failed.figures["reproducer"])
    again = python(str(script))
    assert again.returncode == 1
    assert "output was" in again.stdout


def test_a_reference_that_is_refused_is_one_sentence(conformance: Run) -> None:
    """It is a wrong option, not an error of pytest with a traceback."""
    run = conformance("forward_parity", f"--reference={FILE}:random", f"--candidate={candidates.__file__}:rms_norm")
    assert run.returncode == 4, run.stdout + run.stderr
    assert re.search(r"^ERROR: .*random: .*what is x\?", run.stderr, re.MULTILINE), run.stderr
    assert "Traceback" not in run.stdout + run.stderr


def test_verify_takes_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    example = references.rms_example()
    asked: dict[str, Any] = {"device": "cpu", "dtypes": "float32", "properties": ["forward-parity", "vjp-parity"]}
    assert verify(candidates.rms_norm, reference=references.rms_norm, example=example, **asked).ok
    found = verify(candidates.centred, reference=references.rms_norm, example=example, **asked)
    assert not found.ok
    assert re.search("output was", found.cells[0].reason)
    with pytest.raises(UsageError, match="needs either operator"):
        verify(candidates.rms_norm, **asked)


def test_torchs_compiler_is_not_imported() -> None:
    """It takes most of a second, before anything is judged. The allowance includes runs that are made together."""
    program = f"""
import sys, torch
from harness.deriving.contract import derive
from harness.judging import oracle
from harness.judging.scenario import Scenario
operator = derive({f"{FILE}:attention"!r}, {f"{FILE}:attention_example"!r}).operator
oracle.expected(operator, Scenario.of(operator.cases[0]), torch.float32)
sys.exit("torch._dynamo" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment(), check=True)
