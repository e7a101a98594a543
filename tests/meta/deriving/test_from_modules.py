"""`from-modules`: KernelBench's Model and ModelNew as functions, and calls that a reference does not take."""

from __future__ import annotations

import re
import shlex
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.cli.main import main
from harness.deriving.contract import derive, derive_from
from harness.errors import NotTaken, UsageError
from harness.judging.judge import judge
from harness.judging.scenario import Scenario, realise
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, NO_EVIDENCE, PASS
from spec.decomposing import steps
from spec.derived import function_of
from tests.meta.conftest import ROOT

PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width, scale):
        super().__init__()
        self.linear = nn.Linear(width, 6)
        self.register_buffer("offset", torch.full((1,), 0.5))
        self.scale = scale

    def forward(self, x):
        return torch.sigmoid(self.linear(x)) * self.scale + self.offset

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return [8, 0.25]
"""

ANSWER = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class ModelNew(nn.Module):
    def __init__(self, width, scale):
        super().__init__()
        self.linear = nn.Linear(width, 6)
        self.scale, self.offset = scale, 0.5

    def forward(self, x):
        return self.scale / (1 + torch.exp(-F.linear(x, self.linear.weight, self.linear.bias))) + self.offset
"""


def _written(folder: Path, answer: str = ANSWER, problem: str = PROBLEM) -> int:
    (folder / "7_Linear sigmoid.py").write_text(problem)
    (folder / "answer.py").write_text(answer)
    reference, candidate = f"{folder}/7_Linear sigmoid.py:Model", f"{folder}/answer.py:ModelNew"
    return main(["from-modules", f"--reference={reference}", f"--candidate={candidate}", f"--into={folder}/judged"])


def test_the_command_that_is_printed_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    quick = ["--property", "forward-parity", "--property", "concurrent-threads", "--dtype", "float32"]
    assert _written(tmp_path) == 0
    command = shlex.split(capsys.readouterr().out.splitlines()[-1])
    run = python(*command[1:], *quick, "--report", tmp_path / "report.json")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "linear_sigmoid / linear_sigmoid on cpu" in run.stdout
    assert _written(tmp_path, ANSWER.replace("+ self.offset", "")) == 0, "what was written may be written again"
    run = python(*command[1:], *quick, "--report", tmp_path / "report.json")
    assert run.returncode == 1
    assert "every element" in run.stdout or "elements are wrong" in run.stdout


def test_a_module_is_a_function_of_inputs_and_parameters(tmp_path: Path) -> None:
    _written(tmp_path)
    reference, candidate = tmp_path / "judged" / "reference.py", tmp_path / "judged" / "candidate.py"
    assert candidate.read_text().startswith(ANSWER), "each line has the number that it had"
    inputs = derive(f"{reference}:linear_sigmoid", f"{reference}:example").operator.inputs
    assert [(arg.name, arg.shape) for arg in inputs] == [
        ("x", ("batch", "x_1")),
        ("linear_weight", ("linear_weight_0", "x_1")),
        ("linear_bias", ("linear_weight_0",)),
    ]
    x, weight, bias = (torch.randn(*shape, dtype=torch.float64) for shape in ((3, 5), (2, 5), (2,)))
    slow, fast = (function_of(str(path), "linear_sigmoid") for path in (reference, candidate))
    exact = torch.sigmoid(F.linear(x, weight, bias)) * 0.25 + 0.5
    assert torch.allclose(slow(x, weight, bias), exact)
    assert torch.allclose(fast(x, weight, bias), exact)


def test_the_example_of_an_answer_in_cuda(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of the answer is imported, so a machine without a GPU writes the files too."""
    example = ROOT / "docs" / "examples" / "kernelbench"
    given = [f"--reference={example / 'problem.py'}:Model", f"--candidate={example / 'answer.py'}:ModelNew"]
    assert main(["from-modules", *given, f"--into={tmp_path}"]) == 0
    printed = capsys.readouterr().out
    page = (ROOT / "docs" / "verify.md").read_text().replace("\\\n  ", "")
    assert f"{printed.splitlines()[-1].replace(str(tmp_path), 'judged')} --forward-only" in page
    inputs = derive(f"{tmp_path / 'reference.py'}:problem_", f"{tmp_path / 'reference.py'}:example").operator.inputs
    assert [(arg.name, arg.shape) for arg in inputs] == [("x", ("batch", "x_1"))]
    compile((tmp_path / "candidate.py").read_text(), "candidate.py", "exec")


def test_an_answer_may_hold_what_cannot_be_copied(tmp_path: Path) -> None:
    """An extension that `load_inline` made, as most answers do, beside a method of the module itself."""
    held = "self.scale, self.offset, self.ops, self.own = scale, 0.5, [torch], self._own"
    answer = ANSWER.replace("self.scale, self.offset = scale, 0.5", held)
    answer = answer.replace("def forward(self, x):\n        return", "def _own(self, x):\n        return")
    answer += "\n    def forward(self, x):\n        return self.own(x)\n"
    _written(tmp_path, answer)
    x, weight, bias = (torch.randn(*shape, dtype=torch.float64) for shape in ((3, 5), (2, 5), (2,)))
    fast = function_of(str(tmp_path / "judged" / "candidate.py"), "linear_sigmoid")
    exact = torch.sigmoid(F.linear(x, weight, bias)) * 0.25 + 0.5
    assert torch.allclose(fast(x, weight, bias), exact), "the method is that of the copy, with these parameters"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("class Model(", "class Another(", "no class 'Model'"),
        ("class Model(nn.Module)", "class Model", "Model is no class of torch.nn.Module, but should be one"),
        ("def get_inputs", "def other", "has no function get_inputs: write one"),
        (
            "return [8, 0.25]",
            "return [8, torch.ones(1)]",
            "get_init_inputs of .* should return numbers, texts and lists",
        ),
        ("return [8, 0.25]", "return 8", "get_init_inputs of .* returned 8, but should return a list or a tuple"),
        ("torch.randn(4, 8)", "torch.randn(4, 9)", r"Model\(...\)\(get_inputs\(\)\) raised RuntimeError"),
        ("import torch\n", "import torch\nraise OSError('no')\n", "does not import: OSError: no"),
    ],
)
def test_a_problem_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, says: str
) -> None:
    assert _written(tmp_path, problem=PROBLEM.replace(old, new, 1)) == 2
    assert re.search(says, capsys.readouterr().err)


def test_an_answer_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _written(tmp_path, ANSWER.replace("ModelNew", "Net")) == 2
    assert "answer.py has no class 'ModelNew': it has Net" in capsys.readouterr().err
    assert _written(tmp_path, "class ModelNew:\n  (") == 2
    assert "answer.py cannot be read: SyntaxError" in capsys.readouterr().err
    assert (
        _written(tmp_path, ANSWER.replace("self.linear =", "self.dense =").replace("self.linear.", "self.dense.")) == 0
    )
    with pytest.raises(TypeError, match=r"parameters of ModelNew were \('dense.weight', 'dense.bias'\), but should be"):
        function_of(str(tmp_path / "judged" / "candidate.py"), "linear_sigmoid")
    (tmp_path / "judged" / "candidate.py").write_text("# my own\n")
    assert _written(tmp_path) == 2
    assert "candidate.py exists already, and is another file: name another folder" in capsys.readouterr().err


def test_a_module_in_place_of_a_function_is_told_of_the_command() -> None:
    for module in (torch.nn.Linear(3, 4), torch.nn.Linear):
        with pytest.raises(UsageError, match=r"is an nn\.Module, .* `python -m harness from-modules"):
            derive_from(module, (torch.randn(2, 3),))


def _normalised(x: Tensor) -> Tensor:
    """Refuses calls whose two lengths are 1, as a norm of one value does; each length alone may be 1."""
    if x.shape[-1] * x.shape[-2] == 1:
        raise ValueError("expected more than one value")
    return F.layer_norm(x, x.shape[-2:])


def _always_refuses(x: Tensor) -> Tensor:
    raise ValueError("not now")


def test_nothing_is_asked_of_a_call_that_the_reference_does_not_take() -> None:
    operator = derive_from(_normalised, (torch.randn(2, 5, 8),)).operator
    for name in ("drawn-calls", "unreached-code"):
        subject = Subject(operator, "it", "cpu", torch.float32, _normalised, files=(Path(__file__),))
        cell = judge(subject, all_properties()[name])
        assert cell.verdict == PASS, cell.reason
        assert name == "unreached-code" or cell.figures["not_taken"] > 0
    object.__setattr__(operator, "forward", _always_refuses)
    object.__setattr__(operator, "both", _always_refuses)
    cell = judge(Subject(operator, "it", "cpu", torch.float64, F.softsign), all_properties()["drawn-calls"])
    assert cell.verdict == NO_EVIDENCE


def test_small_lengths_take_the_place_of_those_of_the_example() -> None:
    def grouped(x: Tensor, weight: Tensor) -> Tensor:
        return F.group_norm(F.conv2d(x, weight, padding=1), 8)

    found = derive_from(grouped, (torch.randn(8, 3, 32, 32), torch.randn(16, 3, 3, 3)))
    (small,) = (case for case in found.operator.cases if case.name == "small")
    assert max(small.sizes.values()) <= 10


def _warns(x: Tensor) -> Tensor:
    """As a module does whose number of features is not that of the input; a spatial size of 1 is refused."""
    if x.shape[1] != 16:
        warnings.warn("input's size at dim=1 does not match num_features", stacklevel=1)
    return F.instance_norm(x)


def test_a_reference_may_warn_and_small_sizes_may_be_refused() -> None:
    operator = derive_from(_warns, (torch.randn(4, 16, 6, 5),), forward_only=True).operator
    for name in ("sizes", "no-side-effects", "invariants"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cell = judge(Subject(operator, "it", "cpu", torch.float32, F.instance_norm), all_properties()[name])
        assert cell.verdict == PASS, cell.reason
    gone = judge(Subject(operator, "it", "cpu", torch.float32, _always_refuses), all_properties()["no-side-effects"])
    assert gone.verdict == FAIL, "what the reference takes must not be refused"


def _shortened(x: Tensor, weight: Tensor) -> Tensor:
    """As long as x + weight - 5: for two short ones there is no result."""
    return F.conv_transpose1d(x, weight, padding=2)


def test_nothing_is_asked_of_a_result_of_negative_length() -> None:
    operator = derive_from(_shortened, (torch.randn(2, 3, 8), torch.randn(3, 4, 5)), forward_only=True).operator
    for name in ("drawn-calls", "unreached-code"):
        subject = Subject(operator, "it", "cpu", torch.float32, _shortened, files=(Path(__file__),))
        cell = judge(subject, all_properties()[name])
        assert cell.verdict == PASS, cell.reason
        assert name == "unreached-code" or cell.figures["not_taken"] > 0
    with pytest.raises(NotTaken, match="output would be of shape "):
        realise(operator, Scenario(tuple((symbol, 1) for symbol in operator.symbols())), torch.float32)


def _with_statistics(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Batch norm as a module calls it in training: it changes its buffers, which are copies."""
    mean = torch.zeros(x.shape[1], dtype=x.dtype)
    return F.batch_norm(x, mean, mean + 1, weight, bias, True)


def _without_statistics(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, weight, bias, True)


def test_batch_norm_may_change_its_running_statistics() -> None:
    operator = derive_from(_with_statistics, (torch.randn(4, 3, 5), torch.randn(3), torch.randn(3))).operator
    for name in ("forward-parity", "vjp-parity"):
        cell = judge(Subject(operator, "it", "cpu", torch.float32, _without_statistics), all_properties()[name])
        assert cell.verdict == PASS, cell.reason


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_the_steps_of_batch_norm(training: bool, affine: bool) -> None:
    x, mean, variance = torch.randn(4, 3, 5).double(), torch.randn(3).double(), torch.rand(3).double() + 0.5
    weight, bias = (torch.randn(3).double(), torch.randn(3).double()) if affine else (None, None)
    given = (x, weight, bias, mean, variance, training, 0.1, 1e-5)
    batch_norm = torch.ops.aten._native_batch_norm_legit.default
    found = steps(batch_norm)(*given)[0]  # type: ignore[misc]
    assert torch.allclose(found, batch_norm(*given)[0])
