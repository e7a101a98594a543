"""A source with the real compiler and the real loader: a function, or a failure with the whole log."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from backends.base import CPU, CompiledOperator
from harness.building import build
from harness.errors import Broken
from harness.report.report import Report
from tests.meta.conftest import Run
from tests.meta.tiers import WHOLE

pytestmark = pytest.mark.usefixtures("cache_root", "fresh_compilers")


def test_a_failure_shows_the_whole_log(operator: CompiledOperator) -> None:
    operator.sources[0].write_text("#error the first\n#error the second\n")
    with pytest.raises(Broken, match=r"(?s)does not build \(exit 1\):.*op\.cpp.*the first.*the second"):
        build.build(operator, CPU)
    assert not build.plan(operator, CPU).library.exists()
    operator.sources[0].unlink()
    with pytest.raises(Broken, match=r"op\.cpp does not exist, but is a source of meta_fake\.op"):
        build.build(operator, CPU)


def test_a_library_that_registers_nothing_is_told(operator: CompiledOperator) -> None:
    says = r"registers no torch\.ops\.meta_fake\.op; its sources should register it by TORCH_LIBRARY_FRAGMENT"
    for _ in range(2):
        with pytest.raises(Broken, match=says):
            build.load(operator, CPU)


def test_a_library_that_does_not_load_is_told(operator: CompiledOperator) -> None:
    operator.sources[0].write_text("int nowhere();\nint meta() { return nowhere(); }\nint used = meta();\n")
    with pytest.raises(Broken, match=r"was built but does not load: .*nowhere"):
        build.load(operator, CPU)


def test_any_path_and_equal_names_work(tmp_path: Path) -> None:
    """A folder with a space, a dollar and a quote; two sources of the same name; a header that both include."""
    sources = []
    for number in (1, 2):
        folder = tmp_path / f"a $b 'c' & d:{number}"
        folder.mkdir()
        (folder / "my $op.cpp").write_text(
            f'#include "shared.h"\nextern "C" int meta_{number}() {{ return SHARED; }}\n'
        )
        sources.append(folder / "my $op.cpp")
    include = tmp_path / "in $clude"
    include.mkdir()
    (include / "shared.h").write_text("#define SHARED 1\n")
    library = build.build(CompiledOperator("op", "meta_paths", tuple(sources), (include,)), CPU)
    assert library.exists()


_SOURCE = """
#include <torch/library.h>

static at::Tensor op(const at::Tensor& x) {{ {body} }}

TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m) {{ m.def("{name}(Tensor x) -> Tensor", op); }}
"""


def test_what_is_registered_is_loaded(tmp_path: Path) -> None:
    source = tmp_path / "op.cpp"
    source.write_text(_SOURCE.format(name="twice", body="return x.mul(2);"))
    function = build.load(CompiledOperator("twice", "meta_real", (source,), flags=("-O0",)), CPU)
    assert torch.equal(function(torch.ones(3)), 2 * torch.ones(3))


_BACKEND = """
from backends.base import Backend
BACKEND = Backend("of 2018", devices=("cpu",))
"""
_LLTM = """
from pathlib import Path
from backends.base import CompiledOperator
IMPLEMENTATION = CompiledOperator("lltm", "meta_old", (Path(__file__).parent / "lltm.cpp",), flags=("-O0",))
"""


@pytest.mark.long(WHOLE)
def test_removed_apis_fail_with_the_log_of_the_compiler(tmp_path: Path, conformance: Run) -> None:
    """Defect 19: dispatch by `tensor.type()`, `tensor.data<T>()`. The cell is `fail`, and the run continues."""
    folder = tmp_path / "of_2018"
    folder.mkdir()
    (folder / "__init__.py").write_text(_BACKEND)
    (folder / "lltm.py").write_text(_LLTM)
    body = 'AT_DISPATCH_FLOATING_TYPES(x.type(), "op", [&] { (void)x.data<scalar_t>(); }); return x;'
    (folder / "lltm.cpp").write_text("#include <ATen/Dispatch.h>" + _SOURCE.format(name="lltm", body=body))
    report = tmp_path / "report.json"
    options = ["--backend-path", folder, "--backend", "of-2018", "--operator", "lltm", "--dtype", "float32"]
    options += ["--report", report]
    run = conformance("forward_parity vjp_parity", *options)
    assert run.returncode == 1, run.stdout
    cells = {cell.property: cell for cell in Report.read(report).cells}
    assert set(cells) == {"forward-parity", "vjp-parity"}
    for cell in cells.values():
        assert (cell.verdict, cell.backend) == ("fail", "of-2018")
        assert "meta_old-lltm-cpu does not build" in cell.reason
        assert "cannot convert" in cell.reason
        assert "lltm.cpp:4" in cell.reason
